#include "cli/timeline.hpp"

#include <catch2/catch.hpp>

using namespace earshot;
using namespace earshot::cli;

namespace {

// Builds a timeline from short descriptions and lists the visited events.
class Scenario {
 public:
  Scenario& add(const std::string& type, const std::string& stream, int turn, const std::string& more = {},
                const std::string& time = {}) {
    const std::string json = R"({"type":")" + type + R"(","stream":")" + stream +
                             R"(","session":"s","cursor":"1.1.x","turn":)" + std::to_string(turn) +
                             (time.empty() ? "" : R"(,"time":"2026-11-24T)" + time + "Z\"") +
                             (more.empty() ? "" : "," + more) + "}";
    REQUIRE(timeline.add(*parser_.parse(json), json));
    return *this;
  }
  /// For each event: depth, type and text; `~` marks ends of visited events.
  std::vector<std::string> visited(std::uint64_t turn = 0) {
    std::vector<std::string> out;
    timeline.walk(
        turn,
        [&](const Timeline::Step& step) {
          out.push_back(std::to_string(step.depth) + (step.is_end ? "~" : " ") +
                        std::string(step.event.text("type")) + " " + std::string(step.event.text("text")));
          return true;
        },
        [&](std::string_view agent, std::size_t depth) {
          out.push_back(std::to_string(depth) + " unlinked " + std::string(agent));
        });
    return out;
  }
  Timeline timeline;

 private:
  FrameParser parser_;
};

using Lines = std::vector<std::string>;

std::string text(const std::string& said) { return R"("text":")" + said + "\""; }
std::string of(const std::string& agent, const std::string& said) {
  return R"("agent":")" + agent + "\"," + text(said);
}

}  // namespace

TEST_CASE("a subagent's events follow the call that started it, in any order of streams") {
  Scenario scenario;
  scenario.add("message.added", "agent-x", 1, of("x", "sub"), "10:00:02")
      .add("turn.started", "main", 1, {}, "10:00:00")
      .add("agent.started", "main", 1, R"("call":"c1")", "10:00:01")
      .add("message.added", "main", 1, text("meanwhile"), "10:00:01")
      .add("agent.finished", "main", 1, R"("call":"c1","subagent":"x")", "10:00:03");
  CHECK(scenario.visited() == Lines{"0 turn.started ", "0 agent.started ", "1 message.added sub",
                                    "0 message.added meanwhile", "0~agent.finished "});
}

TEST_CASE("subagents of subagents have a greater depth") {
  Scenario scenario;
  scenario.add("agent.started", "main", 1, R"("call":"c1","subagent":"x")")
      .add("agent.started", "agent-x", 1, R"("agent":"x","call":"c2","subagent":"y")")
      .add("message.added", "agent-y", 1, of("y", "deep"))
      .add("message.added", "main", 1, text("after"));
  CHECK(scenario.visited() ==
        Lines{"0 agent.started ", "1 agent.started ", "2 message.added deep", "0 message.added after"});
}

TEST_CASE("a subagent in the same transcript without a call is placed where it began") {
  Scenario scenario;
  scenario.add("message.added", "main", 1, text("first"))
      .add("message.added", "main", 1, of("@73", "one"))
      .add("message.added", "main", 1, text("between"))
      .add("message.added", "main", 1, of("@73", "two"))
      .add("message.added", "main", 1, text("last"));
  CHECK(scenario.visited() == Lines{"0 message.added first", "1 unlinked @73", "1 message.added one",
                                    "1 message.added two", "0 message.added between",
                                    "0 message.added last"});
}

TEST_CASE("a subagent without a known call is placed by its time") {
  Scenario scenario;
  scenario.add("turn.started", "main", 1, {}, "10:00:00")
      .add("turn.started", "main", 2, {}, "10:05:00")
      .add("message.added", "agent-x", 1, of("x", "sub"), "10:04:00")
      .add("message.added", "agent-late", 1, of("late", "sub"), "11:00:00");
  CHECK(scenario.visited() == Lines{"0 turn.started ", "1 unlinked x", "1 message.added sub",
                                    "0 turn.started ", "1 unlinked late", "1 message.added sub"});
  CHECK(scenario.visited(2) == Lines{"0 turn.started "});
}

TEST_CASE("one turn is visited with its subagents") {
  Scenario scenario;
  scenario.add("turn.started", "main", 1)
      .add("agent.started", "main", 1, R"("call":"c1","subagent":"x")")
      .add("turn.started", "main", 2)
      .add("agent.started", "main", 2, R"("call":"c2","subagent":"y")")
      .add("message.added", "agent-x", 1, of("x", "of one"))
      .add("message.added", "agent-y", 1, of("y", "of two"));
  CHECK(scenario.visited(2) == Lines{"0 turn.started ", "0 agent.started ", "1 message.added of two"});
  CHECK(scenario.visited(3).empty());
}

TEST_CASE("the end of an event is found by its call, in its own stream") {
  Scenario scenario;
  scenario.add("tool.invoked", "main", 1, R"("call":"c1")")
      .add("tool.invoked", "agent-x", 1, R"("agent":"x","call":"c1")")
      .add("tool.finished", "main", 1, R"("call":"c1","outcome":"ok")")
      .add("tool.finished", "main", 1, R"("call":"unknown","outcome":"error")");
  FrameParser parser;
  const std::string begin = R"({"type":"tool.invoked","stream":"main","turn":1,"call":"c1"})";
  REQUIRE(scenario.timeline.end_of(*parser.parse(begin)));
  CHECK(scenario.timeline.end_of(*parser.parse(begin))->text("outcome") == "ok");
  const std::string other = R"({"type":"tool.invoked","stream":"agent-x","agent":"x","turn":1,"call":"c1"})";
  CHECK_FALSE(scenario.timeline.end_of(*parser.parse(other)));
  CHECK(scenario.visited()[1] == "0~tool.finished ");
  CHECK(scenario.visited()[2] == "0 tool.finished ");
}

TEST_CASE("the files of a session are visited in the order in which they began") {
  Scenario scenario;
  scenario.add("message.added", "second", 1, text("b"), "12:00:00")
      .add("message.added", "first", 1, text("a"), "09:00:00");
  CHECK(scenario.visited() == Lines{"0 message.added a", "0 message.added b"});
}
