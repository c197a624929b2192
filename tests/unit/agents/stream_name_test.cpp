#include "agents/stream_name.hpp"

#include <catch2/catch.hpp>

using namespace earshot;

TEST_CASE("names are UTF-8; other bytes are percent-encoded and can be decoded") {
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
    CHECK(percent_encode(row.bytes) == row.text);
    CHECK(percent_decode(row.text) == row.bytes);
  }
  for (const char* wrong : {"%", "%4", "%ZZ", "%41", "%3a", ":", "\xff"}) CHECK_FALSE(percent_decode(wrong));
}

TEST_CASE("a stream name identifies one file") {
  struct Row {
    std::size_t directory;
    std::string below, name;
  };
  const Row rows[] = {
      {0, "-home-u/s", "-home-u/s"},
      {0, "conversations/s", "%63onversations/s"},
      {0, "conversations", "conversations"},
      {1, "s", "conversations/s"},
      {1, "conversations/s", "conversations/conversations/s"},
  };
  for (const Row& row : rows) {
    CHECK(stream_name(default_program(), row.directory, row.below) == row.name);
    const auto path = parse_stream_name(default_program(), row.name);
    REQUIRE(path);
    CHECK(path->directory == row.directory);
    CHECK(path->below == row.below);
  }
  CHECK_FALSE(parse_stream_name(default_program(), ""));
  CHECK_FALSE(parse_stream_name(default_program(), "%6"));
}

TEST_CASE("a transcript is placed by its path alone, as discovery does") {
  struct Row {
    std::string path, stream, session, agent;
  };
  const Row rows[] = {
      {"/home/u/.claude/projects/-w/s.jsonl", "claude/-w/s", "s", ""},
      {"/home/u/.claude/conversations/s.jsonl", "claude/s", "s", ""},
      {"/home/u/.claude/conversations/conversations/s.jsonl", "claude/conversations/conversations/s", "s",
       ""},
      {"/home/u/projects/x/.claude/projects/conversations/s.jsonl", "claude/%63onversations/s", "s", ""},
      {"/r/projects/-w/s/subagents/workflows/subagents/agent-a1.jsonl",
       "r/-w/s/subagents/workflows/subagents/agent-a1", "s", "a1"},
      {"/tmp/copy.jsonl", "copy", "copy", ""},
      {"/tmp/agent-a1.jsonl", "agent-a1", "", "a1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const TranscriptPlace place = place_transcript(default_program(), row.path);
    CHECK(place.stream == row.stream);
    CHECK(place.session == row.session);
    CHECK(place.agent == row.agent);
  }
  CHECK(is_transcript_path(default_program(), "/r/projects/-w/journal.jsonl"));
  CHECK_FALSE(is_transcript_path(default_program(), "/r/projects/-w/s/subagents/workflows/r/journal.jsonl"));
}
