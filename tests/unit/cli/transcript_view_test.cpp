#include "cli/transcript_view.hpp"

#include <stdlib.h>
#include <time.h>

#include <catch2/catch.hpp>

namespace transcript_view_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

struct Utc {
  Utc() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  ~Utc() {
    unsetenv("TZ");
    tzset();
  }
};

const char* const common =
    R"("host":"h","stream":"m","session":"s","cursor":"1.1.x","time":"2026-11-24T10:00:00Z","turn":1)";

std::string event(const std::string& type, const std::string& more) {
  return R"({"type":")" + type + "\"," + common + (more.empty() ? "" : "," + more) + "}";
}

std::string shown(const std::vector<std::string>& events, bool verbose = false, std::size_t columns = 0,
                  Charset charset = Charset::utf8) {
  const Utc here;
  Timeline timeline;
  FrameParser parser;
  for (const std::string& json : events) timeline.add(*parser.parse(json), json);
  TranscriptView view({charset, Palette::none, columns}, verbose);
  std::string out;
  timeline.walk(
      0,
      [&](const Timeline::Step& step) {
        view.write(step, timeline, out);
        return true;
      },
      [&](std::string_view agent, std::size_t depth) { view.write_unlinked_agent(agent, depth, out); });
  return out;
}

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

TEST_CASE("the heading of a turn shows its time, origin, duration and outcome") {
  CHECK(
      shown(
          {event("turn.started", R"("prompt":"Fix it","origin":"queued")"),
           event(
               "turn.finished",
               R"("outcome":"interrupted","duration_ms":2000,"tools":3,"usage":{"input":10,"output":5,"cache_read":0,"cache_write":0})")}) ==
      "\nTue 24 Nov 2026\n── turn 1 · 10:00:00 · queued · interrupted · 2.0s · 3 tools · 15 tokens\n  › Fix "
      "it\n");
  CHECK(shown({event("turn.started", R"("origin":"human")")}) ==
        "\nTue 24 Nov 2026\n── turn 1 · 10:00:00 · open\n");
}

TEST_CASE("a call and its result are one line, the error is below") {
  const std::string call =
      event("tool.invoked", R"("call":"c","tool":"Bash","input":{"command":"npm test"})");
  CHECK(shown({call}) == "  ⚙ Bash  npm test  no result yet\n");
  CHECK(
      shown({call, event("tool.finished",
                         R"("call":"c","tool":"Bash","outcome":"ok","duration_ms":900,"output":"fine")")}) ==
      "  ⚙ Bash  npm test  ✓ 0.9s\n");
  CHECK(
      shown({call, event("tool.finished", R"("call":"c","outcome":"error","output":"1 failed\nsee log")")}) ==
      "  ⚙ Bash  npm test  ✗\n    ✗ 1 failed\n      see log\n");
  CHECK(shown({call, event("tool.finished", R"("call":"c","outcome":"denied")")}) ==
        "  ⚙ Bash  npm test  ⊘ denied\n");
  CHECK(shown({call, event("tool.finished", R"("call":"c","outcome":"ok","output":"fine")")}, true) ==
        "  ⚙ Bash  npm test  ✓\n    · fine\n");
}

TEST_CASE("a long command is cut so that its outcome still shows") {
  const std::string line = shown({event("tool.invoked", R"("call":"c","tool":"Bash","input":{"command":")" +
                                                            std::string(300, 'x') + "\"}"),
                                  event("tool.finished", R"("call":"c","outcome":"ok","duration_ms":900)")},
                                 false, 40);
  CHECK(line.ends_with("…  ✓ 0.9s\n"));
  CHECK(display_width(line.substr(0, line.size() - 1)) == 40);
}

TEST_CASE("messages are wrapped and indented") {
  CHECK(
      shown(
          {event(
              "message.added",
              R"("role":"assistant","kind":"text","text":"one two three four five six seven\n\n\n  code  here")")},
          false, 24) == "  “ one two three four\n    five six seven\n\n      code  here\n");
  CHECK(shown({event("message.added", R"("role":"assistant","kind":"thinking","text":"hm")")}).empty());
  CHECK(shown({event("message.added", R"("role":"assistant","kind":"thinking","text":"hm")")}, true) ==
        "  “ thinking\n  “ hm\n");
}

TEST_CASE("a truncated text shows its complete size") {
  CHECK(shown({event("message.added",
                     R"("role":"assistant","kind":"text","text":"begin","truncated":{"text":12345})")}) ==
        "  “ begin\n    … 12.3 kB in total\n");
}

TEST_CASE("a subagent's lines are below its call, with a vertical rule") {
  CHECK(
      shown(
          {event("agent.started",
                 R"("call":"c","agent_type":"Explore","description":"DisplayOptions around")"),
           R"({"type":"message.added","stream":"sub","session":"s","agent":"x","cursor":"1.1.x","turn":1,"role":"assistant","kind":"text","text":"found"})",
           event("agent.finished",
                 R"("call":"c","subagent":"x","outcome":"failed","duration_ms":1500,"tools":1)")}) ==
      "  ↳ Explore  DisplayOptions around  ✗  failed · 1.5s · 1 tool\n  │ “ found\n");
}

TEST_CASE("control characters of a transcript do not reach the terminal") {
  const std::string evil = R"(\u001b]0;owned\u0007\u001b[2J\u202e\u009b31m\r)";
  const std::string out = shown(
      {event("turn.started", R"("origin":")" + evil + R"(","prompt":")" + evil + "\""),
       event("message.added", R"("role":"user","kind":")" + evil + R"(","text":")" + evil + "\""),
       event("tool.invoked", R"("call":"c","tool":")" + evil + R"(","input":{"command":")" + evil + "\"}"),
       event("tool.finished", R"("call":"c","outcome":"error","output":")" + evil + R"(\n)" + evil + "\""),
       event("agent.started", R"("call":"d","agent_type":")" + evil + R"(","description":")" + evil + "\""),
       event("todo.updated", R"("todos":[{"content":")" + evil + R"(","status":"in_progress"}])"),
       event("turn.finished", R"("outcome":")" + evil + R"(","stop_reason":")" + evil + "\"")},
      true);
  for (const char* bad : {"\x1b", "\x07", "\r", "\xe2\x80\xae", "\xc2\x9b"})
    CHECK(out.find(bad) == std::string::npos);
  CHECK(out.find("\\x1b]0;owned") != std::string::npos);
}

TEST_CASE("in ASCII every glyph has a replacement") {
  const std::string out =
      shown({event("turn.started", R"("prompt":"täst")"),
             event("tool.invoked", R"("call":"c","tool":"Bash","input":{"command":"ls"})")},
            false, 0, Charset::ascii);
  CHECK(std::all_of(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

// --- Timeline ---

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

TEST_CASE("a subagent of a program whose call names it is shown below its call while it runs") {
  Scenario scenario;
  scenario.add("turn.started", "m", 1)
      .add("tool.invoked", "m", 1, R"("call":"c1","tool":"collaboration.spawn_agent")")
      .add("agent.started", "m", 1, R"("call":"c1","description":"looker","background":true)")
      .add("tool.finished", "m", 1,
           R"("call":"c1","tool":"collaboration.spawn_agent","outcome":"ok","background":"S2")")
      .add("turn.started", "s2", 1, of("S2", "look"))
      .add("message.added", "m", 1, text("later"));
  CHECK(scenario.visited() == Lines{"0 turn.started ", "0 tool.invoked ", "0 agent.started ",
                                    "1 turn.started look", "0~tool.finished ", "0 message.added later"});
}

TEST_CASE("the header of a session of Codex shows program, sandbox and the size of the context") {
  const Utc here;
  FrameParser parser;
  TranscriptView view({Charset::utf8, Palette::none, 0}, false);
  std::string out;
  view.write_header(
      *parser.parse(
          R"({"type":"session","session":"r1","program":"codex","project":"/home/u/api","git_branch":"main","model":"m","sandbox":"read-only","turn":{"number":2},"status":{"state":"idle"},"usage":{"input":1,"output":2,"context":1340,"context_window":258400}})"),
      out);
  CHECK(out ==
        "api\nr1 · /home/u/api (main) · Codex CLI · m · read-only\n2 turns · 3 tokens · idle\n"
        "context ▰▱▱▱▱ 0%, 1.3k of 258k\n");
}

TEST_CASE("turns of a host whose clock is off have the time of the hub") {
  const Utc here;
  Timeline timeline;
  FrameParser parser;
  TranscriptView view({Charset::utf8, Palette::none, 0}, false);
  std::string out;
  view.write_header(
      *parser.parse(R"({"type":"session","session":"s","host":"h","clock_offset_ms":86400000})"), out);
  out.clear();
  const std::string json = event("turn.started", R"("origin":"human")");
  timeline.add(*parser.parse(json), json);
  const auto frame = parser.parse(json);
  view.write({*frame, json, 0, false}, timeline, out);
  CHECK(out == "\nWed 25 Nov 2026\n── turn 1 · 10:00:00 · open\n");
}

TEST_CASE("the header shows cost, times and limits, the footer how long the session has waited") {
  const Utc here;
  FrameParser parser;
  TranscriptView view({Charset::utf8, Palette::none, 0}, false);
  const auto session = parser.parse(
      R"({"type":"session","session":"r1","program":"codex","project":"/home/u/api","turn":{"number":1},"status":{"state":"waiting","reason":"question","since":")" +
      format_time(now_ms() - 3'600'000 - 500) +
      R"("},"usage":{"cost_usd":12.345,"cost_source":"mixed"},"times":{"waited_ms":60000,"worked_ms":30000,"idle_ms":0},"limits":[{"time":"2025-11-04T11:00:00Z","limit":"codex","windows":[{"name":"primary","used_percent":91,"window_minutes":300}]}]})");
  std::string out;
  view.write_header(*session, out);
  CHECK(out ==
        "api\nr1 · /home/u/api · Codex CLI\n1 turn · waiting: question\n"
        "~$12.35 · waited 1h01m · worked 30.0s\n"
        "limits of codex  91% of 5h\n");
  out.clear();
  view.write_footer(*session, out);
  CHECK(out == "\n⏸ needs you: question for 1h00m\n");
}

TEST_CASE("a message of an agent is one line, as its symbol says what it is") {
  CHECK(shown({event("turn.started", R"("prompt":"go","origin":"human")"),
               event("message.added", R"("role":"user","kind":"agent","text":"Three.")")}) ==
        "\nTue 24 Nov 2026\n── turn 1 · 10:00:00 · open\n  › go\n  ↳ Three.\n");
}

TEST_CASE("limits, plans and failures of a turn are shown in their place") {
  CHECK(
      shown({event("turn.started", R"("prompt":"go","origin":"human")"),
             event("message.added", R"("role":"assistant","kind":"plan","text":"1. Look")"),
             event("limits.updated", R"("plan":"plus","reached":"primary","windows":[])"),
             event("api.failed",
                   R"("fatal":true,"kind":"usage_limit_exceeded","error":"You have hit it.")")}) ==
      "\nTue 24 Nov 2026\n── turn 1 · 10:00:00 · open\n  › go\n  “ plan\n  “ 1. Look\n"
      "  ↻ limit reached: primary  plus\n  ↻ API request failed  usage_limit_exceeded · You have hit it.\n");
}

}  // namespace transcript_view_test
