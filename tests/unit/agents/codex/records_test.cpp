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
