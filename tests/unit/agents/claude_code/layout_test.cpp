#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "agents/claude_code/layout.hpp"
#include "tail/roots.hpp"
#include "unit/watch/scratch.hpp"

using namespace earshot::tail;

namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
}

}  // namespace

TEST_CASE("names are plain UTF-8; what is not is percent-encoded, and comes back") {
  struct Row {
    std::string bytes, text;
  };
  const Row rows[] = {
      {"-home-u/2eaa", "-home-u/2eaa"},
      {"Grüße 漢 👋", "Grüße 漢 👋"},
      {"a:b%c", "a%3Ab%25c"},
      {"\xff\xc3", "%FF%C3"},
      {"\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80", "%C0%80 %ED%A0%80 %F4%90%80%80"},
      {"\n\x1b\x7f", "%0A%1B%7F"},
      {"\xc2\x85\xc2\xa0", "%C2%85\xc2\xa0"},
  };
  for (const Row& row : rows) {
    CHECK(percent(row.bytes) == row.text);
    CHECK(unpercent(row.text) == row.bytes);
  }
  for (const char* wrong : {"%", "%4", "%ZZ", "%41", "%3a", ":", "\xff"}) CHECK_FALSE(unpercent(wrong));
}

TEST_CASE("a stream's name says its file, and no two files have one name") {
  struct Row {
    TranscriptDir hall;
    std::string below, name;
  };
  const Row rows[] = {
      {TranscriptDir::projects, "-home-u/s", "-home-u/s"},
      {TranscriptDir::projects, "conversations/s", "%63onversations/s"},
      {TranscriptDir::projects, "conversations", "conversations"},
      {TranscriptDir::conversations, "s", "conversations/s"},
      {TranscriptDir::conversations, "conversations/s", "conversations/conversations/s"},
  };
  for (const Row& row : rows) {
    CHECK(stream_name(row.hall, row.below) == row.name);
    const auto place = place_of(row.name);
    REQUIRE(place);
    CHECK(place->hall == row.hall);
    CHECK(place->below == row.below);
  }
  CHECK_FALSE(place_of(""));
  CHECK_FALSE(place_of("%6"));
}

TEST_CASE("session and agent come from the path") {
  struct Row {
    std::string below, session, agent, directory;
  };
  const Row rows[] = {
      {"-w/s", "s", "", "-w"},
      {"s", "s", "", ""},
      {"-w/agent-1a2b", "", "1a2b", "-w"},
      {"-w/s/subagents/agent-a1", "s", "a1", "-w"},
      {"-w/s/subagents/workflows/run/agent-a1", "s", "a1", "-w"},
      {"subagents/agent-a1", "", "a1", "subagents"},
      {"-w/agent-", "agent-", "", "-w"},
  };
  for (const Row& row : rows) {
    const Identity identity = identity_of(row.below);
    CHECK(identity.session == row.session);
    CHECK(identity.agent == row.agent);
    CHECK(identity.directory == row.directory);
  }
}

TEST_CASE("which files are transcripts") {
  CHECK(kind_of("/-w", "s.jsonl") == FileKind::transcript);
  CHECK(kind_of("/-w", "agent-a1.jsonl") == FileKind::transcript);
  CHECK(kind_of("/-w", "journal.jsonl") == FileKind::transcript);
  CHECK(kind_of("/-w/s/subagents/workflows/r", "journal.jsonl") == FileKind::nothing);
  CHECK(kind_of("/-w", "history.jsonl") == FileKind::nothing);
  CHECK(kind_of("/-w", "agent-aprompt_suggestion-1.jsonl") == FileKind::nothing);
  CHECK(kind_of("/-w", "agent-acompact-1.jsonl") == FileKind::compaction);
  CHECK(kind_of("/-w/s/subagents", "agent-a1.meta.json") == FileKind::agent_meta);
  for (const char* name : {".jsonl", "s.json", "s.jsonl.tmp", "s.key", "s"})
    CHECK(kind_of("/-w", name) == FileKind::nothing);
}

TEST_CASE("roots: [NAME=]DIR") {
  const auto home = environment({{"HOME", "/home/u"}});
  const auto roots = parse_roots({"/srv/agents/", "work=/w/a=b", "~/.claude", "/x=y/.odd name!"}, home);
  REQUIRE(roots.error.empty());
  REQUIRE(roots.roots == std::vector<Root>{{"agents", "/srv/agents"},
                                           {"work", "/w/a=b"},
                                           {"claude", "/home/u/.claude"},
                                           {"odd-name-", "/x=y/.odd name!"}});
  CHECK(parse_roots({"/a/.claude", "/b/claude"}, home).error ==
        "two roots are called claude: /a/.claude and /b/claude; give one a name of its own: --root "
        "NAME=/b/claude");
  CHECK(parse_roots({"a b=/x"}, home).error.find("letters") != std::string::npos);
  CHECK(parse_roots({"=/x"}, home).error.find("letters") != std::string::npos);
  CHECK_FALSE(parse_roots({""}, home).error.empty());
  CHECK_FALSE(parse_roots({"name="}, home).error.empty());
}

TEST_CASE("roots: the default places, each once, whether they exist or not") {
  earshot::test::Scratch home;
  const auto of = [&](std::map<std::string, std::string> more = {}) {
    more["HOME"] = home.path();
    return default_roots(environment(std::move(more))).roots;
  };
  const Root claude{"claude", home / ".claude", false},
      config{"config-claude", home / ".config/claude", false};
  REQUIRE(of() == std::vector<Root>{claude, config});
  REQUIRE(of({{"CLAUDE_CONFIG_DIR", home / ".claude"}}) == std::vector<Root>{claude, config});
  std::filesystem::create_directories(home / ".claude");
  std::filesystem::create_directory_symlink(home / ".claude", home / "link");
  const auto linked = of({{"CLAUDE_CONFIG_DIR", home / "link"}});
  REQUIRE(linked == std::vector<Root>{{"link", home / "link", false}, {"claude", config.path, false}});
  REQUIRE(of({{"CLAUDE_CONFIG_DIR", "/x/claude-work/"}}).front() ==
          Root{"claude-work", "/x/claude-work", false});
  REQUIRE_FALSE(default_roots(environment({})).error.empty());
}
