// Events of other daemons are emitted unchanged and update the stream state.
#include <catch2/catch.hpp>

#include "team/event_store.hpp"
#include "unit/support/feed.hpp"
#include "unit/support/time_zone.hpp"

using namespace earshot;
using namespace earshot::test;

namespace {

TranscriptOptions relayed() {
  TranscriptOptions options;
  options.format = &relayed_format();
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

TEST_CASE("tokens by model, recorded costs and waits of relayed events") {
  const auto usage = [](int total, std::string_view model, std::string_view more) {
    return line("usage.updated",
                R"(,"message":"m","model":")" + std::string(model) +
                    R"(","input":1,"output":0,"cache_read":0,"cache_write":0,"total":{"input":)" +
                    std::to_string(total) + R"(,"output":0,"cache_read":0,"cache_write":0})" +
                    std::string(more));
  };
  const std::string finished =
      R"(,"outcome":"completed","tools":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0})";
  Feed feed(
      {line("session.started", R"(,"program":"claude-code","dialect":"d")", 0),
       line("turn.started", R"(,"origin":"human")"), usage(10, "big", ""), usage(15, "small", ""),
       usage(18, "big", R"(,"cost_usd":0.5)"), line("turn.finished", finished + R"(,"waited_ms":1500)")},
      relayed());
  CHECK(feed.fields("turn.finished", {"waited_ms"}) == Lines{"1500"});
  CHECK(feed.state().times.turn_waited() == 1500);
  const auto& models = feed.state().used.models();
  REQUIRE(models.size() == 2);
  CHECK(models[0].model == "big");
  CHECK(models[0].all.usage.input == 13);
  CHECK(models[0].all.without_cost.input == 10);
  CHECK(models[1].all.without_cost.input == 5);
  // A cost without a message is a total.
  feed.write(line("usage.updated",
                  R"(,"total":{"input":18,"output":0,"cache_read":0,"cache_write":0},"cost_usd":2)"));
  CHECK(feed.state().used.models()[0].all.without_cost.input == 0);
  feed.write(line("turn.started", R"(,"origin":"human")") + line("turn.finished", finished));
  CHECK(feed.fields("turn.finished", {"waited_ms"}) == Lines{"1500", "-"});
}

TEST_CASE("fault 128: a relayed total that was written late counts nothing, one that begins anew does") {
  const auto usage = [](int message, int total) {
    const auto counts = [](int input) {
      return R"("input":)" + std::to_string(input) + R"(,"output":0,"cache_read":0,"cache_write":0)";
    };
    return line("usage.updated",
                R"(,"model":"m",)" + counts(message) + R"(,"total":{)" + counts(total) + "}");
  };
  Feed feed({line("session.started", R"(,"program":"codex","dialect":"d")", 0), usage(100, 100),
             usage(50, 150), usage(1, 151), usage(50, 150), usage(2, 153)},
            relayed());
  const auto counted = [&] { return feed.state().used.models().at(0).all.usage.input; };
  CHECK(counted() == 153);
  feed.write(usage(5, 5));
  CHECK(counted() == 158);
}

TEST_CASE("the stream state follows relayed events of Codex") {
  Feed feed(
      {line(
           "session.started",
           R"(,"program":"codex","dialect":"codex-paginated","cwd":"/p","project":"/p","source":"cli","originator":"codex-tui")",
           0),
       line("session.updated", R"(,"model":"m","permission_mode":"never","sandbox":"read-only")", 0),
       line("turn.started", R"(,"prompt":"go","origin":"human")"),
       line("message.added", R"(,"role":"assistant","kind":"text","text":"hello")"),
       line("message.added", R"(,"role":"assistant","kind":"plan","text":"1. Look")"),
       line(
           "usage.updated",
           R"(,"input":300,"output":40,"cache_read":1000,"cache_write":0,"total":{"input":300,"output":40,"cache_read":1000,"cache_write":0},"reasoning":8,"context_tokens":1340,"context_window":258400)"),
       line(
           "limits.updated",
           R"(,"limit":"codex","plan":"plus","windows":[{"name":"primary","used_percent":12.5,"window_minutes":300,"resets_at":"2026-11-22T23:26:40Z"}])"),
       line(
           "limits.updated",
           R"(,"limit":"codex","plan":"plus","reached":"primary","windows":[{"name":"primary","used_percent":100}])")},
      relayed());
  const StreamState& state = feed.state();
  CHECK(state.program == "codex");
  CHECK(state.sandbox == "read-only");
  CHECK(state.source == "cli");
  CHECK(state.originator == "codex-tui");
  CHECK(state.last_text == "hello");
  CHECK(state.context_tokens == 1340);
  CHECK(state.context_window == 258400);
  REQUIRE(state.limits.size() == 1);
  CHECK(state.limits[0].reached == "primary");
  CHECK(state.limits[0].time == "2026-03-14T09:26:53.589Z");
  CHECK(state.limits[0].windows == std::vector<LimitWindow>{{"primary", 100.0, std::nullopt, ""}});
  REQUIRE(feed.count("limits.updated") == 2);
  CHECK(
      field(feed.events().at(6), "windows") ==
      R"([{"name":"primary","used_percent":12.5,"window_minutes":300,"resets_at":"2026-11-22T23:26:40Z"}])");
  CHECK(field(feed.events().at(5), "reasoning") == "8");
  CHECK(feed.transcript().recorded_agent().empty());
}

TEST_CASE("the result of the call that started a subagent may name it") {
  Feed feed({line("tool.invoked", R"(,"call":"c1","tool":"collaboration.spawn_agent")"),
             line("agent.started", R"(,"call":"c1","description":"looker","background":true)"),
             line("tool.finished", R"(,"call":"c1","outcome":"ok","background":"S2")")},
            relayed());
  REQUIRE(feed.state().agents.size() == 1);
  CHECK(feed.state().agents[0].subagent == "S2");
  feed.write(line("agent.finished", R"(,"subagent":"S2","call":"c1","outcome":"completed")"));
  CHECK(feed.state().agents.empty());
}

TEST_CASE("the events name the agent of a subagent's stream, if its path does not") {
  const std::string agent = R"(,"agent":"r2")";
  Feed feed(
      {line("session.started",
            agent + R"(,"program":"codex","dialect":"codex-paginated","parent":"r1","agent_type":"scout")",
            0),
       line("turn.started", agent + R"(,"prompt":"look","origin":"agent")"),
       line("message.added", agent + R"(,"role":"assistant","kind":"text","text":"found")"),
       line("todo.updated", agent + R"(,"todos":[{"content":"one","status":"pending"}],"source":"t")")},
      relayed());
  CHECK(feed.transcript().recorded_agent() == "r2");
  CHECK(feed.transcript().recorded_session() == "s1@dev7");
  CHECK(feed.state().parent == "r1");
  CHECK(feed.state().agent_type == "scout");
  CHECK(feed.state().last_text == "found");  // of its own chain
  CHECK(feed.state().todos.size() == 1);
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

TEST_CASE("what relayed events used in a day is counted as on their host") {
  const auto usage = [](const std::string& time, int tokens, int total, const std::string& cost = "") {
    const auto counts = [](int count) {
      return R"("input":)" + std::to_string(count) + R"(,"output":0,"cache_read":0,"cache_write":0)";
    };
    return R"({"received":"x:1","type":"usage.updated","host":"dev7","stream":"claude/p/s","session":"s1",)"
           R"("cursor":"9.1.00000000000000aa","time":")" +
           time + R"(","turn":1,"message":"m","model":"big",)" + counts(tokens) + R"(,"total":{)" +
           counts(total) + "}" + cost + "}\n";
  };
  const TimeZone zone("UTC");
  const auto day_of = [](const Feed& feed) {
    const ModelUsage& used = feed.state().used.models().at(0);
    return std::to_string(used.day.usage.input) + " of " + std::to_string(used.all.usage.input) + ", $" +
           std::to_string(used.day.recorded_usd).substr(0, 4);
  };
  Feed feed({usage("2026-03-14T09:00:00Z", 5, 5), usage("2026-03-15T09:00:00Z", 7, 12)}, relayed());
  CHECK(day_of(feed) == "7 of 12, $0.00");
  Feed costs({usage("2026-03-14T09:00:00Z", 5, 5, R"(,"cost_usd":1.5)"),
              usage("2026-03-15T09:00:00Z", 7, 12, R"(,"cost_usd":2.25)")},
             relayed());
  CHECK(day_of(costs) == "7 of 12, $0.75");
  // The events before the first one that the hub has are of an unknown time.
  Feed later({usage("2026-03-15T09:00:00Z", 7, 100)}, relayed());
  CHECK(day_of(later) == "7 of 100, $0.00");
  // Codex may begin its total anew.
  Feed anew({usage("2026-03-15T09:00:00Z", 7, 7), usage("2026-03-15T10:00:00Z", 3, 3)}, relayed());
  CHECK(day_of(anew) == "10 of 10, $0.00");
}

TEST_CASE("the end of a relayed subagent names it or its call") {
  const auto started = [](const std::string& subagent) {
    return line("agent.started", R"(,"call":"c1","subagent":")" + subagent + "\"");
  };
  Feed feed({line("turn.started", R"(,"origin":"human")"), started("a1"), started("a2"), started("")},
            relayed());
  CHECK(feed.state().agents.size() == 3);
  feed.write(line("agent.finished", R"(,"subagent":"a2","outcome":"completed")"));
  REQUIRE(feed.state().agents.size() == 2);
  CHECK(feed.state().agents[0].subagent == "a1");
  feed.write(line("agent.finished", R"(,"call":"c1","subagent":"other","outcome":"completed")"));
  CHECK(feed.state().agents.empty());
}

TEST_CASE("relayed events do not replace the agent that the path names") {
  TranscriptOptions options = relayed();
  options.own_agent = "abc";
  Feed feed({line("turn.started", R"(,"origin":"agent")"),
             line("message.added", R"(,"role":"assistant","kind":"text","text":"mine","agent":"abc")")},
            options);
  CHECK(feed.transcript().recorded_agent() == "abc");
  CHECK(feed.state().last_text == "mine");
}
