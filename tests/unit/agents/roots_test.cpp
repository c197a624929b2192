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

TEST_CASE("roots are given as [NAME=]DIR") {
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
}

TEST_CASE("default roots are listed once each, whether they exist or not") {
  test::TemporaryDirectory home;
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
