// Events of other daemons are emitted unchanged and update the stream state.
#include <catch2/catch.hpp>

#include "team/event_store.hpp"
#include "unit/support/feed.hpp"

using namespace earshot;
using namespace earshot::test;

namespace {

TranscriptOptions relayed() {
  TranscriptOptions options;
  options.reader = &relayed_reader();
  return options;
}

std::string line(const std::string& type, const std::string& members, int turn = 1) {
  return R"({"received":"x:1","type":")" + type +
         R"(","host":"dev7","stream":"claude/p/s","session":"s1","cursor":"9.1.00000000000000aa","time":"2026-03-14T09:26:53.589Z","turn":)" +
         std::to_string(turn) + members + "}\n";
}

}  // namespace

TEST_CASE("an event of another daemon is emitted with all members, including unknown ones") {
  Feed feed({line("tool.invoked",
                  R"(,"call":"c","tool":"Bash","input":{"command":"ls"},"later":[1,{"x":null}])", 3)},
            relayed());
  REQUIRE(feed.events().size() == 1);
  const std::string& event = feed.events()[0];
  CHECK(field(event, "type") == "tool.invoked");
  CHECK(field(event, "turn") == "3");
  CHECK(field(event, "time") == "2026-03-14T09:26:53.589Z");
  CHECK(field(event, "input") == R"({"command":"ls"})");
  CHECK(field(event, "later") == R"([1,{"x":null}])");
  CHECK(field(event, "received") == "-");
  CHECK(field(event, "host") == "h");  // the hub writes its own address
  CHECK(feed.transcript().recorded_session() == "s1@dev7");
}

TEST_CASE("a truncated text keeps its size") {
  Feed feed(
      {line("turn.started", R"(,"prompt":"begin","origin":"human","truncated":{"prompt":9000,"x":"y"})")},
      relayed());
  CHECK(field(feed.events().at(0), "prompt") == "begin");
  CHECK(feed.events().at(0).ends_with(R"("origin":"human","truncated":{"prompt":9000}})"));
  CHECK(feed.state().turn_prompt == "begin");
  CHECK(feed.state().turn_prompt_truncated == 9000);
  CHECK(feed.state().turn_open);
}

TEST_CASE("the stream state follows relayed events") {
  Feed feed(
      {line("session.started",
            R"(,"program":"claude-code","dialect":"d","version":"1","cwd":"/p","project":"/p","title":"T")",
            0),
       line("turn.started", R"(,"prompt":"go","origin":"human")"),
       line("tool.invoked", R"(,"call":"c1","tool":"Bash","input":{"command":"ls"})"),
       line("tool.invoked", R"(,"call":"c2","tool":"Task")"),
       line("agent.started", R"(,"agent_type":"x","call":"c2")"),
       line("tool.finished", R"(,"call":"c1","outcome":"ok")"),
       line("todo.updated", R"(,"todos":[{"content":"one","status":"pending"}],"source":"TodoWrite")"),
       line("message.added", R"(,"role":"assistant","kind":"text","text":"hello")"),
       line(
           "usage.updated",
           R"(,"message":"m","input":1,"output":2,"cache_read":3,"cache_write":4,"total":{"input":10,"output":20,"cache_read":30,"cache_write":40})")},
      relayed());
  const StreamState& state = feed.state();
  CHECK(state.project == "/p");
  CHECK(state.title == "T");
  CHECK(state.program == "claude-code");
  CHECK(state.dialect == "d");
  REQUIRE(state.tools.size() == 1);
  CHECK(state.tools[0].call == "c2");
  CHECK(state.agents.size() == 1);
  CHECK(state.todos.size() == 1);
  CHECK(state.last_text == "hello");
  CHECK(state.usage == Usage{10, 20, 30, 40});
  CHECK(state.context_tokens == 8);
  feed.write(line(
      "turn.finished",
      R"(,"outcome":"completed","tools":2,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0})"));
  CHECK_FALSE(feed.state().turn_open);
  CHECK(feed.state().last_outcome == "completed");
}

TEST_CASE("invalid lines are skipped, and records without required fields are not events") {
  Feed feed({"no json\n", line("reset", R"(,"reason":"rewritten")"), line("from.the.future", ""), "[]\n",
             R"({"type":7})"
             "\n",
             line("turn.started", R"(,"origin":5)"), line("turn.started", ""),
             line("todo.updated", R"(,"todos":{},"source":"x")"),
             line("turn.started", R"(,"origin":"human","prompt":[],"turn":-1)")},
            relayed());
  CHECK(feed.count("line.skipped") == 1);
  CHECK(feed.count("turn.started") == 1);  // the others lack a required field
  CHECK(feed.events().size() == 2);
}

TEST_CASE("relayed events are read by the relayed reader only") {
  Feed feed({line("turn.started", R"(,"prompt":"go","origin":"human")")});
  CHECK(feed.events().empty());
}
