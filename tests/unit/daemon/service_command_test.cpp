#include "service_command.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/support/temporary_directory.hpp"

using namespace earshot::service;
using earshot::test::TemporaryDirectory;

namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

bool has(std::string_view text, std::string_view what) { return text.find(what) != text.npos; }

ServiceSpec make_spec(const std::string& home) {
  return {.program = "/opt/earshotd", .home = home, .state = home + "/.local/state/earshot"};
}

/// Records commands and output; every command exits with `code`.
struct FakeManager {
  int code = 0;
  std::vector<std::string> commands, printed;
  Run run() {
    return [this](const std::vector<std::string>& words) {
      std::string line;
      for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
      commands.push_back(line);
      return code;
    };
  }
  Print print() {
    return [this](const std::string& line) { printed.push_back(line); };
  }
};

}  // namespace

TEST_CASE("the embedded unit contains each replaced text once") {
  REQUIRE(count(unit_file, "\nExecStart=/usr/bin/earshotd\n") == 1);
  REQUIRE(count(unit_file, "\nExecStartPre=+mkdir -p -m 0700 \"%h/.local/state/earshot\"\n") == 1);
  REQUIRE(count(unit_file, "\nReadWritePaths=\"%h/.local/state/earshot\"\n") == 1);
  REQUIRE(count(unit_file, "\nPrivateTmp=yes\n") == 1);
  REQUIRE(count(unit_file, "\nRequires=earshot.socket\nAfter=earshot.socket\n") == 1);
  REQUIRE(count(unit_file, "\nAlso=earshot.socket\n") == 1);
  REQUIRE(count(socket_file, "\nListenStream=127.0.0.1:7717\n") == 1);
}

TEST_CASE("the embedded property list contains each replaced text once") {
  REQUIRE(count(plist_file, "    <string>/usr/local/bin/earshotd</string>\n") == 1);
  REQUIRE(count(plist_file, "  <key>RunAtLoad</key>\n") == 1);
  REQUIRE(count(plist_file, "/Users/you/Library/Logs/earshotd.log") == 2);
}

TEST_CASE("arguments are quoted so that systemd passes them unchanged") {
  REQUIRE(quote_argument("plain") == "\"plain\"");
  REQUIRE(quote_argument("") == "\"\"");
  REQUIRE(quote_argument("a b;") == "\"a b;\"");
  REQUIRE(quote_argument("50%h $HOME ${X}") == "\"50%%h $$HOME $${X}\"");
  REQUIRE(quote_argument("\"\\'") == "\"\\\"\\\\'\"");
  REQUIRE(quote_path("/a $b %c") == "\"/a $b %%c\"");
}

TEST_CASE("values that a unit cannot hold are refused with the reason") {
  ServiceSpec broken = make_spec("/home/ada");
  SECTION("a line break in an option") { broken.arguments = {"--host", "two\nlines"}; }
  SECTION("a quote in the program's path") { broken.program = "/opt/\"/earshotd"; }
  SECTION("a backslash in the program's path") { broken.program = "/opt/\\/earshotd"; }
  SECTION("a control character in a directory") { broken.state = "/home/ada/\x1b"; }
  const RenderedFile text = render_unit(broken);
  REQUIRE(text.text.empty());
  REQUIRE_FALSE(text.error.empty());
}

TEST_CASE("PrivateTmp is off when a needed path is below /tmp") {
  ServiceSpec hidden = make_spec("/home/ada");
  REQUIRE(has(render_unit(hidden).text, "\nPrivateTmp=yes\n"));
  SECTION("a root") { hidden.readable = {"/home/ada/.claude", "/tmp/agents"}; }
  SECTION("the state") { hidden.state = "/var/tmp/state"; }
  SECTION("the program") { hidden.program = "/tmp/earshotd"; }
  SECTION("a socket") { hidden.writable = {"/tmp/x"}; }
  REQUIRE(has(render_unit(hidden).text, "\nPrivateTmp=no\n"));
}

TEST_CASE("fault 144: a socket keeps the port, unless any free one is wanted") {
  ServiceSpec spec = make_spec("/home/ada");
  REQUIRE(render_socket(spec).empty());
  REQUIRE_FALSE(has(render_unit(spec).text, "=earshot.socket"));
  spec.listen = "[::1]:7718";
  REQUIRE(count(render_socket(spec), "\nListenStream=[::1]:7718\n") == 1);
  REQUIRE(is_unmodified(render_socket(spec)));
  REQUIRE(count(render_unit(spec).text, "=earshot.socket\n") == 3);
}

TEST_CASE("the checksum detects a change of any byte") {
  const std::string text = with_checksum("one\ntwo\n", "# ", "");
  REQUIRE(is_unmodified(text));
  REQUIRE(is_unmodified(with_checksum("<a/>\n", "<!-- ", " -->")));
  REQUIRE_FALSE(is_unmodified(""));
  REQUIRE_FALSE(is_unmodified("one\ntwo\n"));
  REQUIRE_FALSE(is_unmodified(text + "three\n"));
  REQUIRE_FALSE(is_unmodified("\n" + text));
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = other[at] == 'x' ? 'y' : 'x';
    REQUIRE_FALSE(is_unmodified(other));
  }
}

TEST_CASE("a property list contains arguments, variables and the home directory") {
  ServiceSpec mac = make_spec("/Users/ada & bob");
  mac.arguments = {"--root", "w=/a<b>&\"c\""};
  mac.environment = {{"CLAUDE_CONFIG_DIR", "/x&y"}};
  const std::string text = render_plist(mac).text;
  REQUIRE(has(text,
              "    <string>/opt/earshotd</string>\n    <string>--root</string>\n"
              "    <string>w=/a&lt;b&gt;&amp;\"c\"</string>\n"));
  REQUIRE(has(text,
              "<key>EnvironmentVariables</key>\n  <dict>\n    <key>CLAUDE_CONFIG_DIR</key>\n"
              "    <string>/x&amp;y</string>\n  </dict>\n  <key>RunAtLoad</key>"));
  REQUIRE(count(text, "<string>/Users/ada &amp; bob/Library/Logs/earshotd.log</string>") == 2);
  REQUIRE_FALSE(has(text, "/Users/you/Library"));
  REQUIRE(is_unmodified(text));
  for (std::size_t at = text.find("<!--"); at != text.npos; at = text.find("<!--", at)) {
    const std::size_t dashes = text.find("--", at + 4);
    REQUIRE(text.substr(dashes, 3) == "-->");  // XML allows no `--` inside a comment
    at = dashes;
  }
}

TEST_CASE("launchd unloads the old service before it loads the new one") {
  const TemporaryDirectory home;
  const Manager manager = launchd(make_spec(home.path()), 501);
  const std::string file = manager.files.front().path;
  const std::string bootstrap = "launchctl bootstrap gui/501 " + file;
  const std::string bootout = "launchctl bootout gui/501/dev.earshot.earshotd";
  REQUIRE(file == home.path() + "/Library/LaunchAgents/dev.earshot.earshotd.plist");
  FakeManager fake;
  REQUIRE(install(manager, fake.run(), fake.print()) == done);
  REQUIRE(fake.commands == std::vector<std::string>{bootstrap});
  ServiceSpec other = make_spec(home.path());
  other.arguments = {"--no-redact"};
  fake.commands.clear();
  REQUIRE(install(launchd(other, 501), fake.run(), fake.print()) == done);
  REQUIRE(fake.commands == std::vector<std::string>{bootout, bootstrap});
  fake.commands.clear();
  fake.code = 3;  // not loaded: not an error
  REQUIRE(uninstall(manager, fake.run(), fake.print()) == done);
  REQUIRE(fake.commands == std::vector<std::string>{bootout});
  REQUIRE_FALSE(std::filesystem::exists(file));
}

TEST_CASE("without launchctl the commands to run are printed") {
  const TemporaryDirectory home;
  const Manager manager = launchd(make_spec(home.path()), 501);
  FakeManager fake;
  fake.code = -1;
  REQUIRE(install(manager, fake.run(), fake.print()) == no_manager);
  REQUIRE(std::filesystem::exists(manager.files.front().path));
  REQUIRE(fake.printed[2] == "  launchctl bootstrap gui/501 " + manager.files.front().path);
}
