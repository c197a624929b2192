#include "agents/stream_name.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace earshot;

TEST_CASE("names are UTF-8, other bytes are percent-encoded and can be decoded") {
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

TEST_CASE("an escaped name is one token and can be reversed") {
  struct Row {
    std::string text, escaped;
  };
  const Row rows[] = {
      {"dev7", "dev7"},
      {"ada.example", "ada=2Eexample"},
      {"claude/-home-ada/6f0c", "claude=2F-home-ada=2F6f0c"},
      {"a b*>\t", "a=20b=2A=3E=09"},
      {"=", "=3D"},
      {"", "="},
      {"Grüße", "Gr=C3=BC=C3=9Fe"},
      {std::string("\0\xff", 2), "=00=FF"},
  };
  for (const Row& row : rows) {
    CHECK(escape_token(row.text) == row.escaped);
    CHECK(unescape_token(row.escaped) == row.text);
  }
  for (const char* wrong : {"a.b", "=4", "=zz", "=41", "=2f", "a b", "=="})
    CHECK_FALSE(unescape_token(wrong));
}

TEST_CASE("the length of an escaped name is limited, and long names with the same prefix differ") {
  const std::string first(400, 'x'), second = first + "y", spaces(100, ' ');
  for (const std::string& text : {first, second, spaces}) {
    CHECK(escape_token(text).size() == escaped_bytes_max);
    CHECK_FALSE(unescape_token(escape_token(text)));
  }
  CHECK(escape_token(first) != escape_token(second));
}

TEST_CASE("100,000 similar names have different escaped names") {
  std::mt19937_64 dice(7);
  const std::string alphabet = "a=.2F/E0 \xc3";
  std::set<std::string> names, escaped;
  while (names.size() < 100'000) {
    std::string name;
    for (auto n = dice() % 9; n > 0; --n) name += alphabet[dice() % alphabet.size()];
    names.insert(name);
  }
  for (const std::string& name : names) escaped.insert(escape_token(name));
  CHECK(escaped.size() == names.size());
}

TEST_CASE("the name of a stored file identifies host, session and agent") {
  const auto below = [](const std::string& host, const std::string& stream) {
    return escape_token(host) + "/" + escape_token(stream);
  };
  const StreamIdentity main = relayed_identity(below("ada.example", "claude/-home-ada/6f0c"));
  CHECK(main.session == "6f0c@ada.example");
  CHECK(main.agent.empty());
  CHECK(main.directory == "-home-ada");
  const StreamIdentity agent = relayed_identity(below("bob", "claude/-p/6f0c/subagents/agent-a1"));
  CHECK(agent.session == "6f0c@bob");
  CHECK(agent.agent == "a1");
  CHECK(relayed_identity(below("bob", "claude/-p/agent-a1")).session.empty());
  CHECK(relayed_identity(below("bob", "claude/" + std::string(300, 'x'))).session.empty());
  for (const std::string stream :
       {"codex/2026/03/14/rollout-2026-03-14T09-26-50-019a6e3c-5b1f-7a20-9c44-d0a1b2c3d4e5",
        "codex/archived_sessions/rollout-2026-03-14T09-26-50-019a6e3c-5b1f-7a20-9c44-d0a1b2c3d4e5",
        "copilot/7d5c1f00/events", "pi/--home-ada--/2026-03-14T09-26-50-101Z_4d1a90c7"}) {
    INFO(stream);  // the events name the session and the agent
    CHECK(relayed_identity(below("bob", stream)).session.empty());
    CHECK(relayed_identity(below("bob", stream)).agent.empty());
  }
  CHECK(relayed_identity("nothing").session.empty());
}

TEST_CASE("a path below a program's transcripts names the program") {
  struct Row {
    std::string path, program;
  };
  for (const Row& row : {Row{"/h/.claude/projects/-p/a.jsonl", "claude-code"},
                         Row{"/h/.codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-x.jsonl", "codex"},
                         Row{"/h/.codex/archived_sessions/rollout-x.jsonl", "codex"},
                         Row{"/h/.copilot/session-state/s/events.jsonl", "copilot"},
                         Row{"/h/.pi/agent/sessions/--p--/2026_x.jsonl", "pi"},
                         Row{"/h/.copilot/session-state/s/other.jsonl", "claude-code"},
                         Row{"/h/a.jsonl", "claude-code"}, Row{"-", "claude-code"}}) {
    CAPTURE(row.path);
    CHECK(program_of_path(row.path).program() == row.program);
  }
}
