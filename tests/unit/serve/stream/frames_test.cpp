#include "serve/stream/frames.hpp"

#include <catch2/catch.hpp>

#include "unit/serve/support.hpp"
#include "unit/support/fake_filter.hpp"

using namespace earshot;
using namespace earshot::serve;
using test::at;
using test::FakeStream;
using test::payload_of;

namespace {

/// JSON pointers and the values there.
void check(const std::string& frame, const std::vector<std::pair<std::string, std::string>>& expected) {
  CAPTURE(frame);
  for (const auto& [pointer, value] : expected) {
    CAPTURE(pointer);
    REQUIRE(at(frame, pointer) == value);
  }
}

}  // namespace

TEST_CASE("a session frame has the state of its session") {
  FakeStream stream("claude/-home-u-api/s1", "s1");
  stream.write(test::prompt(0, "fix the flaky test"), nullptr);
  stream.write(test::call(1, "Bash", R"({"command":"npm test"})", "call-1"), nullptr);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(stream);
  const std::string frame = payload_of(sessions, session);
  check(frame, {{"/type", "\"session\""},
                {"/host", "\"dev7\""},
                {"/session", "\"s1\""},
                {"/cursors", "[\"claude/-home-u-api/s1:" + to_string(stream.transcript()->end()) + "\"]"},
                {"/project", "\"/home/u/api\""},
                {"/directory", "\"-home-u-api\""},
                {"/model", "\"opus\""},
                {"/version", "\"2.1.330\""},
                {"/git_branch", "\"main\""},
                {"/status/state", "\"unknown\""},
                {"/turn/number", "1"},
                {"/turn/open", "true"},
                {"/turn/prompt", "\"fix the flaky test\""},
                {"/turn/started", "\"2026-03-01T10:00:00.000Z\""},
                {"/turn/outcome", "absent"},
                {"/tools/0/call", "\"call-1\""},
                {"/tools/0/tool", "\"Bash\""},
                {"/tools/0/input", R"({"command":"npm test"})"},
                {"/tools/1", "absent"},
                {"/todos", "[]"},
                {"/agents", "[]"},
                {"/usage/input", "10"},
                {"/usage/cache_read", "100"},
                {"/usage/cost_usd", "absent"},
                {"/last_activity", "\"2026-03-01T10:00:01.000Z\""},
                {"/title", "absent"}});
}

TEST_CASE("texts of users and tools are redacted, ids are not") {
  const test::FakeFilter fake_filter;
  FakeStream stream("claude/-home-lamp/s-lamp", "s-lamp");
  stream.write(test::prompt(0, "light the lamp", "/home/lamp"), nullptr);
  stream.write(test::call(1, "lamp", R"({"command":"x"})", "lamp-1"), nullptr);
  SessionStore sessions("lamp");
  Session& session = sessions.session_of(stream);
  session.todos = FileTodos{{{"1", "buy a lamp", "pending", "buying a lamp", ""}}, "2027-01-01T00:00:00Z"};
  session.status.emplace();
  session.status->detail = "approve lamp";
  const std::string frame = session_payload(session, "lamp", {.filter = &fake_filter});
  check(frame, {{"/host", "\"lamp\""},
                {"/session", "\"s-lamp\""},
                {"/project", "\"/home/******\""},
                {"/turn/prompt", "\"light the ******\""},
                {"/tools/0/tool", "\"******\""},
                {"/tools/0/call", "\"lamp-1\""},
                {"/todos/0/content", "\"buy a ******\""},
                {"/todos/0/active_form", "\"buying a ******\""},
                {"/status/detail", "\"approve ******\""}});
  REQUIRE(at(session_payload(session, "lamp"), "/todos/0/content") == "\"buy a lamp\"");
}

TEST_CASE("a cut text is a string, and `truncated` has its path and size") {
  FakeStream stream("claude/p/s1", "s1");
  stream.write(test::prompt(0, "hello"), nullptr);
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  REQUIRE(at(payload_of(sessions, session), "/truncated") == "absent");
  session.todos =
      FileTodos{{{"1", "short", "pending", "", ""}, {"2", std::string(600, 'x'), "pending", "", ""}},
                "2027-01-01T00:00:00Z"};
  const std::string frame = session_payload(session, "h");
  REQUIRE(at(frame, "/todos/1/content") == "\"" + std::string(512, 'x') + "\"");
  REQUIRE(at(frame, "/truncated") == R"({"todos/1/content":600})");
  REQUIRE(frame.ends_with(R"(,"truncated":{"todos/1/content":600}})"));
  const std::string meta = session_payload(session, "h", {.view = View::meta});
  REQUIRE(at(meta, "/todos/1/content") == "absent");
  REQUIRE(at(meta, "/truncated") == "absent");
}

TEST_CASE("a subagent is listed with its call, its tools and its tokens") {
  FakeStream main("claude/p/s1", "s1"), agent("claude/p/s1/subagents/agent-a7", "s1", "a7");
  main.write(test::prompt(0, "look around"), nullptr);
  main.write(
      test::call(1, "Task", R"({"description":"count files","subagent_type":"scout","prompt":"count"})",
                 "call-9"),
      nullptr);
  agent.write(test::prompt(0, "count"), nullptr);
  agent.write(test::call(1, "Grep", R"({"pattern":"x"})", "call-10"), nullptr);
  SessionStore sessions("h");
  sessions.session_of(main);
  Session& session = sessions.session_of(agent);

  SECTION("attached by the call that its meta file names") {
    agent.meta_.call = "call-9";
    agent.meta_.agent_type = "scout";
    const std::string frame = payload_of(sessions, session);
    check(frame, {{"/agents/0/agent", "\"a7\""},
                  {"/agents/0/agent_type", "\"scout\""},
                  {"/agents/0/description", "\"count files\""},
                  {"/agents/0/call", "\"call-9\""},
                  {"/agents/0/tools/0/tool", "\"Grep\""},
                  {"/agents/1", "absent"},
                  {"/tools/0/tool", "\"Task\""},
                  {"/tools/1", "absent"},
                  {"/usage/input", "20"}});
    REQUIRE(at(frame, "/cursors/1").find("agent-a7:") != std::string::npos);
  }
  SECTION("not attached, it is listed beside the call while it works") {
    const std::string frame = payload_of(sessions, session);
    check(frame,
          {{"/agents/0/call", "\"call-9\""}, {"/agents/0/agent", "absent"}, {"/agents/1/agent", "\"a7\""}});
  }
  SECTION("the status tracker receives every open call, oldest first") {
    const status::TranscriptSummary said = transcript_summary(session);
    REQUIRE(said.known);
    REQUIRE(said.turn_open);
    REQUIRE(said.turn_started == "2026-03-01T10:00:00.000Z");
    REQUIRE(said.calls.size() == 2);
    REQUIRE(said.calls[0].call == "call-9");
    REQUIRE(said.calls[0].agent == "");
    REQUIRE(said.calls[1].call == "call-10");
    REQUIRE(said.calls[1].agent == "a7");
    REQUIRE(said.last_growth_ms == std::max(main.modified_ms(), agent.modified_ms()));
  }
}

TEST_CASE("todos of files are used only if those of the transcript are older") {
  FakeStream stream("claude/p/s1", "s1");
  stream.write(test::prompt(0, "x"), nullptr);
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  Todo todo;
  todo.content = "from a file";
  todo.status = "pending";
  session.todos = FileTodos{{todo}, "2026-03-01T10:00:30.000Z"};
  REQUIRE(at(payload_of(sessions, session), "/todos/0/content") == "\"from a file\"");
  stream.write(
      test::call(100, "TodoWrite",
                 R"({"todos":[{"content":"from the transcript","status":"in_progress","activeForm":"x"}]})",
                 "c"),
      nullptr);
  stream.write(test::result(101, "c", "ok"), nullptr);
  session.frames = {};
  REQUIRE(at(payload_of(sessions, session), "/todos/0/content") == "\"from the transcript\"");
  session.todos->time = "2026-03-02T00:00:00.000Z";
  session.frames = {};
  REQUIRE(at(payload_of(sessions, session), "/todos/0/content") == "\"from a file\"");
}

TEST_CASE("an error frame has its id, code and message") {
  REQUIRE(error_frame("a", "limit", "too many") ==
          R"({"type":"error","id":"a","code":"limit","message":"too many","retry":false})");
  REQUIRE(error_frame("", "bad_message", "\"") ==
          R"({"type":"error","code":"bad_message","message":"\"","retry":false})");
}
