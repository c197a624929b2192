#include "serve/stream/frames.hpp"

#include <catch2/catch.hpp>

#include "agents/codex/program.hpp"
#include "unit/serve/support.hpp"
#include "unit/support/fake_filter.hpp"

namespace frames_test {

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

namespace {

std::string rollout_line(int second, const std::string& type, const std::string& payload) {
  return R"({"timestamp":"2026-03-01T10:00:0)" + std::to_string(second) + R"(.000Z","type":")" + type +
         R"(","payload":)" + payload + "}\n";
}

std::string rollout_meta(const std::string& members) {
  return rollout_line(
      0, "session_meta",
      R"({"id":"r1","cwd":"/home/u/api","cli_version":"0.140.0","originator":"codex-tui")" + members + "}");
}

/// A token count with the account's limits.
std::string rollout_usage(int second, int tokens, const std::string& used_percent) {
  const std::string count = R"({"input_tokens":)" + std::to_string(tokens) + R"(,"output_tokens":10})";
  return rollout_line(
      second, "event_msg",
      R"({"type":"token_count","info":{"total_token_usage":)" + count + R"(,"last_token_usage":)" + count +
          R"(,"model_context_window":258400},"rate_limits":{"limit_id":"codex","plan_type":"plus",)" +
          R"("primary":{"used_percent":)" + used_percent +
          R"(,"window_minutes":300,"resets_at":1795390000}}})");
}

}  // namespace

TEST_CASE("a session of Codex: sandbox, size of the context, and the account's limits") {
  const RecordFormat& format = codex::program().format();
  FakeStream main("codex/2026/03/01/rollout-r1", "r1", {}, &format);
  main.write(rollout_meta(R"(,"source":"cli")"), nullptr);
  main.write(rollout_line(1, "turn_context",
                          R"({"model":"m","approval_policy":"never","sandbox_policy":{"type":"read-only"}})"),
             nullptr);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(main);
  check(session_payload(session, "dev7"), {{"/limits", "absent"}, {"/usage/context_window", "absent"}});

  main.write(rollout_line(2, "event_msg", R"({"type":"user_message","message":"go"})"), nullptr);
  main.write(rollout_usage(3, 1300, "12.5"), nullptr);
  const std::string limits =
      R"({"time":"2026-03-01T10:00:03.000Z","limit":"codex","plan":"plus","windows":[)"
      R"({"name":"primary","used_percent":12.5,"window_minutes":300,"resets_at":"2026-11-22T23:26:40Z"}]})";
  for (const View view : {View::full, View::meta})
    check(session_payload(session, "dev7", {.view = view}), {{"/program", "\"codex\""},
                                                             {"/permission_mode", "\"never\""},
                                                             {"/sandbox", "\"read-only\""},
                                                             {"/source", "\"cli\""},
                                                             {"/originator", "\"codex-tui\""},
                                                             {"/usage/context_window", "258400"},
                                                             {"/limits", "[" + limits + "]"}});

  // A newer statement of a subagent's stream is valid for the session; the older one of the main stream is
  // not.
  FakeStream agent("codex/2026/03/01/rollout-r2", "r1", "r2", &format);
  agent.write(rollout_meta(R"(,"thread_source":"subagent","agent_role":"scout")"), nullptr);
  agent.write(rollout_usage(5, 100, "60"), nullptr);
  sessions.session_of(agent);
  check(session_payload(session, "dev7"), {{"/limits/0/windows/0/used_percent", "60"},
                                           {"/limits/1", "absent"},
                                           {"/usage/context_window", "258400"}});
  main.write(rollout_usage(4, 1400, "30"), nullptr);
  check(session_payload(session, "dev7"), {{"/limits/0/windows/0/used_percent", "60"}});
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

TEST_CASE("fault 139: a session with any number of long open calls is not too large for a frame") {
  const auto write_calls = [](FakeStream& stream) {
    stream.write(test::prompt(0, "much at once"), nullptr);
    std::string lines;
    for (int n = 1; n <= 300; ++n)
      lines += test::call(n, "Bash", R"({"command":")" + std::string(4000, 'x') + R"("})",
                          "call-" + std::to_string(n));
    stream.write(lines, nullptr);
  };
  FakeStream main("claude/p/s1", "s1");
  write_calls(main);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(main);
  std::vector<std::unique_ptr<FakeStream>> agents;
  for (int n = 0; n < 30; ++n) {
    const std::string id = "a" + std::to_string(n);
    agents.push_back(std::make_unique<FakeStream>("claude/p/s1/subagents/agent-" + id, "s1", id));
    write_calls(*agents.back());
    sessions.session_of(*agents.back());
  }
  const std::string frame = payload_of(sessions, session);
  CHECK(frame.size() < 8U << 20);
  check(frame, {{"/type", "\"session\""},
                {"/session", "\"s1\""},
                {"/tools/0/call", "\"call-1\""},
                {"/tools/200/call", "\"call-201\""},
                {"/tools/299", "absent"},
                {"/agents/3/agent", "\"a3\""},
                {"/agents/3/tools/299", "absent"},
                {"/agents/29", "absent"}});
}

TEST_CASE("a subagent is listed with its call, its tools and its tokens") {
  FakeStream main("claude/p/s1", "s1"), agent("claude/p/s1/subagents/agent-a7", "s1", "a7");
  main.write(test::prompt(0, "look around"), nullptr);
  main.write(
      test::call(1, "Task", R"({"description":"count files","subagent_type":"scout","prompt":"count"})",
                 "call-9"),
      nullptr);
  agent.write(test::prompt(0, "count"), nullptr);
  agent.write(test::call(2, "Grep", R"({"pattern":"x"})", "call-10"), nullptr);
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

}  // namespace frames_test
