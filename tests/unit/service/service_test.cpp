#include "service/service.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

using namespace earshot::service;

namespace {

struct Scratch {
  Scratch() {
    char name[] = "/tmp/earshot-test-XXXXXX";
    REQUIRE(::mkdtemp(name));
    path = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string path;
};

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

bool has(std::string_view text, std::string_view what) { return text.find(what) != text.npos; }

Job job(const std::string& home) {
  return {.program = "/opt/earshotd", .home = home, .state = home + "/.local/state/earshot"};
}

/// A manager that is asked, answers with `code`, and remembers.
struct Asked {
  int code = 0;
  std::vector<std::string> commands, said;
  Run run() {
    return [this](const std::vector<std::string>& words) {
      std::string line;
      for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
      commands.push_back(line);
      return code;
    };
  }
  Say say() {
    return [this](const std::string& line) { said.push_back(line); };
  }
};

}  // namespace

TEST_CASE("the unit's file has each place once where a job is put in") {
  REQUIRE(count(unit_file, "\nExecStart=/usr/bin/earshotd\n") == 1);
  REQUIRE(count(unit_file, "\nExecStartPre=+mkdir -p -m 0700 \"%h/.local/state/earshot\"\n") == 1);
  REQUIRE(count(unit_file, "\nReadWritePaths=\"%h/.local/state/earshot\"\n") == 1);
  REQUIRE(count(unit_file, "\nPrivateTmp=yes\n") == 1);
}

TEST_CASE("the property list has each place once where a job is put in") {
  REQUIRE(count(plist_file, "    <string>/usr/local/bin/earshotd</string>\n") == 1);
  REQUIRE(count(plist_file, "  <key>RunAtLoad</key>\n") == 1);
  REQUIRE(count(plist_file, "/Users/you/Library/Logs/earshotd.log") == 2);
}

TEST_CASE("a word is quoted so that systemd says it as it was") {
  REQUIRE(exec_word("plain") == "\"plain\"");
  REQUIRE(exec_word("") == "\"\"");
  REQUIRE(exec_word("a b;") == "\"a b;\"");
  REQUIRE(exec_word("50%h $HOME ${X}") == "\"50%%h $$HOME $${X}\"");
  REQUIRE(exec_word("\"\\'") == "\"\\\"\\\\'\"");
  REQUIRE(path_word("/a $b %c") == "\"/a $b %%c\"");
}

TEST_CASE("what a unit cannot say is refused with its reason") {
  Job broken = job("/home/ada");
  SECTION("a line break in an option") { broken.words = {"--host", "two\nlines"}; }
  SECTION("a quote in the program's path") { broken.program = "/opt/\"/earshotd"; }
  SECTION("a backslash in the program's path") { broken.program = "/opt/\\/earshotd"; }
  SECTION("a control character in a directory") { broken.state = "/home/ada/\x1b"; }
  const Text text = unit_text(broken);
  REQUIRE(text.text.empty());
  REQUIRE_FALSE(text.error.empty());
}

TEST_CASE("what is below /tmp is not hidden by a private one") {
  Job hidden = job("/home/ada");
  REQUIRE(has(unit_text(hidden).text, "\nPrivateTmp=yes\n"));
  SECTION("a root") { hidden.must_be_seen = {"/home/ada/.claude", "/tmp/agents"}; }
  SECTION("the state") { hidden.state = "/var/tmp/state"; }
  SECTION("the program") { hidden.program = "/tmp/earshotd"; }
  SECTION("a socket") { hidden.writable = {"/tmp/x"}; }
  REQUIRE(has(unit_text(hidden).text, "\nPrivateTmp=no\n"));
}

TEST_CASE("a sealed text is known until one byte of it changes") {
  const std::string text = sealed("one\ntwo\n", "# ", "");
  REQUIRE(is_untouched(text));
  REQUIRE(is_untouched(sealed("<a/>\n", "<!-- ", " -->")));
  REQUIRE_FALSE(is_untouched(""));
  REQUIRE_FALSE(is_untouched("one\ntwo\n"));
  REQUIRE_FALSE(is_untouched(text + "three\n"));
  REQUIRE_FALSE(is_untouched("\n" + text));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = other[at] == 'x' ? 'y' : 'x';
    REQUIRE_FALSE(is_untouched(other));
  }
}

TEST_CASE("a property list carries words, variables and the home directory") {
  Job mac = job("/Users/ada & bob");
  mac.words = {"--root", "w=/a<b>&\"c\""};
  mac.environment = {{"CLAUDE_CONFIG_DIR", "/x&y"}};
  const std::string text = plist_text(mac).text;
  REQUIRE(has(text,
              "    <string>/opt/earshotd</string>\n    <string>--root</string>\n"
              "    <string>w=/a&lt;b&gt;&amp;\"c\"</string>\n"));
  REQUIRE(has(text,
              "<key>EnvironmentVariables</key>\n  <dict>\n    <key>CLAUDE_CONFIG_DIR</key>\n"
              "    <string>/x&amp;y</string>\n  </dict>\n  <key>RunAtLoad</key>"));
  REQUIRE(count(text, "<string>/Users/ada &amp; bob/Library/Logs/earshotd.log</string>") == 2);
  REQUIRE_FALSE(has(text, "/Users/you/Library"));
  REQUIRE(is_untouched(text));
  for (std::size_t at = text.find("<!--"); at != text.npos; at = text.find("<!--", at)) {
    const std::size_t dashes = text.find("--", at + 4);
    REQUIRE(text.substr(dashes, 3) == "-->");  // two dashes in a comment are no XML
    at = dashes;
  }
}

TEST_CASE("launchd loads what is new, and first unloads what was there") {
  const Scratch home;
  const Manager manager = launchd(job(home.path), 501);
  const std::string bootstrap = "launchctl bootstrap gui/501 " + manager.file;
  const std::string bootout = "launchctl bootout gui/501/dev.earshot.earshotd";
  REQUIRE(manager.file == home.path + "/Library/LaunchAgents/dev.earshot.earshotd.plist");
  Asked asked;
  REQUIRE(install(manager, asked.run(), asked.say()) == done);
  REQUIRE(asked.commands == std::vector<std::string>{bootstrap});
  Job other = job(home.path);
  other.words = {"--no-redact"};
  asked.commands.clear();
  REQUIRE(install(launchd(other, 501), asked.run(), asked.say()) == done);
  REQUIRE(asked.commands == std::vector<std::string>{bootout, bootstrap});
  asked.commands.clear();
  asked.code = 3;  // it was not loaded: no matter
  REQUIRE(uninstall(manager, asked.run(), asked.say()) == done);
  REQUIRE(asked.commands == std::vector<std::string>{bootout});
  REQUIRE_FALSE(std::filesystem::exists(manager.file));
}

TEST_CASE("without launchctl what is to be run is said") {
  const Scratch home;
  const Manager manager = launchd(job(home.path), 501);
  Asked asked;
  asked.code = -1;
  REQUIRE(install(manager, asked.run(), asked.say()) == untold);
  REQUIRE(std::filesystem::exists(manager.file));
  REQUIRE(asked.said[2] == "  launchctl bootstrap gui/501 " + manager.file);
}
