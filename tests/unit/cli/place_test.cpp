#include "cli/place.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

using namespace earshot;
using namespace earshot::cli;
namespace fs = std::filesystem;

TEST_CASE("the stream name of a session starts with its root") {
  const TranscriptPlace place = place_of("/home/u/.claude/projects/-home-u-api/2eaa.jsonl");
  CHECK(place.stream == "claude/-home-u-api/2eaa");
  CHECK(place.session == "2eaa");
  CHECK(place.agent.empty());
}

TEST_CASE("a subagent's file belongs to the session above it") {
  const TranscriptPlace place = place_of("/r/tree/projects/-p/2eaa/subagents/workflows/w1/agent-abc.jsonl");
  CHECK(place.stream == "tree/-p/2eaa/subagents/workflows/w1/agent-abc");
  CHECK(place.session == "2eaa");
  CHECK(place.agent == "abc");
}

TEST_CASE("session and agent are encoded in the same way as the stream") {
  const TranscriptPlace session = place_of("/r/.claude/projects/-p/a\n\x1b\xff%.jsonl");
  CHECK(session.stream == "claude/-p/a%0A%1B%FF%25");
  CHECK(session.session == "a%0A%1B%FF%25");
  const TranscriptPlace agent = place_of("/r/.claude/projects/-p/s:1/subagents/agent-\xc2\x85.jsonl");
  CHECK(agent.session == "s%3A1");
  CHECK(agent.agent == "%C2%85");
}

TEST_CASE("the session of a subagent's file in the project directory is not in the path") {
  const TranscriptPlace place = place_of("/r/.claude/projects/-p/agent-abc.jsonl");
  CHECK(place.session.empty());
  CHECK(place.agent == "abc");
}

TEST_CASE("the last directory called projects is used") {
  CHECK(place_of("/home/u/projects/x/.claude/projects/-p/s.jsonl").stream == "claude/-p/s");
  CHECK(place_of("/home/u/.claude/conversations/s.jsonl").stream == "claude/s");
}

TEST_CASE("outside of a root the stem is the name") {
  CHECK(place_of("/tmp/old/s.jsonl").stream == "s");
  CHECK(place_of("/tmp/old/s.jsonl").session == "s");
  CHECK(place_of("s.jsonl").session == "s");
  CHECK(place_of("-").stream == "stdin");
  CHECK(place_of("/projects/s.jsonl").session == "s");
}

TEST_CASE("a directory is searched in order without following links") {
  char name[] = "/tmp/earshot-cli-place-XXXXXX";
  REQUIRE(mkdtemp(name) != nullptr);
  const fs::path root = name;
  fs::create_directories(root / "b/c");
  fs::create_directories(root / "b/workflows/w");
  for (const char* file :
       {"b/c/2.jsonl", "a.jsonl", "b/1.jsonl", "b/workflows/w/journal.jsonl", "b/notes.txt"})
    std::ofstream(root / file) << "{}\n";
  fs::create_directory_symlink(root, root / "b/loop");
  fs::create_symlink(root / "a.jsonl", root / "link.jsonl");
  const TranscriptSearch search = transcripts_at(root.string());
  const TranscriptSearch none = transcripts_at((root / "none.jsonl").string());
  fs::remove_all(root);
  CHECK(search.errors.empty());
  CHECK(search.files == std::vector<std::string>{(root / "a.jsonl").string(), (root / "b/1.jsonl").string(),
                                                 (root / "b/c/2.jsonl").string()});
  CHECK(none.files.size() == 1);
}
