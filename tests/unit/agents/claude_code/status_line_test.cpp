// The JSON of the status line: whatever a version leaves out or writes differently is absent.
#include <catch2/catch.hpp>
#include <string>

#include "agents/claude_code/program.hpp"

using namespace earshot;

namespace {

std::optional<StatusLine> parse(std::string_view json) {
  return claude_code::program().parse_status_line(json);
}

StatusLine parsed(std::string_view json) {
  const auto line = parse(json);
  REQUIRE(line);
  return *line;
}

}  // namespace

TEST_CASE("a complete status line") {
  const StatusLine line = parsed(R"({
    "session_id":"s1","transcript_path":"/home/u/.claude/projects/p/s1.jsonl","cwd":"/home/u/api/src",
    "model":{"id":"claude-opus-4-1","display_name":"Opus 4.1"},
    "workspace":{"current_dir":"/home/u/api/src","project_dir":"/home/u/api"},"version":"2.1.207",
    "cost":{"total_cost_usd":1.25,"total_duration_ms":1000},
    "context_window":{"context_window_size":200000,"used_percentage":12,"total_input_tokens":99,
      "current_usage":{"input_tokens":10,"output_tokens":7,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000}},
    "exceeds_200k_tokens":false,
    "rate_limits":{"five_hour":{"used_percentage":23.5,"resets_at":1764100800},
                   "seven_day":{"used_percentage":41,"resets_at":"2025-11-30T12:00:00Z"}}})");
  REQUIRE(line.session == "s1");
  REQUIRE(line.cwd == "/home/u/api/src");
  REQUIRE(line.model == "claude-opus-4-1");
  REQUIRE(line.model_name == "Opus 4.1");
  REQUIRE(line.context_window == 200'000);
  REQUIRE(line.context_tokens == 3210);
  REQUIRE(line.cost_usd == 1.25);
  REQUIRE(line.limit == "claude");
  REQUIRE(line.windows == std::vector<LimitWindow>{{"five_hour", 23.5, 300, "2025-11-25T20:00:00.000Z"},
                                                   {"seven_day", 41.0, 10'080, "2025-11-30T12:00:00.000Z"}});
}

TEST_CASE("what a status line does not state is absent") {
  const StatusLine line = parsed(R"({"session_id":"s1"})");
  REQUIRE(line.session == "s1");
  REQUIRE((line.cwd + line.model + line.model_name + line.limit).empty());
  REQUIRE_FALSE(line.context_window);
  REQUIRE_FALSE(line.context_tokens);
  REQUIRE_FALSE(line.cost_usd);
  REQUIRE(line.windows.empty());
  REQUIRE(parsed(R"({"cwd":"/home/u"})").session.empty());
  REQUIRE(parsed(R"({"cwd":"/home/u"})").cwd == "/home/u");
  REQUIRE(parsed("{}").session.empty());
}

TEST_CASE("wrong types and numbers outside the possible range are absent") {
  for (const char* size : {"-1", "0", "1.5", "1e300", "\"200000\"", "null", "[1]", "{}", "true"}) {
    CAPTURE(size);
    REQUIRE_FALSE(
        parsed(std::string(R"({"session_id":"s","context_window":{"context_window_size":)") + size + "}}")
            .context_window);
  }
  for (const char* usd : {"-0.01", "1e10", "\"1\"", "null"}) {
    CAPTURE(usd);
    REQUIRE_FALSE(
        parsed(std::string(R"({"session_id":"s","cost":{"total_cost_usd":)") + usd + "}}").cost_usd);
  }
  for (const char* percent : {"-1", "1001", "\"5\"", "null", "[]"}) {
    CAPTURE(percent);
    const std::string json =
        std::string(R"({"session_id":"s","rate_limits":{"five_hour":{"used_percentage":)") + percent + "}}}";
    REQUIRE(parsed(json).windows.empty());
  }
  for (const char* time : {"-1", "1e15", "\"soon\"", "0", "{}"}) {
    CAPTURE(time);
    const std::string json =
        std::string(R"({"rate_limits":{"seven_day":{"used_percentage":5,"resets_at":)") + time + "}}}";
    REQUIRE(parsed(json).windows == std::vector<LimitWindow>{{"seven_day", 5.0, 10'080, ""}});
  }
  for (const char* members : {R"("session_id":7)", R"("session_id":["s"])", R"("session_id":null)"}) {
    CAPTURE(members);
    REQUIRE(parsed("{" + std::string(members) + "}").session.empty());
  }
  REQUIRE(parsed(R"({"session_id":")" + std::string(257, 'a') + "\"}").session.empty());
  REQUIRE(parsed(R"({"model":"opus","context_window":[],"rate_limits":"none","cost":0})").model.empty());
}

TEST_CASE("the share of the window replaces missing token counts") {
  const StatusLine line = parsed(
      R"({"context_window":{"context_window_size":200000,"used_percentage":12.5,"current_usage":null}})");
  REQUIRE(line.context_tokens == 25'000);
  REQUIRE_FALSE(parsed(R"({"context_window":{"used_percentage":12.5}})").context_tokens);
}

TEST_CASE("only a JSON object of at most 64 KiB is a status line") {
  for (const char* text : {"", "{", "[]", "\"s\"", "null", "7", "{\"session_id\":\"s\"} {}", "not json"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse(text));
  }
  const std::string padding(StatusLines::status_line_bytes_max, 'x');
  REQUIRE_FALSE(parse("{\"session_id\":\"s\",\"x\":\"" + padding + "\"}"));
  REQUIRE(parse("{\"session_id\":\"s\",\"x\":\"" + padding.substr(100) + "\"}"));
  REQUIRE_FALSE(find_agent_program("codex")->status_lines());
}
