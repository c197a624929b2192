// Numbers of any size in rollouts of Codex. Its rules: tests/golden/codex.
#include "agents/codex/program.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "unit/support/feed.hpp"

namespace earshot::test {
namespace {

TranscriptOptions codex_options() {
  TranscriptOptions options;
  options.format = &codex::program().format();
  return options;
}

std::string event_line(const std::string& payload) {
  return R"({"timestamp":"2026-03-01T10:00:00.000Z","type":"event_msg","payload":)" + payload + "}\n";
}

std::string limit(const std::string& reset) {
  return event_line(
      R"({"type":"token_count","info":null,"rate_limits":{"limit_id":"codex","primary":{"used_percent":5,)" +
      reset + "}}}");
}

Lines windows(std::initializer_list<std::string> resets) {
  Feed feed(codex_options());
  for (const std::string& reset : resets) feed.write(limit(reset));
  return feed.fields("limits.updated", {"windows"});
}

}  // namespace

TEST_CASE("Codex: looking at a process in the background does not begin another") {
  Feed feed(codex_options());
  const auto item = [](const std::string& payload) {
    return R"({"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":)" + payload + "}\n";
  };
  const auto call = [&](const std::string& id, const std::string& name) {
    feed.write(item(R"({"type":"function_call","name":")" + name + R"(","arguments":"{}","call_id":")" + id +
                    "\"}"));
    feed.write(item(R"({"type":"function_call_output","call_id":")" + id +
                    R"(","output":"Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n"})"));
  };
  call("c1", "exec_command");
  call("c2", "write_stdin");
  REQUIRE(feed.state().tasks.size() == 1);
  CHECK(feed.state().tasks[0].made_by.call == "c1");
}

TEST_CASE("Codex: a limit that resets a minute later is the same limit") {
  CHECK(windows({R"("resets_at":1772359200)", R"("resets_at":1772359260)", R"("resets_at":1772359321)"}) ==
        Lines{R"([{"name":"primary","used_percent":5,"resets_at":"2026-03-01T10:00:00Z"}])",
              R"([{"name":"primary","used_percent":5,"resets_at":"2026-03-01T10:02:01Z"}])"});
}

TEST_CASE("fault 128: Codex: a request that did not fit fills the gauge and takes nothing away") {
  const auto count = [](const std::string& total, const std::string& last) {
    return event_line(R"({"type":"token_count","info":{"total_token_usage":)" + total +
                      R"(,"last_token_usage":)" + last + R"(,"model_context_window":1000}})");
  };
  const std::string some = R"({"input_tokens":700,"output_tokens":20,"total_tokens":720})";
  const std::string none = R"({"input_tokens":0,"output_tokens":0,"total_tokens":0})";
  Feed feed(codex_options());
  feed.write(count(some, some));
  feed.write(count(R"({"input_tokens":0,"output_tokens":0,"total_tokens":1000})", none));
  CHECK(feed.state().used.total() == Usage{700, 20});
  CHECK(feed.state().context_tokens == 1000);
  const std::string next = R"({"input_tokens":30,"output_tokens":1,"total_tokens":31})";
  feed.write(count(next, next));  // the total begins anew
  CHECK(feed.state().used.total() == Usage{730, 21});
  CHECK(feed.state().context_tokens == 31);
}

TEST_CASE("fault 128: Codex: each process of a resumed session counts from zero") {
  Feed feed(codex_options());
  const auto count = [&](int total, int last) {
    const auto tokens = [](int input) { return R"({"input_tokens":)" + std::to_string(input) + "}"; };
    feed.write(event_line(R"({"type":"token_count","info":{"total_token_usage":)" + tokens(total) +
                          R"(,"last_token_usage":)" + tokens(last) + "}}"));
    return feed.state().used.total().input;
  };
  CHECK(count(300, 300) == 300);
  CHECK(count(300, 300) == 300);  // again
  CHECK(count(700, 400) == 700);
  CHECK(count(300, 300) == 700);  // the first, written late
  CHECK(count(700, 400) == 700);
  CHECK(count(500, 500) == 1200);
  CHECK(count(600, 600) == 1800);
  CHECK(count(650, 50) == 1850);
}

TEST_CASE("fault 129: Codex: a response counts when its own record is written, once") {
  const auto tokens = [](int input, int output) {
    return R"({"input_tokens":)" + std::to_string(input) + R"(,"output_tokens":)" + std::to_string(output) +
           R"(,"total_tokens":)" + std::to_string(input + output) + "}";
  };
  const auto record = [&](const std::string& id, const std::string& used, const std::string& thread) {
    return R"({"timestamp":"2026-03-01T10:00:00.000Z","ordinal":1,"type":"token_usage_record","payload":)"
           R"({"response_id":")" +
           id + R"(","usage":)" + used + R"(,"thread_token_usage":)" + thread + "}}\n";
  };
  const auto count = [&](const std::string& total, const std::string& last) {
    return event_line(R"({"type":"token_count","info":{"total_token_usage":)" + total +
                      R"(,"last_token_usage":)" + last + R"(,"model_context_window":1000}})");
  };
  Feed feed(codex_options());
  feed.write(record("resp_1", tokens(100, 10), tokens(100, 10)));
  CHECK(feed.state().used.total() == Usage{100, 10});
  CHECK(feed.state().context_tokens == 110);
  feed.write(record("resp_1", tokens(100, 10), tokens(100, 10)));  // again
  CHECK(feed.state().used.total() == Usage{100, 10});
  // It was killed, and its process counts nothing; the next one counts from zero.
  feed.write(record("resp_2", tokens(150, 10), tokens(250, 20)));
  feed.write(count(tokens(150, 10), tokens(150, 10)));
  feed.write(count(tokens(150, 10), tokens(150, 10)));
  CHECK(feed.state().used.total() == Usage{250, 20});
  CHECK(feed.state().usage == Usage{250, 20});
  CHECK(feed.state().context_window == 1000);
  // An older version goes on: it writes no such records.
  feed.write(count(tokens(170, 11), tokens(20, 1)));
  CHECK(feed.state().used.total() == Usage{270, 21});
  CHECK(feed.state().usage == Usage{270, 21});
  feed.write(record("resp_3", tokens(5, 1), tokens(275, 22)));
  CHECK(feed.state().used.total() == Usage{275, 22});
  feed.write(record("", "{}", "{}"));  // nothing
  CHECK(feed.fields("usage.updated", {"message", "input", "total"}) ==
        Lines{R"(resp_1 100 {"input":100,"output":10,"cache_read":0,"cache_write":0})",
              R"(resp_2 150 {"input":250,"output":20,"cache_read":0,"cache_write":0})",
              R"(- - {"input":250,"output":20,"cache_read":0,"cache_write":0})",
              R"(- 20 {"input":270,"output":21,"cache_read":0,"cache_write":0})",
              R"(resp_3 5 {"input":275,"output":22,"cache_read":0,"cache_write":0})"});
}

TEST_CASE("Codex: a reset that is no time is unknown") {
  const Lines unknown{R"([{"name":"primary","used_percent":5}])"};
  for (const char* key : {"resets_at", "reset_at", "resets_in_seconds"})
    CHECK(windows({'"' + std::string(key) + R"(":9223372036854775807)",
                   '"' + std::string(key) + R"(":-9223372036854775808)",
                   '"' + std::string(key) + R"(":1000000000000000000)"}) == unknown);
  CHECK(windows({R"("resets_in_seconds":60)"}) ==
        Lines{R"([{"name":"primary","used_percent":5,"resets_at":"2026-03-01T10:01:00Z"}])"});
}

TEST_CASE("Codex: a duration of more than a century is that of the records") {
  const auto duration_ms = [](const std::string& seconds) {
    const std::string item =
        R"({"type":"CommandExecution","id":"c1","command":["ls"],"status":"completed","duration":)" +
        (R"({"secs":)" + seconds) + R"(,"nanos":120000000}})";
    Feed feed(codex_options());
    feed.write(event_line(R"({"type":"item_completed","turn_id":"t1","item":)" + item + "}"));
    return feed.fields("tool.finished", {"duration_ms"});
  };
  CHECK(duration_ms("2") == Lines{"2120"});
  CHECK(duration_ms("3153600000") == Lines{"3153600000120"});
  for (const char* seconds : {"3153600001", "18446744073709552", "9223372036854775807"})
    CHECK(duration_ms(seconds) == Lines{"0"});
}

}  // namespace earshot::test
