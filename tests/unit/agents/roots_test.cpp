#include "agents/roots.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "unit/support/raw_files.hpp"

using namespace earshot;

namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> std::optional<std::string> {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
}

}  // namespace

TEST_CASE("roots are given as [PROGRAM:][NAME=]DIR") {
  const auto home = environment({{"HOME", "/home/u"}});
  const auto roots = parse_roots({"/srv/agents/", "work=/w/a=b", "~/.claude", "/x=y/.odd name!"}, home);
  REQUIRE(roots.error.empty());
  REQUIRE(roots.roots == std::vector<Root>{{"agents", "/srv/agents"},
                                           {"work", "/w/a=b"},
                                           {"claude", "/home/u/.claude"},
                                           {"odd-name-", "/x=y/.odd name!"}});
  CHECK(parse_roots({"/a/.claude", "/b/claude"}, home).error ==
        "two roots are called claude: /a/.claude and /b/claude; give one of them another name: --root "
        "NAME=/b/claude");
  CHECK(parse_roots({"a b=/x"}, home).error.find("letters") != std::string::npos);
  CHECK(parse_roots({"=/x"}, home).error.find("letters") != std::string::npos);
  CHECK_FALSE(parse_roots({""}, home).error.empty());
  CHECK_FALSE(parse_roots({"name="}, home).error.empty());
  const auto named = parse_roots({"codex:work=/w/x", "pi:~/p", "copilot:/c:d=e"}, home);
  REQUIRE(named.error.empty());
  REQUIRE(named.roots == std::vector<Root>{{"work", "/w/x", true, find_agent_program("codex")},
                                           {"p", "/home/u/p", true, find_agent_program("pi")},
                                           {"c-d-e", "/c:d=e", true, find_agent_program("copilot")}});
  CHECK(parse_roots({"cobol:/x"}, home).error ==
        "root /x: there is no agent program \"cobol\"; known are claude-code, codex, copilot, pi");
}

TEST_CASE("what is in a directory tells whose root it is") {
  test::TemporaryDirectory scratch;
  const auto program_in = [&](const std::string& name, const std::vector<std::string>& entries) {
    const std::filesystem::path directory = scratch / name;
    std::filesystem::create_directories(directory);
    for (const std::string& entry : entries) std::filesystem::create_directories(directory / entry);
    const Roots roots = parse_roots({directory.string()}, environment({}));
    return roots.error.empty() ? std::string(roots.roots.front().program->program()) : roots.error;
  };
  CHECK(program_in("a", {"projects/-home-ada", "sessions"}) == "claude-code");
  CHECK(program_in("b", {"sessions/2026/11", "log"}) == "codex");
  CHECK(program_in("c", {"archived_sessions"}) == "codex");
  CHECK(program_in("d", {"session-state/6f0c", "logs"}) == "copilot");
  CHECK(program_in("e", {"sessions/--home-ada-lamp--"}) == "pi");
  CHECK(program_in("f", {}) == "claude-code");        // empty: the default
  CHECK(program_in("g/.codex", {"log"}) == "codex");  // by its name
  CHECK(program_in("h/.pi/agent", {}) == "pi");
  const std::string unknown = program_in("i", {"photos"});
  CHECK(unknown.find("no agent program's files are in it; say whose it is: --root PROGRAM:") != unknown.npos);
  CHECK(unknown.ends_with("(claude-code, codex, copilot, pi)"));
  const std::string several = program_in("j", {"projects", "session-state"});
  CHECK(several.find("several agent programs are in it (claude-code, copilot)") != several.npos);
}

TEST_CASE("the transcripts of a root are those of its program") {
  test::TemporaryDirectory scratch;
  for (const char* file : {"sessions/2026/11/20/rollout-1.jsonl", "sessions/2026/11/20/notes.jsonl",
                           "history.jsonl", "archived_sessions/rollout-2.jsonl"}) {
    std::filesystem::create_directories(std::filesystem::path(scratch / file).parent_path());
    std::ofstream(scratch / file) << "{}\n";
  }
  const std::vector<std::string> rollouts = {scratch / "archived_sessions/rollout-2.jsonl",
                                             scratch / "sessions/2026/11/20/rollout-1.jsonl"};
  CHECK(transcripts_at(scratch.path()).files == rollouts);
  CHECK(transcripts_of({"codex", scratch.path(), true, find_agent_program("codex")}).files == rollouts);
  CHECK(transcripts_of({"claude", scratch.path()}).files.empty());
}

TEST_CASE("a search can include the transcripts of internal calls") {
  test::TemporaryDirectory scratch;
  for (const char* file : {"projects/-p/5e55.jsonl", "projects/-p/5e55/subagents/agent-acompact-1.jsonl",
                           "projects/-p/5e55/subagents/agent-1.meta.json"})
    scratch.write(file, "{}\n");
  const Root root{"claude", scratch.path()};
  CHECK(transcripts_of(root).files == std::vector<std::string>{scratch / "projects/-p/5e55.jsonl"});
  CHECK(transcripts_of(root, Unfollowed::include).files ==
        std::vector<std::string>{scratch / "projects/-p/5e55.jsonl",
                                 scratch / "projects/-p/5e55/subagents/agent-acompact-1.jsonl"});
}

TEST_CASE("default roots are listed once each, whether they exist or not") {
  test::TemporaryDirectory home;
  const auto of = [&](std::map<std::string, std::string> more = {}) {
    more["HOME"] = home.path();
    return default_roots(environment(std::move(more))).roots;
  };
  const Root claude{"claude", home / ".claude", false},
      config{"config-claude", home / ".config/claude", false},
      codex{"codex", home / ".codex", false, find_agent_program("codex")},
      copilot{"copilot", home / ".copilot", false, find_agent_program("copilot")},
      pi{"pi", home / ".pi/agent", false, find_agent_program("pi")};
  REQUIRE(of() == std::vector<Root>{claude, config, codex, copilot, pi});
  REQUIRE(of({{"CLAUDE_CONFIG_DIR", home / ".claude"}}) == of());
  const auto configured =
      of({{"CODEX_HOME", "/x/c"}, {"COPILOT_HOME", " "}, {"PI_CODING_AGENT_DIR", "/x/p"}});
  REQUIRE(
      configured ==
      std::vector<Root>{
          claude, config, {"c", "/x/c", false, codex.program}, copilot, {"p", "/x/p", false, pi.program}});
  std::filesystem::create_directories(home / ".claude");
  std::filesystem::create_directory_symlink(home / ".claude", home / "link");
  const auto linked = of({{"CLAUDE_CONFIG_DIR", home / "link"}});
  REQUIRE(linked == std::vector<Root>{
                        {"link", home / "link", false}, {"claude", config.path, false}, codex, copilot, pi});
  REQUIRE(of({{"CLAUDE_CONFIG_DIR", "/x/claude-work/"}}).front() ==
          Root{"claude-work", "/x/claude-work", false});
  REQUIRE_FALSE(default_roots(environment({})).error.empty());
}

TEST_CASE("fault 133: Pi's sessions are where a variable or its settings say") {
  test::TemporaryDirectory home;
  const std::string agent = home / ".pi/agent";
  std::filesystem::create_directories(agent + "/sessions");
  const auto of = [&](std::map<std::string, std::string> more) {
    more["HOME"] = home.path();
    std::vector<std::string> paths;
    for (const Root& root : default_roots(environment(std::move(more))).roots)
      if (root.program->program() == "pi") paths.push_back(root.path);
    return paths;
  };
  using Paths = std::vector<std::string>;
  const std::string flat = home / "flat";
  CHECK(of({{"PI_CODING_AGENT_SESSION_DIR", flat}}) == Paths{agent, flat});
  CHECK(of({{"PI_CODING_AGENT_SESSION_DIR", agent + "/sessions"}}) == Paths{agent});
  for (const auto& [settings, moved] :
       std::map<std::string, Paths>{{R"({"theme":"dark","sessionDir":"~/flat"})", {agent, flat}},
                                    {R"({"sessionDir":"/srv/pi"})", {agent, "/srv/pi"}},
                                    {R"({"sessionDir":".pi/sessions"})", {agent}},  // of each project
                                    {R"({"sessionDir":7})", {agent}},
                                    {"{", {agent}}}) {
    std::ofstream(agent + "/settings.json") << settings;
    CHECK(of({}) == moved);
  }

  const std::string name = "/2026-11-28T10-00-00-000Z_0198c0de.jsonl";
  std::filesystem::create_directories(flat + "/sessions");
  for (const std::string& file : {name, std::string("/history.jsonl")}) std::ofstream(flat + file) << "{}\n";
  const Roots roots = parse_roots({flat}, environment({}));
  REQUIRE(roots.roots.size() == 1);
  CHECK(roots.roots.front().program->program() == "pi");
  CHECK(transcripts_of(roots.roots.front()).files == Paths{flat + name});
  CHECK(transcripts_at(flat).files == Paths{flat + name});
}

TEST_CASE("a directory is searched in order without following links") {
  char name[] = "/tmp/earshot-roots-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const std::filesystem::path root = name;
  std::filesystem::create_directories(root / "b/c");
  std::filesystem::create_directories(root / "b/workflows/w");
  for (const char* file :
       {"b/c/2.jsonl", "a.jsonl", "b/1.jsonl", "b/workflows/w/journal.jsonl", "b/notes.txt"})
    std::ofstream(root / file) << "{}\n";
  std::filesystem::create_directory_symlink(root, root / "b/loop");
  std::filesystem::create_symlink(root / "a.jsonl", root / "link.jsonl");
  const TranscriptSearch search = transcripts_at(root.string());
  const TranscriptSearch none = transcripts_at((root / "none.jsonl").string());
  std::filesystem::remove_all(root);
  CHECK(search.errors.empty());
  CHECK(search.files == std::vector<std::string>{(root / "a.jsonl").string(), (root / "b/1.jsonl").string(),
                                                 (root / "b/c/2.jsonl").string()});
  CHECK(none.files.size() == 1);
}
