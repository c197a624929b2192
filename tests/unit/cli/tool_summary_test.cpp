#include "cli/tool_summary.hpp"

#include <catch2/catch.hpp>

using namespace earshot;
using namespace earshot::cli;

namespace {

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
