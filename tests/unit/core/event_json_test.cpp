// The encoding of events: keys and their order, absent fields, truncation, and what the view
// `meta` hides.
#include "core/event_json.hpp"

#include <simdjson.h>

#include <catch2/catch.hpp>

namespace earshot {
namespace {

const StreamAddress here{"h", "s", "t"};

// Checks in addition that both views encoded together are the same as each by itself.
std::string encoded(EventBody body, const EncodeOptions& options = {}, std::string_view agent = "") {
  Event event;
  event.cursor = {10, 1, 0xabcdef};
  event.time = "2026-01-02T03:04:05.678Z";
  event.turn = 3;
  event.agent = agent;
  event.body = std::move(body);
  const auto alone = [&](View view) {
    EncodeOptions with_view = options;
    with_view.view = view;
    std::string out = "before";
    append_event(out, event, here, with_view);
    return out;
  };
  std::string full = "before", meta = "before";
  append_event_views(full, meta, event, encode_address(here), options);
  CHECK(full == alone(View::full));
  CHECK(meta == alone(View::meta));
  std::string out;
  append_event(out, event, here, options);
  return out;
}
std::string own(std::string_view type, std::string_view fields) {
  return R"({"type":")" + std::string(type) +
         R"(","host":"h","stream":"s","session":"t","cursor":"10.1.0000000000abcdef","time":"2026-01-02T03:04:05.678Z","turn":3)" +
         (fields.empty() ? "" : "," + std::string(fields)) + "}";
}
// The encoded value, followed by the member `truncated` if it was cut.
std::string text(std::string_view raw, std::size_t max) {
  std::string out;
  TruncatedPaths truncated;
  append_text(out, raw, max, nullptr, truncated, "text");
  truncated.append_member(out);
  return out;
}
std::string string(std::string_view raw) {
  std::string out;
  append_json_string(out, raw);
  return out;
}
std::string json(std::string_view raw, std::size_t max = 4096) {
  std::string out;
  TruncatedPaths truncated;
  const TruncatedPaths::Scope scope(truncated, "json");
  append_json(out, raw, max, nullptr, truncated);
  truncated.append_member(out);
  return out;
}
std::string read_back(const std::string& json) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(json);
  const simdjson::dom::element value = parser.parse(padded);
  return value.is_string() ? std::string(std::string_view(value.get_string())) : simdjson::minify(value);
}
bool parses(const std::string& json) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string(json)).error() == simdjson::SUCCESS;
}

// ---- events

TEST_CASE("every type has its name") {
  CHECK(type_name(event::SessionStarted{}) == "session.started");
  CHECK(type_name(event::SessionUpdated{}) == "session.updated");
  CHECK(type_name(event::TurnStarted{}) == "turn.started");
  CHECK(type_name(event::TurnFinished{}) == "turn.finished");
  CHECK(type_name(event::MessageAdded{}) == "message.added");
  CHECK(type_name(event::ToolInvoked{}) == "tool.invoked");
  CHECK(type_name(event::ToolFinished{}) == "tool.finished");
  CHECK(type_name(event::TodoUpdated{}) == "todo.updated");
  CHECK(type_name(event::CompactionStarted{}) == "compaction.started");
  CHECK(type_name(event::CompactionFinished{}) == "compaction.finished");
  CHECK(type_name(event::AgentStarted{}) == "agent.started");
  CHECK(type_name(event::AgentFinished{}) == "agent.finished");
  CHECK(type_name(event::TaskFinished{}) == "task.finished");
  CHECK(type_name(event::QueueChanged{}) == "queue.changed");
  CHECK(type_name(event::UsageUpdated{}) == "usage.updated");
  CHECK(type_name(event::ApiFailed{}) == "api.failed");
  CHECK(type_name(event::LimitsUpdated{}) == "limits.updated");
  CHECK(type_name(event::FilesSnapshotted{}) == "files.snapshotted");
  CHECK(type_name(event::LineSkipped{}) == "line.skipped");
}

TEST_CASE("agent follows session, and a missing time is left out") {
  Event event;
  event.cursor = {10, 1, 0xabcdef};
  event.agent = "a7";
  event.body = event::CompactionStarted{};
  std::string out;
  append_event(out, event, here);
  CHECK(
      out ==
      R"({"type":"compaction.started","host":"h","stream":"s","session":"t","agent":"a7","cursor":"10.1.0000000000abcdef","turn":0})");
}

TEST_CASE("absent fields are left out, the others keep their order") {
  CHECK(encoded(event::SessionStarted{.dialect = "claude-code"}) ==
        own("session.started", R"("dialect":"claude-code")"));
  CHECK(
      encoded(event::SessionStarted{"p", "d", "v", "/c", "b", "/p", "t", "k", "m", "q"}) ==
      own("session.started",
          R"("program":"p","dialect":"d","version":"v","cwd":"/c","git_branch":"b","project":"/p","title":"t","continues":"k","mode":"m","permission_mode":"q")"));
  CHECK(encoded(event::SessionUpdated{.model = "big"}) == own("session.updated", R"("model":"big")"));
  CHECK(encoded(event::SessionUpdated{.title = ""}) == own("session.updated", R"("title":"")"));
  CHECK(encoded(event::TurnStarted{"hi", "human"}) ==
        own("turn.started", R"("prompt":"hi","origin":"human")"));
  CHECK(encoded(event::TurnStarted{std::nullopt, "unknown"}) == own("turn.started", R"("origin":"unknown")"));
  CHECK(
      encoded(event::TurnFinished{"completed", true, "end_turn", 7, 2, {1, 2, 3, 4}}) ==
      own("turn.finished",
          R"("outcome":"completed","inferred":true,"stop_reason":"end_turn","duration_ms":7,"tools":2,"usage":{"input":1,"output":2,"cache_read":3,"cache_write":4})"));
  CHECK(encoded(event::TurnFinished{.outcome = "failed"}) ==
        own("turn.finished",
            R"("outcome":"failed","tools":0,"usage":{"input":0,"output":0,"cache_read":0,"cache_write":0})"));
  CHECK(encoded(event::MessageAdded{"user", "image", std::nullopt, "", "", Media{"image", "image/png", 0}}) ==
        own("message.added",
            R"("role":"user","kind":"image","media":{"kind":"image","media_type":"image/png"})"));
  CHECK(encoded(event::MessageAdded{"assistant", "text", "x", "m", "big", std::nullopt}) ==
        own("message.added", R"("role":"assistant","kind":"text","text":"x","message":"m","model":"big")"));
  CHECK(encoded(event::ToolInvoked{"c", "Bash", {R"({"a": 1})"}, "m"}) ==
        own("tool.invoked", R"("call":"c","tool":"Bash","input":{"a":1},"message":"m")"));
  CHECK(encoded(event::ToolFinished{"c", std::nullopt, "ok", "out", {}, std::nullopt, ""}) ==
        own("tool.finished", R"("call":"c","outcome":"ok","output":"out")"));
  CHECK(
      encoded(event::ToolFinished{"c", "Bash", "ok", "", {{"image", "image/png", 3}}, 5, "b1"}) ==
      own("tool.finished",
          R"("call":"c","tool":"Bash","outcome":"ok","output":"","media":[{"kind":"image","media_type":"image/png","bytes":3}],"duration_ms":5,"background":"b1")"));
  const std::vector<Todo> todos = {{"1", "dig", "pending", "Digging", "high"},
                                   {"", "sow", "completed", "", ""}};
  CHECK(
      encoded(event::TodoUpdated{todos, "TodoWrite"}) ==
      own("todo.updated",
          R"("todos":[{"id":"1","content":"dig","status":"pending","active_form":"Digging","priority":"high"},{"content":"sow","status":"completed"}],"source":"TodoWrite")"));
  CHECK(encoded(event::TodoUpdated{{}, "TodoWrite"}) ==
        own("todo.updated", R"("todos":[],"source":"TodoWrite")"));
  CHECK(encoded(event::CompactionStarted{"auto"}) == own("compaction.started", R"("trigger":"auto")"));
  CHECK(encoded(event::CompactionFinished{"auto", 9, 3, 4, "full"}) ==
        own("compaction.finished",
            R"("trigger":"auto","pre_tokens":9,"post_tokens":3,"duration_ms":4,"kind":"full")"));
  CHECK(encoded(event::AgentStarted{"a", "scout", "look", "c", true}) ==
        own("agent.started",
            R"("subagent":"a","agent_type":"scout","description":"look","call":"c","background":true)"));
  CHECK(encoded(event::AgentStarted{.call = "c"}) == own("agent.started", R"("call":"c")"));
  CHECK(
      encoded(event::AgentFinished{"a", "scout", "look", "c", "completed", 1, 2, 3, true}) ==
      own("agent.finished",
          R"("subagent":"a","agent_type":"scout","description":"look","call":"c","outcome":"completed","duration_ms":1,"tokens":2,"tools":3,"background":true)"));
  CHECK(encoded(event::TaskFinished{"b", "c", "failed", "sum"}) ==
        own("task.finished", R"("task":"b","call":"c","outcome":"failed","summary":"sum")"));
  CHECK(encoded(event::QueueChanged{"enqueue", "x"}) ==
        own("queue.changed", R"("operation":"enqueue","text":"x")"));
  CHECK(
      encoded(event::UsageUpdated{"m", "big", Usage{1, 2, 3, 4}, {5, 6, 7, 8}, 0.25}) ==
      own("usage.updated",
          R"("message":"m","model":"big","input":1,"output":2,"cache_read":3,"cache_write":4,"total":{"input":5,"output":6,"cache_read":7,"cache_write":8},"cost_usd":0.25)"));
  CHECK(
      encoded(event::ApiFailed{529, "overloaded", 1, 10, 600, false}) ==
      own("api.failed",
          R"("status":529,"error":"overloaded","attempt":1,"max_attempts":10,"retry_in_ms":600,"fatal":false)"));
  CHECK(encoded(event::ApiFailed{.fatal = true}) == own("api.failed", R"("fatal":true)"));
  CHECK(encoded(event::FilesSnapshotted{"m", {"a", "b"}}) ==
        own("files.snapshotted", R"("message":"m","files":["a","b"])"));
  CHECK(encoded(event::LineSkipped{7, 2, 90, "not JSON", false}) ==
        own("line.skipped", R"("line":7,"lines":2,"bytes":90,"reason":"not JSON","salvaged":false)"));
}

TEST_CASE("what only some programs record: sandbox, source, context, limits, the name of a failure") {
  CHECK(
      encoded(event::SessionStarted{.program = "codex",
                                    .dialect = "codex-paginated",
                                    .permission_mode = "never",
                                    .sandbox = "read-only",
                                    .source = "cli",
                                    .originator = "codex-tui",
                                    .parent = "r1",
                                    .agent_type = "scout"}) ==
      own("session.started",
          R"("program":"codex","dialect":"codex-paginated","permission_mode":"never","sandbox":"read-only","source":"cli","originator":"codex-tui","parent":"r1","agent_type":"scout")"));
  CHECK(encoded(event::SessionUpdated{.sandbox = "read-only"}) ==
        own("session.updated", R"("sandbox":"read-only")"));
  CHECK(
      encoded(event::UsageUpdated{"", "big", Usage{1, 2, 3, 4}, {5, 6, 7, 8}, std::nullopt, 2, 8, 100}) ==
      own("usage.updated",
          R"("model":"big","input":1,"output":2,"cache_read":3,"cache_write":4,"total":{"input":5,"output":6,"cache_read":7,"cache_write":8},"reasoning":2,"context_tokens":8,"context_window":100)"));
  CHECK(encoded(event::ApiFailed{.error = "full", .fatal = true, .kind = "usage_limit_exceeded"}) ==
        own("api.failed", R"("error":"full","fatal":true,"kind":"usage_limit_exceeded")"));
  const std::vector<LimitWindow> windows = {{"primary", 12.5, 300, "2026-11-22T23:26:40Z"},
                                            {"secondary", 64.0, std::nullopt, ""}};
  const std::string limits =
      R"("windows":[{"name":"primary","used_percent":12.5,"window_minutes":300,"resets_at":"2026-11-22T23:26:40Z"},{"name":"secondary","used_percent":64}])";
  for (const View view : {View::full, View::meta}) {  // the same in both
    CHECK(encoded(event::LimitsUpdated{"codex", "plus", "primary", windows}, {.view = view}) ==
          own("limits.updated", R"("limit":"codex","plan":"plus","reached":"primary",)" + limits));
    CHECK(encoded(event::LimitsUpdated{}, {.view = view}) == own("limits.updated", R"("windows":[])"));
  }
}

TEST_CASE("append_event appends") {
  std::string out = "before ";
  Event event;
  event.body = event::CompactionStarted{};
  append_event(out, event, here);
  CHECK(out.starts_with("before {\"type\":"));
}

TEST_CASE("a cost keeps its digits") {
  CHECK(encoded(event::UsageUpdated{"", "", std::nullopt, {}, 0.0008879999999999999})
            .find("\"cost_usd\":0.0008879999999999999}") != std::string::npos);
  CHECK(encoded(event::UsageUpdated{"", "", std::nullopt, {}, 2.0}).find("\"cost_usd\":2") !=
        std::string::npos);
}

TEST_CASE("numbers at their limits") {
  CHECK(encoded(event::TurnFinished{"failed", false, "", INT64_MAX, UINT32_MAX, {UINT64_MAX, 0, 0, 0}})
            .find("\"duration_ms\":9223372036854775807,\"tools\":4294967295,\"usage\":{\"input\":"
                  "18446744073709551615") != std::string::npos);
}

TEST_CASE("the view meta hides texts, inputs, outputs, titles, descriptions and names of files") {
  const EncodeOptions meta{.view = View::meta};
  const std::vector<Todo> todos = {{"1", "SECRET", "pending", "SECRET", "high"}};
  for (const std::string& event :
       {encoded(event::SessionStarted{.dialect = "d", .title = "SECRET"}, meta),
        encoded(event::SessionUpdated{.title = "SECRET"}, meta),
        encoded(event::TurnStarted{"SECRET", "human"}, meta),
        encoded(event::MessageAdded{"user", "text", "SECRET", "", "", std::nullopt}, meta),
        encoded(event::ToolInvoked{"c", "Bash", {R"({"a":"SECRET"})"}, "m"}, meta),
        encoded(event::ToolFinished{"c", "Bash", "ok", "SECRET", {}, 5, ""}, meta),
        encoded(event::TodoUpdated{todos, "TodoWrite"}, meta),
        encoded(event::AgentStarted{"", "scout", "SECRET", "c", false}, meta),
        encoded(event::AgentFinished{"", "scout", "SECRET", "c", "completed", 1, 2, 3, false}, meta),
        encoded(event::TaskFinished{"b", "c", "failed", "SECRET"}, meta),
        encoded(event::QueueChanged{"enqueue", "SECRET"}, meta),
        encoded(event::FilesSnapshotted{"m", {"SECRET", "SECRET"}}, meta)}) {
    INFO(event);
    CHECK(event.find("SECRET") == std::string::npos);
    CHECK(parses(event));
  }
}

TEST_CASE("the view meta keeps names, times and numbers") {
  const EncodeOptions meta{.view = View::meta};
  CHECK(encoded(event::ToolFinished{"c", "Bash", "ok", "SECRET", {}, 5, ""}, meta) ==
        own("tool.finished", R"("call":"c","tool":"Bash","outcome":"ok","duration_ms":5)"));
  CHECK(encoded(event::TurnStarted{"SECRET", "human"}, meta) == own("turn.started", R"("origin":"human")"));
  CHECK(encoded(event::FilesSnapshotted{"m", {"a", "b"}}, meta) ==
        own("files.snapshotted", R"("message":"m","files_count":2)"));
  const std::vector<Todo> todos = {{"1", "dig", "pending", "Digging", "high"}};
  const std::string list = encoded(event::TodoUpdated{todos, "TodoWrite"}, meta);
  for (const char* kept :
       {R"("id":"1")", R"("status":"pending")", R"("priority":"high")", R"("source":"TodoWrite")"}) {
    INFO(list);
    CHECK(list.find(kept) != std::string::npos);
  }
}

// ---- strings

TEST_CASE("strings are escaped as JSON demands") {
  CHECK(string("a\"b\\c/") == R"("a\"b\\c/")");
  CHECK(parses(string(std::string("\0\x01\x1F\n\r\t\b\f\x7F", 9))));
  CHECK(string("gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80") == "\"gr\xC3\xBC\xC3\x9F \xF0\x9F\x98\x80\"");
  CHECK(string("") == "\"\"");
}

TEST_CASE("bytes that are not UTF-8 become U+FFFD") {
  for (const char* bad : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x80"}) {
    const std::string out = string(std::string("a") + bad + "b");
    CHECK(parses(out));
    CHECK(out.starts_with("\"a\xEF\xBF\xBD"));
    CHECK(out.ends_with("b\""));
  }
}

TEST_CASE("every pair of bytes is encoded as valid JSON") {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char bytes[2] = {char(a), char(b)};
      const std::string out = string({bytes, 2});
      if (!parses(out)) FAIL("bytes " << a << " " << b << ": " << out);
    }
  }
}

TEST_CASE("a text longer than the limit is cut and listed with its size") {
  CHECK(text("12345", 5) == R"("12345")");
  CHECK(text("123456", 5) == R"("12345","truncated":{"text":6})");
}

TEST_CASE("text is cut on a character boundary") {
  const std::string euros = "\xE2\x82\xAC\xE2\x82\xAC";
  CHECK(text(euros, 6) == '"' + euros + '"');
  for (const std::size_t max : {3, 4, 5})
    CHECK(text(euros, max) == "\"\xE2\x82\xAC\",\"truncated\":{\"text\":6}");
  for (const std::size_t max : {0, 1, 2}) CHECK(text(euros, max) == R"("","truncated":{"text":6})");
}

TEST_CASE("an event's long text is cut") {
  const std::string event = encoded(event::QueueChanged{"enqueue", "123456"}, {.text_bytes_max = 4});
  CHECK(event == own("queue.changed", R"("operation":"enqueue","text":"1234","truncated":{"text":6})"));
}

TEST_CASE("the paths of truncated texts are listed last, escaped as in a JSON Pointer") {
  const std::string input = R"({"a/b":{"c~d":["x","123456"]},"\u002f":"abcdef","k":"1"})";
  CHECK(
      encoded(event::ToolInvoked{"c", "Edit", {input}, "m"}, {.text_bytes_max = 5}) ==
      own("tool.invoked",
          R"("call":"c","tool":"Edit","input":{"a/b":{"c~d":["x","12345"]},"\u002f":"abcde","k":"1"},"message":"m","truncated":{"input/a~1b/c~0d/1":6,"input/~1":6})"));
  const std::vector<Todo> todos = {{"", "ok", "pending", "", ""}, {"", "123456", "pending", "7777777", ""}};
  CHECK(encoded(event::TodoUpdated{todos, "TodoWrite"}, {.text_bytes_max = 5})
            .ends_with(R"("truncated":{"todos/1/content":6,"todos/1/active_form":7}})"));
  CHECK(encoded(event::TurnStarted{"123456", "human"}, {.view = View::meta, .text_bytes_max = 5})
            .find("truncated") == std::string::npos);
}

TEST_CASE("at most 64 truncated paths are listed") {
  std::string input = "[\"123456\"";
  for (int i = 1; i < 80; ++i) input += ",\"123456\"";
  const std::string event =
      encoded(event::ToolInvoked{"c", "Edit", {input + "]"}, "m"}, {.text_bytes_max = 5});
  CHECK(event.find("\"input/63\":6}") != std::string::npos);
  CHECK(event.find("123456") == std::string::npos);
}

// ---- rewriting JSON

TEST_CASE("JSON is rewritten without blanks, its numbers unchanged") {
  CHECK(json(R"( { "a" : [ 1 , -2.50e+3 , true , false , null ] , "b" : "x" } )") ==
        R"({"a":[1,-2.50e+3,true,false,null],"b":"x"})");
  CHECK(json("18446744073709551616") == "18446744073709551616");
  CHECK(json("1e400") == "1e400");
  CHECK(json("9007199254740993") == "9007199254740993");
  CHECK(json(std::string(400, '7')) == std::string(400, '7'));
  CHECK(json("{}") == "{}");
  CHECK(json("[]") == "[]");
  CHECK(json("\"\"") == "\"\"");
}

TEST_CASE("blanks between any two tokens are removed") {
  for (const char* spaced : {R"([1 ])", R"([1 ,2])", R"({"a":1 })", R"(["x" ])", R"([null ])",
                             R"({ "a" : [ 1 , { "b" : "x" } , [ ] , { } ] })", " [ ] ", "\t1\n"}) {
    std::string compact;
    for (const char* c = spaced; *c; ++c) {
      if (std::string_view(" \t\r\n").find(*c) == std::string_view::npos) compact += *c;
    }
    CHECK(json(spaced) == compact);
  }
}

TEST_CASE("keys are never cut") {
  CHECK(parses(json("{\"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\":1}")));
  CHECK(json(R"({"a key that is longer than the limit":1})", 4) ==
        R"({"a key that is longer than the limit":1})");
}

TEST_CASE("invalid JSON is null") {
  for (const char* bad :
       {"",        " ",         "tru",  "nul",   "01",      "1.",       ".5",    "1e",         "+1",  "-",
        "{",       "}",         "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "'x'", "\"x",
        "\"\\q\"", "\"\\u12\"", "1 2",  "{}{}",  "NaN",     "\"a\tb\"", "[1]x",  "\x01"}) {
    INFO(bad);
    CHECK(json(bad) == "null");
  }
}

TEST_CASE("64 levels are kept, a deeper value is the beginning of its JSON as a string") {
  CHECK(json(std::string(64, '[') + std::string(64, ']')) == std::string(64, '[') + std::string(64, ']'));
  for (const std::size_t depth : {65, 66, 1000, 100'000})
    CHECK(parses("{\"json\":" + json(std::string(depth, '[') + std::string(depth, ']')) + "}"));
  CHECK(json(std::string(65, '[') + std::string(65, ']'), 8) == R"("[[[[[[[[","truncated":{"json":130})");
}

TEST_CASE("long strings inside are cut as text is") {
  CHECK(json(R"({"command":"123456","n":[1,"abcdefgh"]})", 5) ==
        R"({"command":"12345","n":[1,"abcde"]},"truncated":{"json/command":6,"json/n/1":8})");
}

TEST_CASE("strings are cut by their decoded length") {
  CHECK(read_back(json(R"("\u0061\u00fc\n\/\ud83d\ude00")")) == "a\xC3\xBC\n/\xF0\x9F\x98\x80");
  CHECK(read_back(json(R"({"k\u0065y":"\u0061"})")) == R"({"key":"a"})");
  CHECK(json(R"("\u0061\u0062\u0063")", 3).find("truncated") == std::string::npos);
  CHECK(json(R"("\u0061\u0062\u0063")", 2) == R"("\u0061\u0062","truncated":{"json":3})");
  CHECK(json(R"("\ud83d")") == "\"\xEF\xBF\xBD\"");
  CHECK(parses(json("\"\xFF\xC0\x80\"")));
}

TEST_CASE("a long input is sent as the beginning of its JSON") {
  const std::string input = "[" + std::string(2000, '1') + "]";
  const std::string event =
      encoded(event::ToolInvoked{"c", "Bash", {input}, "m"}, {.text_bytes_max = 100, .input_bytes_max = 500});
  CHECK(parses(event));
  CHECK(event.ends_with("111\",\"message\":\"m\",\"truncated\":{\"input\":2002}}"));
  CHECK(event.size() < 1200);
}

TEST_CASE("usage and todos alone") {
  std::string out;
  append_usage(out, {1, 2, 3, 4});
  CHECK(out == R"({"input":1,"output":2,"cache_read":3,"cache_write":4})");
  out.clear();
  const std::vector<Todo> todos = {{"", "123456", "pending", "", ""}};
  TruncatedPaths truncated;
  append_todos(out, todos, 4, nullptr, View::full, truncated);
  CHECK(out == R"([{"content":"1234","status":"pending"}])");
  CHECK(truncated.list() == std::vector<TruncatedPath>{{"todos/0/content", 6}});
}

}  // namespace
}  // namespace earshot
