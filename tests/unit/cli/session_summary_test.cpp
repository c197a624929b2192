#include "cli/session_summary.hpp"

#include <catch2/catch.hpp>

#include "common/format.hpp"

namespace session_summary_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

const std::int64_t noon = *parse_time("2025-11-04T12:00:00Z");

SessionRow row(const std::string& json) {
  FrameParser parser;
  const auto frame = parser.parse(json);
  REQUIRE(frame);
  return make_session_row(*frame, Charset::utf8, noon);
}

const char* const waiting =
    R"({"type":"session","host":"dev7","session":"2eaa1c04-77","project":"/home/u/api","title":"Fix it","status":{"state":"waiting","reason":"permission","detail":"approve Bash: rm -rf build"},"turn":{"number":3,"open":true},"tools":[{"call":"t","tool":"Bash","started":"2025-11-04T11:57:55Z"},{"call":"u","tool":"Read"}],"todos":[{"content":"a","status":"completed"},{"content":"b","status":"pending"}],"usage":{"input":1000,"output":2000,"cache_read":5000000,"cache_write":9300,"context":45100},"last_activity":"2025-11-04T11:59:57Z"})";
const char* const idle =
    R"({"type":"session","host":"dev7","session":"91bd0000-77","project":"/home/u/web","title":"Paint it","status":{"state":"idle"},"last_activity":"2025-11-04T10:00:00Z"})";

std::string summary(std::string_view tool, const std::string& input, Charset charset = Charset::utf8) {
  FrameParser parser;
  const auto frame = parser.parse("{\"input\":" + input + "}");
  REQUIRE(frame);
  return tool_summary(tool, frame->get("input"), "/home/u/api", charset);
}

}  // namespace

TEST_CASE("the summary of a call is the most specific field of its input") {
  CHECK(summary("Bash", R"({"command":"npm test","description":"run tests"})") == "npm test");
  CHECK(summary("Grep", R"({"path":"src","pattern":"TODO"})") == "TODO");
  CHECK(summary("WebFetch", R"({"prompt":"read","url":"https://example.org"})") == "https://example.org");
  CHECK(summary("Task", R"({"prompt":"long","description":"find it","subagent_type":"Explore"})") ==
        "find it");
  CHECK(summary("AskUserQuestion", R"({"questions":[{"question":"Which colour?","header":"x"}]})") ==
        "Which colour?");
}

TEST_CASE("the summary of calls of other programs") {
  CHECK(summary("exec_command", R"({"cmd":"make","workdir":"/home/u/api"})") == "make");
  CHECK(summary("shell", R"({"command":["bash","-lc","make\nmake test"],"timeout_ms":1})") ==
        "make ⏎ make test");
  CHECK(summary("shell", R"({"command":["ls","-l"]})") == "ls -l");
  CHECK(summary("apply_patch",
                R"("*** Begin Patch\n*** Update File: /home/u/api/src/a.c\n@@\n-x\n+y\n*** End Patch\n")") ==
        "src/a.c");
  CHECK(summary("apply_patch", R"({"files":["/home/u/api/a.c","/home/u/api/b.c"]})") == "a.c +1");
  CHECK(summary("exec", R"x("text(1)\ntext(2)")x") == "text(1) ⏎ text(2)");
  CHECK(summary("request_user_input", R"({"questions":[{"question":"Which lamp?"}]})") == "Which lamp?");
  CHECK(summary("collaboration.spawn_agent", R"({"task_name":"looker","fork":true})") == "looker");
  CHECK(summary("ask_user", R"({"question":"Which lamp?","choices":["a","b"]})") == "Which lamp?");
  CHECK(summary("grep", R"({"path":"src","pattern":"TODO"})") == "TODO");
}

TEST_CASE("a path inside the project is relative") {
  CHECK(summary("Read", R"({"file_path":"/home/u/api/src/main.ts"})") == "src/main.ts");
  CHECK(summary("Edit", R"({"file_path":"/home/u/apiary/x"})") == "/home/u/apiary/x");
  CHECK(summary("Read", R"({"file_path":"/home/u/api"})") == "/home/u/api");
}

TEST_CASE("the end of a long path is shown") {
  const std::string text = summary("Read", "{\"file_path\":\"/" + std::string(100, 'd') + "/main.ts\"}");
  CHECK(display_width(text) == 60);
  CHECK(text.starts_with("…"));
  CHECK(text.ends_with("/main.ts"));
}

TEST_CASE("the summary of an unknown tool is a common field, or all of its input") {
  CHECK(summary("mcp__db__run", R"({"limit":5,"query":"select 1"})") == "select 1");
  CHECK(summary("Odd", R"({"n": 5, "deep": {"x": [1, 2]}})") == R"({"n":5,"deep":{"x":[1,2]}})");
  CHECK(summary("Odd", "{}").empty());
  CHECK(summary("Odd", "null").empty());
}

TEST_CASE("a truncated input is shown as text") {
  CHECK(summary("Write", R"("{\"content\":\"abc")") == R"({"content":"abc)");
}

TEST_CASE("a command of several lines is displayed on one line, escaped") {
  CHECK(summary("Bash", R"({"command":"cd x\nmake"})") == "cd x ⏎ make");
  CHECK(summary("Bash", R"({"command":"printf '\u001b[2J'"})") == "printf '\\x1b[2J'");
  CHECK(summary("Bash", R"({"command":"cd x\nmake"})", Charset::ascii) == "cd x | make");
}

TEST_CASE("names of tools from servers are readable") {
  CHECK(tool_name("Bash", Charset::utf8) == "Bash");
  CHECK(tool_name("mcp__github__create_issue", Charset::utf8) == "github: create_issue");
  CHECK(tool_name("mcp__odd", Charset::utf8) == "mcp__odd");
  CHECK(tool_name("", Charset::utf8) == "?");
}

TEST_CASE("the summary of a to-do list is its progress and the current item") {
  FrameParser parser;
  const auto frame = parser.parse(
      R"({"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress","active_form":"doing b"},{"content":"c","status":"pending"}]})");
  REQUIRE(frame);
  const TodoSummary todo = todo_summary(*frame, Charset::utf8);
  CHECK(todo.progress == "1/3");
  CHECK(todo.current == "doing b");
  CHECK_FALSE(todo.complete);
}

TEST_CASE("an empty to-do list has no summary") {
  FrameParser parser;
  const auto frame = parser.parse(R"({"todos":[]})");
  REQUIRE(frame);
  CHECK(todo_summary(*frame, Charset::utf8).progress.empty());
}

TEST_CASE("a row shows what a session is doing") {
  const SessionRow it = row(waiting);
  CHECK(it.state == "waiting");
  CHECK(it.session == "2eaa1c04");
  CHECK(it.project == "api");
  CHECK(it.turn == "3");
  CHECK(it.tool == "Bash 2m05s +1");
  CHECK(it.todo == "1/2");
  CHECK(it.context == "45.1k");
  CHECK(it.tokens == "12.3k");
  CHECK(it.cost.empty());
  CHECK(it.times.empty());
  CHECK(it.age == "3s");
  CHECK(it.last == "approve Bash: rm -rf build");
}

TEST_CASE("no tool of an ended session runs") {
  std::string ended = waiting;
  const std::string state = R"("state":"waiting")";
  ended.replace(ended.find(state), state.size(), R"("state":"ended")");
  CHECK(row(ended).tool.empty());
}

TEST_CASE("waiting sessions are first in the table") {
  CHECK(format_session_table({row(idle), row(waiting)}, {Charset::utf8, Palette::none, 0}) ==
        "STATUS        SESSION   PROJECT  TURN  TOOL           TODO  CONTEXT  TOKENS  AGE  LAST\n"
        "⏸ permission  2eaa1c04  api         3  Bash 2m05s +1  1/2     45.1k   12.3k   3s  approve Bash: "
        "rm -rf build\n"
        "○ idle        91bd0000  web                                                   2h  Paint it\n");
}

TEST_CASE("programs are a column only where there are several") {
  const auto of = [](std::string json, const std::string& program) {
    return row(json.insert(1, R"("program":")" + program + "\","));
  };
  CHECK(format_session_table({of(idle, "codex")}, {}).find("PROGRAM") == std::string::npos);
  CHECK(format_session_table({of(idle, "codex"), row(waiting)}, {}).find("PROGRAM") == std::string::npos);
  CHECK(
      format_session_table({of(idle, "codex"), of(idle, "claude-code")}, {Charset::utf8, Palette::none, 0}) ==
      "STATUS  PROGRAM      SESSION   PROJECT  AGE  LAST\n"
      "○ idle  codex        91bd0000  web       2h  Paint it\n"
      "○ idle  claude-code  91bd0000  web       2h  Paint it\n");
}

TEST_CASE("ids that begin alike are shown as far as they differ") {
  std::string one = idle, other = idle, third = idle;
  one.replace(one.find("91bd0000-77"), 11, "019a6e3c-5b1f-7a20");
  other.replace(other.find("91bd0000-77"), 11, "019a6e3c-5b20-7b11");
  const std::string text = format_session_table({row(one), row(other), row(third)}, {});
  CHECK(text.find(" 019a6e3c-5b1 ") != text.npos);
  CHECK(text.find(" 019a6e3c-5b2 ") != text.npos);
  CHECK(text.find(" 91bd0000 ") != text.npos);
}

TEST_CASE("a call that may wait for the user is shown") {
  const auto of = [](const std::string& state) {
    return row(R"({"type":"session","session":"s","title":"Fix it","status":{"state":")" + state +
               R"(","detail":"exec_command: make, may be waiting"}})");
  };
  CHECK(of("working").last == "exec_command: make, may be waiting");
  CHECK(of("idle").last == "Fix it");
}

TEST_CASE("context, cost and times are columns where they are known") {
  const SessionRow it = row(
      R"({"type":"session","session":"s","status":{"state":"working","since":"2025-11-04T11:58:00Z"},"usage":{"input":10,"output":5,"context":64600,"context_window":258400,"cost_usd":1.2,"cost_source":"estimated"},"times":{"waited_ms":240000,"worked_ms":600000,"idle_ms":0,"turn":{"waited_ms":0,"worked_ms":0}}})");
  CHECK(it.context == "▰▱▱▱▱ 25%");
  CHECK(it.cost == "~$1.20");
  CHECK(it.times == "4m / 12m");
  CHECK(format_session_table({it}, {Charset::ascii, Palette::none, 0})
            .starts_with("STATUS     SESSION    CONTEXT    COST  WAITED / WORKED  TOKENS\n"
                         "* working  s        ▰▱▱▱▱ 25%  ~$1.20         4m / 12m      15\n"));
}

TEST_CASE("a session that finished unseen is marked and precedes those of its state") {
  std::string unseen = idle, newer = idle;
  unseen.insert(1, R"("unseen":true,)");
  newer.replace(newer.find("T10:00"), 6, "T11:00");
  CHECK(row(unseen).unseen);
  CHECK(format_session_table({row(newer), row(unseen)}, {Charset::utf8, Palette::none, 0}) ==
        "STATUS          SESSION   PROJECT  AGE  LAST\n"
        "○ idle, unseen  91bd0000  web       2h  Paint it\n"
        "○ idle          91bd0000  web       1h  Paint it\n");
  std::string working = unseen;
  working.replace(working.find(R"("state":"idle")"), 14, R"("state":"working")");
  CHECK_FALSE(row(working).unseen);
}

TEST_CASE("in a narrow terminal the table keeps project, status and request") {
  const std::string text =
      format_session_table({row(idle), row(waiting)}, {Charset::utf8, Palette::none, 60});
  CHECK(text.find("permission") != text.npos);
  CHECK(text.find("api") != text.npos);
  CHECK(text.find("approve Bash") != text.npos);
  CHECK(text.find("TOKENS") == text.npos);
  CHECK(text.find("TURN") == text.npos);
}

TEST_CASE("in 80 columns the context and the cost are shown, and no line is longer") {
  const auto session = [](const std::string& state) {
    return row(
        R"({"type":"session","host":"dev7","session":"2eaa1c04-77","program":"claude-code","project":"/home/u/storefront","title":"Rewrite the checkout so that it survives a lost connection","status":{"state":")" +
        state +
        R"(","since":"2025-11-04T11:58:00Z"},"turn":{"number":31},"todos":[{"content":"a","status":"completed"}],"usage":{"input":1000,"output":2000,"context":190000,"context_window":200000,"cost_usd":234.5,"cost_source":"mixed"},"times":{"waited_ms":3600000,"worked_ms":360000000,"idle_ms":0},"last_activity":"2025-11-04T11:59:57Z"})");
  };
  const std::string text =
      format_session_table({session("waiting"), session("working")}, {Charset::utf8, Palette::none, 80});
  CHECK(text.find("▰▰▰▰▱ 95%") != text.npos);
  CHECK(text.find("~$234.50") != text.npos);
  CHECK(text.find("storefront") != text.npos);
  CHECK(text.find("Rewrite the") != text.npos);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    CHECK(display_width(text.substr(at, text.find('\n', at) - at)) <= 80);
}

TEST_CASE("fault 155: 80 columns show the session and its whole status before its cost") {
  const auto session = [](const std::string& status) {
    return row(
        R"({"type":"session","host":"dev7","session":"2eaa1c04-77","project":"/home/u/storefront","title":"Rewrite the checkout","status":)" +
        status +
        R"(,"unseen":true,"turn":{"number":31},"tools":[{"call":"t","tool":"Bash","started":"2025-11-04T11:57:55Z"}],"usage":{"input":1000,"output":2000,"context":190000,"context_window":200000,"cost_usd":1234.5},"last_activity":"2025-11-04T11:59:57Z"})");
  };
  const std::string text = format_session_table(
      {session(R"({"state":"working"})"), session(R"({"state":"idle","reason":"background"})")},
      {Charset::utf8, Palette::none, 80});
  CHECK(text.find("SESSION") != text.npos);
  CHECK(text.find("2eaa1c04") != text.npos);
  CHECK(text.find("○ idle, background, unseen ") != text.npos);
  CHECK(text.find("COST") == text.npos);
}

TEST_CASE("fault 155: a failed last turn is in the status") {
  const auto status = [](const std::string& state, const std::string& turn, const std::string& more = "") {
    const std::string text =
        format_session_table({row(R"({"type":"session","session":"s","status":{"state":")" + state +
                                  R"("},"turn":{)" + turn + "}" + more + "}")},
                             {Charset::utf8, Palette::none, 0});
    return text.substr(text.find('\n') + 1, text.find("  s", text.find('\n')) - text.find('\n') - 1);
  };
  CHECK(status("idle", R"("outcome":"failed")") == "✗ failed");
  CHECK(status("idle", R"("outcome":"failed")", R"(,"unseen":true)") == "✗ failed, unseen");
  CHECK(status("ended", R"("outcome":"failed")") == "✗ ended, failed");
  CHECK(status("idle", R"("outcome":"completed")") == "○ idle");
  CHECK(status("idle", R"("outcome":"failed","open":true)") == "○ idle");  // the next turn has begun
  CHECK(status("working", R"("outcome":"failed")") == "● working");
}

TEST_CASE("fault 155: at a hub times and the order of rows are by the hub's clock") {
  std::string behind = idle, exact = idle;
  behind.insert(
      1,
      R"("clock_offset_ms":3600000,"tools":[{"call":"t","tool":"Bash","started":"2025-11-04T10:59:55Z"}],)");
  behind.replace(behind.find("T10:00"), 6, "T10:58");
  behind.replace(behind.find("Paint"), 5, "Later");
  exact.replace(exact.find("T10:00"), 6, "T11:57");
  CHECK(row(behind).tool == "Bash 5.0s");
  CHECK(row(behind).age == "2m");
  const std::string text = format_session_table({row(exact), row(behind)}, {});
  CHECK(text.find("Later it") < text.find("Paint it"));
}

TEST_CASE("hosts are a column only where there are several") {
  std::string other = idle;
  other.replace(other.find("dev7"), 4, "dev9");
  CHECK(format_session_table({row(idle)}, {}).find("HOST") == std::string::npos);
  CHECK(format_session_table({row(idle), row(other)}, {}).find("dev9") != std::string::npos);
}

TEST_CASE("a frame without optional fields is a row, too") {
  const SessionRow it = row(R"({"type":"session","session":"s","directory":"-home-u-api"})");
  CHECK(it.project == "-home-u-api");
  CHECK(format_session_table({it}, {}) == "STATUS     SESSION  PROJECT\n? unknown  s        -home-u-api\n");
}

TEST_CASE("sessions of an offline host show for how long it is offline") {
  const SessionRow it = row(
      R"({"type":"session","host":"bob","session":"2eaa1c04-77@bob","project":"/home/u/api","status":{"state":"unknown","reason":"host_offline","source":"clock","since":"2025-11-04T11:55:00Z"},"last_activity":"2025-11-04T11:00:00Z"})");
  const std::string text = format_session_table({it, row(idle)}, {Charset::utf8, Palette::none, 0});
  CHECK(text.find("offline 5m  bob ") != text.npos);
  CHECK(text.find("host_offline") == text.npos);
}

}  // namespace session_summary_test
