#include "cli/event_formatter.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <ctime>

namespace event_formatter_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

// The formatted lines, without colours, in UTC, after the date was printed.
class Screen {
 public:
  explicit Screen(bool verbose = false, DisplayOptions display = {Charset::utf8, Palette::none, 0})
      : formatter_(display, verbose) {
    setenv("TZ", "UTC0", 1);
    tzset();
    show(R"({"type":"message.added","role":"user","kind":"text","text":"x","time":"2025-11-04T00:00:00Z"})");
  }

  /// The lines of one frame. `fields` are those beyond the common ones.
  std::string event(const std::string& type, const std::string& fields = {}) {
    return show(
        R"({"type":")" + type +
        R"(","host":"dev7","stream":"claude/-home-u-api/2eaa","session":"2eaa1c04-1","time":"2025-11-04T14:03:07.000Z","turn":3)" +
        (fields.empty() ? "" : ",") + fields + "}");
  }
  std::string of_agent(const std::string& type, const std::string& fields) {
    return event(type, R"("agent":"a0b1c2d3e4",)" + fields);
  }

  std::string show(const std::string& json) {
    const auto frame = parser_.parse(json);
    REQUIRE(frame);
    std::string out;
    formatter_.format(*frame, out);
    return out;
  }

  /// Names the project, so that lines are headed `api`.
  Screen& in_project() {
    event("session.started", R"("project":"/home/u/api")");
    return *this;
  }

  /// `fields` describe the session beyond its name.
  std::string session(const std::string& id, const std::string& fields) {
    return show(R"({"type":"session","host":"dev7","session":")" + id + "\"," + fields + "}");
  }

 private:
  FrameParser parser_;
  EventFormatter formatter_;
};

}  // namespace

TEST_CASE("turn.started shows the prompt") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event("turn.started", R"("prompt":"fix the\nflaky test","origin":"human")") ==
        "14:03:07 api      ▶ turn 3  fix the flaky test\n");
  CHECK(screen.event("turn.started", R"("prompt":"/compact","origin":"command")") ==
        "14:03:07 api      ▶ turn 3 command  /compact\n");
  CHECK(screen.event("turn.started", R"("origin":"unknown")") == "14:03:07 api      ▶ turn 3\n");
}

TEST_CASE("turn.finished shows the outcome, the duration, tools and tokens") {
  Screen screen;
  screen.in_project();
  CHECK(
      screen.event(
          "turn.finished",
          R"("outcome":"completed","stop_reason":"end_turn","duration_ms":41200,"tools":7,"usage":{"input":300,"output":2000,"cache_read":900000,"cache_write":10000})") ==
      "14:03:07 api      ■ turn 3 completed  41.2s · 7 tools · 12.3k tokens\n");
  CHECK(screen.event("turn.finished", R"("outcome":"failed","stop_reason":"refusal","tools":1)") ==
        "14:03:07 api      ■ turn 3 failed  refusal · 1 tool\n");
}

TEST_CASE("a tool call and its result are two lines, the result has the duration") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event("tool.invoked", R"("call":"t1","tool":"Bash","input":{"command":"npm test"})") ==
        "14:03:07 api      ⚙ Bash  npm test\n");
  CHECK(screen.event("tool.finished",
                     R"("call":"t1","tool":"Bash","outcome":"ok","output":"fine","duration_ms":31900)") ==
        "14:03:07 api      ✓ Bash  31.9s\n");
}

TEST_CASE("a result that does not follow its call repeats the summary of the call") {
  Screen screen;
  screen.in_project();
  screen.event("tool.invoked", R"("call":"t1","tool":"Read","input":{"file_path":"/home/u/api/a.ts"})");
  screen.event("tool.invoked", R"("call":"t2","tool":"Read","input":{"file_path":"/home/u/api/b.ts"})");
  CHECK(screen.event("tool.finished", R"("call":"t1","tool":"Read","outcome":"ok","duration_ms":12)") ==
        "14:03:07 api      ✓ Read  12ms · a.ts\n");
}

TEST_CASE("an error shows its output, a denial its outcome") {
  Screen screen;
  screen.in_project();
  CHECK(
      screen.event(
          "tool.finished",
          R"("call":"t1","tool":"Bash","outcome":"error","output":"<tool_use_error>exit 1\nboom</tool_use_error>","duration_ms":400)") ==
      "14:03:07 api      ✗ Bash  0.4s · exit 1 boom\n");
  CHECK(screen.event("tool.finished", R"("call":"t2","tool":"Bash","outcome":"denied")") ==
        "14:03:07 api      ⊘ Bash  denied\n");
  CHECK(screen.event("tool.finished", R"("call":"t3","tool":"Bash","outcome":"ok","background":"b1")") ==
        "14:03:07 api      ✓ Bash  continues in the background\n");
}

TEST_CASE("calls of tools that have their own events are not shown") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event("tool.invoked", R"("call":"t1","tool":"TodoWrite","input":{})").empty());
  CHECK(screen.event("tool.finished", R"("call":"t1","tool":"TodoWrite","outcome":"ok")").empty());
  CHECK(
      screen.event(
          "todo.updated",
          R"("todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}],"source":"TodoWrite")") ==
      "14:03:07 api      ≡ todo 1/2  b\n");
  CHECK(screen.event("todo.updated", R"("todos":[],"source":"TodoWrite")") ==
        "14:03:07 api      ≡ todo cleared\n");
  CHECK(screen.event("tool.finished", R"("call":"t1","tool":"TodoWrite","outcome":"error","output":"no")") ==
        "14:03:07 api      ✗ TodoWrite  no\n");
}

TEST_CASE("a wait is highlighted once") {
  Screen screen;
  screen.in_project();
  const std::string waiting =
      R"({"type":"status","host":"dev7","session":"2eaa1c04-1","state":"waiting","reason":"permission","detail":"approve Bash: rm -rf build","since":"2025-11-04T14:03:07Z"})";
  CHECK(screen.show(waiting) ==
        "14:03:07 api      ⏸ needs you: permission — approve Bash: rm -rf build\n");
  CHECK(screen.show(waiting).empty());
  CHECK(screen.show(R"({"type":"status","session":"2eaa1c04-1","state":"working"})").empty());
  CHECK_FALSE(screen.show(waiting).empty());
}

TEST_CASE("waiting is bold and yellow") {
  Screen screen(false, {Charset::utf8, Palette::ansi16, 0});
  const std::string line =
      screen.show(R"({"type":"status","session":"2eaa","state":"waiting","reason":"question"})");
  CHECK(line.find("\x1b[1;33m⏸\x1b[0m \x1b[1;33mneeds you\x1b[0m") != line.npos);
}

TEST_CASE("lines of a subagent show its type") {
  Screen screen;
  screen.in_project();
  CHECK(screen.of_agent("tool.invoked", R"("call":"s1","tool":"Grep","input":{"pattern":"flaky"})") ==
        "14:03:07 api      ⚙ ↳ a0b1c2d3  Grep  flaky\n");
  CHECK(
      screen.event("agent.started",
                   R"("subagent":"a0b1c2d3e4","agent_type":"Explore","description":"find it","call":"t9")") ==
      "14:03:07 api      ↳ Explore  find it\n");
  CHECK(screen.of_agent("tool.finished", R"("call":"s1","tool":"Grep","outcome":"ok","duration_ms":100)") ==
        "14:03:07 api      ✓ ↳ Explore  Grep  0.1s · flaky\n");
  CHECK(screen.event(
            "agent.finished",
            R"("agent_type":"Explore","outcome":"completed","duration_ms":12300,"tools":5,"tokens":30000)") ==
        "14:03:07 api      ✓ Explore  12.3s · 5 tools · 30.0k tokens\n");
}

TEST_CASE("thinking, usage and messages of subagents are shown with --verbose only") {
  const std::string thinking = R"("role":"assistant","kind":"thinking","text":"hm")";
  const std::string usage =
      R"("input":5,"output":7,"cache_read":0,"cache_write":0,"total":{"input":5,"output":7,"cache_read":9000,"cache_write":0})";
  const std::string said = R"("role":"assistant","kind":"text","text":"done")";
  Screen quiet;
  quiet.in_project();
  CHECK(quiet.event("message.added", thinking).empty());
  CHECK(quiet.event("usage.updated", usage).empty());
  CHECK(quiet.of_agent("message.added", said).empty());
  CHECK(quiet.event("message.added", said) == "14:03:07 api      “ done\n");
  Screen verbose(true);
  verbose.in_project();
  CHECK(verbose.event("message.added", thinking) == "14:03:07 api      “ thinking  hm\n");
  CHECK(verbose.event("usage.updated", usage) ==
        "14:03:07 api      · tokens  12 · 12 in total · 9.0k from the cache\n");
  CHECK(verbose.of_agent("message.added", said) == "14:03:07 api      “ ↳ a0b1c2d3  done\n");
}

TEST_CASE("compaction, API errors and skipped lines are shown") {
  Screen screen;
  screen.in_project();
  CHECK(
      screen.event(
          "compaction.finished",
          R"("trigger":"auto","pre_tokens":155000,"post_tokens":12000,"duration_ms":23000,"kind":"full")") ==
      "14:03:07 api      ≈ compacted  155k → 12.0k tokens · 23.0s · auto\n");
  CHECK(
      screen.event(
          "api.failed",
          R"("status":529,"error":"overloaded","attempt":2,"max_attempts":10,"retry_in_ms":1200,"fatal":false)") ==
      "14:03:07 api      ↻ API error  529 · attempt 2/10 · retry in 1.2s · overloaded\n");
  CHECK(screen.event("line.skipped",
                     R"("line":4096,"lines":3,"bytes":12000,"reason":"not JSON","salvaged":false)") ==
        "14:03:07 api      ¿ skipped 3 lines, 12.0 kB  not JSON · at byte 4096\n");
}

TEST_CASE("sessions of the same project are labelled with their id") {
  Screen screen;
  screen.session("2eaa1c04-1", R"("project":"/home/u/api","status":{"state":"idle"})");
  CHECK(
      screen.session(
          "91bd0000-2",
          R"("project":"/home/u/api","status":{"state":"working"},"last_activity":"2025-11-04T14:00:00Z","turn":{"number":4,"open":true,"prompt":"go"})") ==
      "14:00:00 api·91bd ● working  turn 4 · go\n");
  CHECK(screen.event("turn.started", R"("prompt":"x","origin":"human")") ==
        "14:03:07 api·2eaa ▶ turn 3  x\n");
}

TEST_CASE("until the project is known the label is its directory") {
  Screen screen;
  CHECK(screen.event("turn.started", R"("prompt":"x","origin":"human")") ==
        "14:03:07 …e-u-api ▶ turn 3  x\n");
}

TEST_CASE("the label names another host") {
  Screen screen;
  screen.show(R"({"type":"welcome","protocol":1,"host":"hub"})");
  CHECK(screen.event("session.started", R"("project":"/home/u/api")") ==
        "14:03:07 dev7:api ◆ session 2eaa1c04\n");
}

TEST_CASE("the date is printed when it changes") {
  Screen screen;
  const std::string next =
      R"({"type":"turn.started","session":"s","turn":1,"prompt":"x","origin":"human","time":"2025-11-05T00:00:01Z"})";
  CHECK(screen.show(next) == "── Wed 5 Nov 2025 ──\n00:00:01 s        ▶ turn 1  x\n");
  CHECK(screen.show(next) == "00:00:01 s        ▶ turn 1  x\n");
}

TEST_CASE("a line fits the terminal and contains no control characters") {
  for (const std::size_t columns : {20U, 40U, 80U}) {
    Screen screen(true, {Charset::utf8, Palette::none, columns});
    const std::string line = screen.event(
        "turn.started",
        R"("prompt":"漢字\u001b[2J\u202e漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字","origin":"human")");
    REQUIRE_FALSE(line.empty());
    CHECK(line.find('\x1b') == line.npos);
    CHECK(line.find("\xe2\x80\xae") == line.npos);
    CHECK(display_width(line.substr(0, line.size() - 1)) <= columns);
  }
}

TEST_CASE("names from a transcript are escaped, too") {
  Screen screen;
  const std::string line = screen.show(
      R"({"type":"tool.invoked","host":"h\u001b","session":"\u001b]0;x\u0007","agent":"\u001b[1m","stream":"a/\u009b","tool":"\u001b[31m","call":"\u001b","input":{"\u001b":"\u001b"}})");
  CHECK(line.find('\x1b') == line.npos);
  CHECK(line.find('\a') == line.npos);
  CHECK(line.find("\xc2\x9b") == line.npos);
  CHECK(line.find("\\x1b") != line.npos);
}

TEST_CASE("without UTF-8 everything is ASCII") {
  Screen screen(true, {Charset::ascii, Palette::none, 0});
  screen.in_project();
  std::string all = screen.event("turn.started", R"("prompt":"café","origin":"human")");
  all += screen.event("compaction.finished", R"("pre_tokens":155000,"post_tokens":12000,"kind":"full")");
  all += screen.show(
      R"({"type":"status","session":"2eaa1c04-1","state":"waiting","reason":"permission","detail":"x"})");
  CHECK(std::all_of(all.begin(), all.end(), [](unsigned char c) { return c < 0x80; }));
  CHECK(all.find("> turn 3  caf?") != all.npos);
}

TEST_CASE("a queued prompt is shown only during a turn") {
  Screen screen;
  screen.in_project();
  const std::string queued = R"("operation":"enqueue","text":"and then this")";
  CHECK(screen.event("queue.changed", queued).empty());
  screen.event("turn.started", R"("prompt":"x","origin":"human")");
  CHECK(screen.event("queue.changed", queued) == "14:03:07 api      ⋯ queued  and then this\n");
  CHECK(screen.event("queue.changed", R"("operation":"dequeue")").empty());
  CHECK(screen
            .event("queue.changed",
                   R"("operation":"enqueue","text":"<task-notification><task-id>b1</task-id>")")
            .empty());
  screen.event("turn.finished", R"("outcome":"completed")");
  CHECK(screen.event("queue.changed", queued).empty());
}

TEST_CASE("a notification that starts a turn is shown as its summary") {
  Screen screen;
  screen.in_project();
  CHECK(
      screen.event(
          "turn.started",
          R"("prompt":"<task-notification>\n<task-id>b1</task-id>\n<summary>tests passed</summary>\n</task-notification>","origin":"task")") ==
      "14:03:07 api      ▶ turn 3 task  tests passed\n");
}

TEST_CASE("unknown event types are not shown") {
  Screen screen;
  CHECK(screen.event("moon.rose", R"("phase":"full")").empty());
}

TEST_CASE("events of the meta view are shown without texts") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event("tool.invoked", R"("call":"t1","tool":"Bash")") == "14:03:07 api      ⚙ Bash\n");
  CHECK(screen.event("turn.started", R"("origin":"human")") == "14:03:07 api      ▶ turn 3\n");
}

TEST_CASE("on a hub the label starts with the host, a host that goes offline or online is one line") {
  Screen screen;
  screen.show(R"({"type":"welcome","protocol":1,"host":"hub"})");
  const auto status = [&](const std::string& id, const std::string& fields) {
    return screen.show(R"({"type":"status","host":")" + id.substr(id.find('@') + 1) + R"(","session":")" +
                       id + "\"," + fields + R"(,"since":"2025-11-04T14:03:07Z"})");
  };
  for (const char* id : {"2eaa@ada", "2ebb@bob", "2ecc@bob"})
    screen.show(R"({"type":"session","host":")" + std::string(id).substr(5) + R"(","session":")" + id +
                R"(","project":"/home/u/api","status":{"state":"idle"}})");
  const std::string asks = R"("state":"waiting","reason":"permission","detail":"approve Bash")";
  CHECK(status("2eaa@ada", asks).find("ada:api ") != std::string::npos);
  CHECK(status("2ebb@bob", asks).find("bob:api·2ebb ") != std::string::npos);
  const std::string away = R"("state":"unknown","reason":"host_offline","source":"clock")";
  const std::string line = status("2ebb@bob", away);
  CHECK(line.find("14:03:07 bob:api·2ebb") == 0);
  CHECK(line.find("host bob is offline\n") != std::string::npos);
  CHECK(status("2ecc@bob", away).empty());
  CHECK(status("2ebb@bob", asks).find("host bob is online again\n") !=
        std::string::npos);  // it waits as before
  CHECK(status("2ecc@bob", R"("state":"idle","source":"registry")").empty());
  CHECK(status("2ecc@bob", away).find("is offline") != std::string::npos);
  CHECK(status("2ecc@bob", asks).find("needs you") != std::string::npos);  // the new state is shown instead
  CHECK(status("2ebb@bob", asks).empty());
}

TEST_CASE("a session of another program than Claude Code names it") {
  Screen screen;
  CHECK(screen.event("session.started", R"("program":"codex","version":"0.169.0","project":"/home/u/api")") ==
        "14:03:07 api      ◆ session 2eaa1c04  Codex CLI · 0.169.0\n");
  CHECK(
      screen.event("session.started", R"("program":"claude-code","version":"2.1","project":"/home/u/api")") ==
      "14:03:07 api      ◆ session 2eaa1c04  2.1\n");
  CHECK(screen.event("session.updated", R"("permission_mode":"on-request","sandbox":"read-only")") ==
        "14:03:07 api      ◆ permission mode on-request  sandbox read-only\n");
  CHECK(
      screen.session(
          "91bd",
          R"("program":"pi","project":"/home/u/web","status":{"state":"idle"},"last_activity":"2025-11-04T14:03:07Z")") ==
      "14:03:07 web      ○ idle  Pi\n");
}

TEST_CASE("plans and messages of other agents are shown") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event("message.added", R"("role":"assistant","kind":"plan","text":"1. Look")") ==
        "14:03:07 api      “ plan  1. Look\n");
  CHECK(screen.event("message.added", R"("role":"user","kind":"agent","text":"It is fine.")") ==
        "14:03:07 api      ↳ agent  It is fine.\n");
}

TEST_CASE("api.failed shows the program's name of the failure") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event("api.failed",
                     R"("error":"You have hit it.","fatal":true,"kind":"usage_limit_exceeded")") ==
        "14:03:07 api      ↻ API request failed  usage_limit_exceeded · You have hit it.\n");
}

TEST_CASE("limits are shown if little is left, or with --verbose") {
  Screen quiet, verbose(true);
  quiet.in_project();
  verbose.in_project();
  const auto limits = [](const std::string& used, const std::string& more = {}) {
    return R"("limit":"codex","plan":"plus")" + more + R"(,"windows":[{"name":"primary","used_percent":)" +
           used + R"(,"window_minutes":300,"resets_at":"2025-11-04T16:00:00Z"}])";
  };
  CHECK(quiet.event("limits.updated", limits("12.5")).empty());
  CHECK(verbose.event("limits.updated", limits("12.5")) ==
        "14:03:07 api      · limits  12% of 5h until 16:00:00 · plus\n");
  CHECK(quiet.event("limits.updated", limits("92")) ==
        "14:03:07 api      ↻ limits  92% of 5h until 16:00:00 · plus\n");
  CHECK(quiet.event("limits.updated", limits("100", R"(,"reached":"primary")")) ==
        "14:03:07 api      ↻ limit reached: primary  100% of 5h until 16:00:00 · plus\n");
}

TEST_CASE("token counts show reasoning and the context where they are recorded") {
  Screen verbose(true);
  verbose.in_project();
  CHECK(
      verbose.event(
          "usage.updated",
          R"("model":"m","input":300,"output":40,"cache_read":1000,"cache_write":0,"total":{"input":300,"output":40,"cache_read":1000,"cache_write":0},"reasoning":8,"context_tokens":1340,"context_window":258400)") ==
      "14:03:07 api      · tokens  340 · 340 in total · 1.0k from the cache · 8 for reasoning · context "
      "▰▱▱▱▱ 0%, 1.3k of 258k · m\n");
}

TEST_CASE("a finished turn shows how long it waited") {
  Screen screen;
  screen.in_project();
  CHECK(screen.event(
            "turn.finished",
            R"("outcome":"completed","stop_reason":"end_turn","duration_ms":41200,"waited_ms":30500)") ==
        "14:03:07 api      ■ turn 3 completed  41.2s · waited 30.5s\n");
}

TEST_CASE("with --verbose a session of the snapshot shows context, cost and times") {
  const std::string numbers =
      R"("project":"/home/u/api","title":"Fix it","unseen":true,"last_activity":"2025-11-04T14:03:07Z","status":{"state":"idle"},"usage":{"context":190000,"context_window":200000,"cost_usd":0.004,"cost_source":"recorded"},"times":{"waited_ms":240000,"worked_ms":61000,"idle_ms":500}})";
  const std::string fields = numbers.substr(0, numbers.size() - 1);
  CHECK(Screen(true).session("2eaa", fields) ==
        "14:03:07 api      ○ idle  unseen · context ▰▰▰▰▱ 95%, 190k of 200k · <$0.01 · waited 4m00s · worked "
        "1m01s · idle 0.5s · Fix it\n");
  CHECK(Screen(false).session("2eaa", fields) == "14:03:07 api      ○ idle  unseen · Fix it\n");
  const std::string waits =
      R"("project":"/home/u/api","status":{"state":"waiting","reason":"plan"},"usage":{"context":190000,"context_window":200000})";
  CHECK(Screen(true).session("2eaa", waits).find("needs you: plan  context ▰▰▰▰▱ 95%, 190k of 200k\n") !=
        std::string::npos);
  CHECK(Screen(false).session("2eaa", waits).find("needs you: plan\n") != std::string::npos);
}

TEST_CASE("sessions of a project whose ids begin with the time have labels that differ") {
  Screen screen;
  for (const char* id : {"019a6e3c-5b1f-7a20", "019a6e3c-5b20-7b11"})
    screen.show(R"({"type":"session.started","host":"dev7","stream":"codex/2026/r","session":")" +
                std::string(id) + R"(","project":"/home/u/api"})");
  const std::string line = screen.show(
      R"({"type":"turn.started","host":"dev7","stream":"codex/2026/r","session":"019a6e3c-5b20-7b11","time":"2025-11-04T14:03:07Z","turn":1,"origin":"human"})");
  CHECK(line.find("api·…-5b2 ") != std::string::npos);
}

TEST_CASE("fault 156: the day of a session or a status that is older is shown, too") {
  Screen screen;
  const std::string calm =
      R"("status":{"state":"idle"},"last_activity":"2025-11-01T17:08:00Z","project":"/home/u/api")";
  CHECK(screen.session("s", calm).starts_with("── Sat 1 Nov 2025 ──\n17:08:00 "));
  CHECK(screen.session("t", calm).starts_with("17:08:00 "));
  CHECK(
      screen
          .show(
              R"({"type":"status","session":"s","state":"waiting","reason":"question","since":"2025-11-02T05:08:00Z"})")
          .starts_with("── Sun 2 Nov 2025 ──\n05:08:00 "));
}

TEST_CASE("times of a host whose clock is off are shown by the clock of the hub") {
  Screen screen;
  const auto session = [&](const std::string& fields) {
    return screen
        .session(
            "2eaa1c04-1",
            R"("project":"/home/u/api","status":{"state":"idle"},"last_activity":"2025-11-04T14:00:00Z")" +
                fields)
        .substr(0, 8);
  };
  const auto status = [&](const std::string& fields) {
    return screen
        .show(R"({"type":"status","host":"dev7","session":"2eaa1c04-1","since":"2025-11-04T14:03:07Z",)" +
              fields + "}")
        .substr(0, 8);
  };
  const auto turn = [&] { return screen.event("turn.started", R"("origin":"human")").substr(0, 8); };
  CHECK(session(R"(,"clock_offset_ms":3600000)") == "15:00:00");
  CHECK(turn() == "15:03:07");
  CHECK(status(R"("state":"waiting","reason":"question")") == "15:03:07");
  CHECK(status(R"("state":"unknown","reason":"host_offline")") == "14:03:07");  // the hub wrote that
  CHECK(session("") == "14:00:00");
  CHECK(turn() == "14:03:07");
}

}  // namespace event_formatter_test
