#include "cli/session_summary.hpp"

#include <catch2/catch.hpp>

#include "common/format.hpp"

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
  CHECK(it.tokens == "45.1k / 12.3k");
  CHECK(it.age == "3s");
  CHECK(it.last == "approve Bash: rm -rf build");
}

TEST_CASE("waiting sessions are first in the table") {
  CHECK(format_session_table({row(idle), row(waiting)}, {Charset::utf8, Palette::none, 0}) ==
        "STATUS        SESSION   PROJECT  TURN  TOOL           TODO  CONTEXT / TOTAL  AGE  LAST\n"
        "⏸ permission  2eaa1c04  api         3  Bash 2m05s +1  1/2     45.1k / 12.3k   3s  approve Bash: "
        "rm -rf build\n"
        "○ idle        91bd0000  web                                                   2h  Paint it\n");
}

TEST_CASE("in a narrow terminal the table keeps project, status and request") {
  const std::string text =
      format_session_table({row(idle), row(waiting)}, {Charset::utf8, Palette::none, 60});
  CHECK(text.find("permission") != text.npos);
  CHECK(text.find("api") != text.npos);
  CHECK(text.find("approve Bash") != text.npos);
  CHECK(text.find("CONTEXT") == text.npos);
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
