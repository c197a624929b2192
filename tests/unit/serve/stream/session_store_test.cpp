#include "serve/stream/session_store.hpp"

#include <catch2/catch.hpp>

#include "serve/server_context.hpp"
#include "unit/serve/support.hpp"
#include "unit/support/fake_filter.hpp"

using namespace earshot;
using namespace earshot::serve;
using test::at;
using test::FakeStream;

namespace {

std::string payload_of(SessionStore& sessions, Session& session) {
  return test::unframe(*sessions.frame(session, Audience::full)).front();
}

}  // namespace

TEST_CASE("a session frame has the state of its session") {
  FakeStream stream("claude/-home-u-api/s1", "s1");
  stream.write(test::prompt(0, "fix the flaky test"), nullptr);
  stream.write(test::call(1, "Bash", R"({"command":"npm test"})", "call-1"), nullptr);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(stream);
  const std::string frame = payload_of(sessions, session);
  CAPTURE(frame);
  REQUIRE(at(frame, "/type") == "\"session\"");
  REQUIRE(at(frame, "/host") == "\"dev7\"");
  REQUIRE(at(frame, "/session") == "\"s1\"");
  REQUIRE(at(frame, "/cursors") ==
          "[\"claude/-home-u-api/s1:" + to_string(stream.transcript()->end()) + "\"]");
  REQUIRE(at(frame, "/project") == "\"/home/u/api\"");
  REQUIRE(at(frame, "/directory") == "\"-home-u-api\"");
  REQUIRE(at(frame, "/model") == "\"opus\"");
  REQUIRE(at(frame, "/version") == "\"2.1.330\"");
  REQUIRE(at(frame, "/git_branch") == "\"main\"");
  REQUIRE(at(frame, "/status/state") == "\"unknown\"");
  REQUIRE(at(frame, "/turn/number") == "1");
  REQUIRE(at(frame, "/turn/open") == "true");
  REQUIRE(at(frame, "/turn/prompt") == "\"fix the flaky test\"");
  REQUIRE(at(frame, "/turn/started") == "\"2026-03-01T10:00:00.000Z\"");
  REQUIRE(at(frame, "/turn/outcome") == "absent");
  REQUIRE(at(frame, "/tools/0/call") == "\"call-1\"");
  REQUIRE(at(frame, "/tools/0/tool") == "\"Bash\"");
  REQUIRE(at(frame, "/tools/0/input") == R"({"command":"npm test"})");
  REQUIRE(at(frame, "/tools/1") == "absent");
  REQUIRE(at(frame, "/todos") == "[]");
  REQUIRE(at(frame, "/agents") == "[]");
  REQUIRE(at(frame, "/usage/input") == "10");
  REQUIRE(at(frame, "/usage/cache_read") == "100");
  REQUIRE(at(frame, "/usage/cost_usd") == "absent");
  REQUIRE(at(frame, "/last_activity") == "\"2026-03-01T10:00:01.000Z\"");
  REQUIRE(at(frame, "/title") == "absent");
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
  CAPTURE(frame);
  REQUIRE(at(frame, "/host") == "\"lamp\"");
  REQUIRE(at(frame, "/session") == "\"s-lamp\"");
  REQUIRE(at(frame, "/project") == "\"/home/******\"");
  REQUIRE(at(frame, "/turn/prompt") == "\"light the ******\"");
  REQUIRE(at(frame, "/tools/0/tool") == "\"******\"");
  REQUIRE(at(frame, "/tools/0/call") == "\"lamp-1\"");
  REQUIRE(at(frame, "/todos/0/content") == "\"buy a ******\"");
  REQUIRE(at(frame, "/todos/0/active_form") == "\"buying a ******\"");
  REQUIRE(at(frame, "/status/detail") == "\"approve ******\"");
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

TEST_CASE("a session frame is encoded once until the session changes") {
  FakeStream stream("claude/p/s1", "s1");
  stream.write(test::prompt(0, "hello"), nullptr);
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  const Frame first = sessions.frame(session, Audience::full);
  REQUIRE(sessions.frame(session, Audience::full) == first);
  session.frames = {};
  stream.write(test::answer(1, "done"), nullptr);
  const std::string later = payload_of(sessions, session);
  REQUIRE(at(later, "/turn/open") == "false");
  REQUIRE(at(later, "/turn/outcome") == "\"completed\"");
  REQUIRE(at(later, "/last_text") == "\"done\"");
  REQUIRE(at(test::unframe(*first).front(), "/turn/open") == "true");  // the old frame is unchanged
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
    CAPTURE(frame);
    REQUIRE(at(frame, "/agents/0/agent") == "\"a7\"");
    REQUIRE(at(frame, "/agents/0/agent_type") == "\"scout\"");
    REQUIRE(at(frame, "/agents/0/description") == "\"count files\"");
    REQUIRE(at(frame, "/agents/0/call") == "\"call-9\"");
    REQUIRE(at(frame, "/agents/0/tools/0/tool") == "\"Grep\"");
    REQUIRE(at(frame, "/agents/1") == "absent");
    REQUIRE(at(frame, "/tools/0/tool") == "\"Task\"");
    REQUIRE(at(frame, "/tools/1") == "absent");
    REQUIRE(at(frame, "/usage/input") == "20");
    REQUIRE(at(frame, "/cursors/1").find("agent-a7:") != std::string::npos);
  }
  SECTION("not attached, it is listed beside the call while it works") {
    const std::string frame = payload_of(sessions, session);
    REQUIRE(at(frame, "/agents/0/call") == "\"call-9\"");
    REQUIRE(at(frame, "/agents/0/agent") == "absent");
    REQUIRE(at(frame, "/agents/1/agent") == "\"a7\"");
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

TEST_CASE("a stream without a session joins the session that its lines name") {
  FakeStream stream("claude/p/agent-a1", "", "a1");
  SessionStore sessions("h");
  Session& nameless = sessions.session_of(stream);
  REQUIRE(nameless.name.empty());
  REQUIRE(sessions.find("") == nullptr);
  stream.session_ = "s1";
  Session& named = sessions.session_of(stream);
  REQUIRE(named.name == "s1");
  REQUIRE(named.members.size() == 1);
  REQUIRE(nameless.members.empty());
  REQUIRE(&sessions.session_of(stream) == &named);
}

TEST_CASE("the project is the first working directory; before, it is the directory's name") {
  FakeStream stream("claude/-home-u-api/s1", "s1");
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  REQUIRE(session.project_or_directory() == "-home-u-api");
  const auto generation = session.generation;
  stream.write(test::prompt(0, "x", "/home/u/api"), nullptr);
  sessions.refresh(session);
  REQUIRE(session.project_or_directory() == "/home/u/api");
  REQUIRE(session.generation != generation);
  const auto known = session.generation;
  stream.write(test::prompt(1, "y", "/elsewhere"), nullptr);
  sessions.refresh(session);
  REQUIRE(session.project_or_directory() == "/home/u/api");
  REQUIRE(session.generation == known);
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

TEST_CASE("a session is live while its transcript is recent or its process is running") {
  FakeStream stream("claude/p/s1", "s1");
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  const auto recent = std::chrono::hours(24);
  REQUIRE(is_live(session, recent));
  stream.modified_ms_ -= std::chrono::milliseconds(std::chrono::hours(25)).count();
  REQUIRE_FALSE(is_live(session, recent));
  status::Status status;
  status.source = "registry";
  for (const std::string_view state : {"working", "waiting", "idle"}) {
    status.state = state;
    session.status = status;
    REQUIRE(is_live(session, recent));
  }
  status.state = "ended";
  session.status = status;
  REQUIRE_FALSE(is_live(session, recent));
}

TEST_CASE("a session without streams is purged when no frame in the log refers to it") {
  FakeStream stream("claude/p/s1", "s1");
  SessionStore sessions("h");
  const std::uint32_t id = sessions.session_of(stream).id;
  REQUIRE(sessions.remove_stream(stream, 10) != nullptr);
  REQUIRE(sessions.remove_stream(stream, 10) == nullptr);
  REQUIRE(sessions.purge(10) == 1);
  REQUIRE(sessions.find(id) != nullptr);
  REQUIRE(sessions.purge(11) == 0);
  REQUIRE(sessions.find(id) == nullptr);
  REQUIRE(sessions.find("s1") == nullptr);
  REQUIRE(sessions.session_of(stream).id != id);
}
