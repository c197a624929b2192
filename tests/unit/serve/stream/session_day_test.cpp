// What a session used in the day of its newest use.
#include <catch2/catch.hpp>

#include "agents/copilot/program.hpp"
#include "serve/stream/frames.hpp"
#include "serve/stream/session_numbers.hpp"
#include "unit/serve/support.hpp"
#include "unit/support/records.hpp"
#include "unit/support/time_zone.hpp"

namespace session_day_test {

using namespace earshot;
using namespace earshot::serve;
using test::at;
using test::FakeStream;
using test::Records;

namespace {

const ModelTable& table() {
  static const ModelTable models = std::get<ModelTable>(ModelTable::with_user_file(R"(
[[model]]
pattern = "big"
input = 10
output = 100
cache_read = 1
cache_write_5m = 20
cache_write_1h = 40
)",
                                                                                   "test.toml"));
  return models;
}

std::string timestamp(std::string_view time) { return R"("timestamp":")" + std::string(time) + '"'; }

struct Fixture {
  test::TimeZone zone{"CET-1"};
  FakeStream main{"claude/p/s1", "s1"};
  SessionStore sessions{"dev7"};
  Session* session = nullptr;
  Records records;
  int messages = 0;

  Fixture() {
    main.write(records.user("go", timestamp("2026-02-02T08:00:00Z")), nullptr);
    session = &sessions.session_of(main);
  }
  /// A message of a million input tokens.
  std::string message(std::string_view time, std::string_view extra = "", std::string_view model = "big") {
    return records.record("assistant",
                          R"("message":{"id":"m)" + std::to_string(++messages) + R"(","model":")" +
                              std::string(model) +
                              R"(","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":1000000}})",
                          timestamp(time) + std::string(extra));
  }
  void say(std::string_view time, std::string_view extra = "", std::string_view model = "big") {
    main.write(message(time, extra, model), nullptr);
  }
  /// Begin of the day, millions of input tokens, cost.
  std::string day() const {
    const std::string frame = session_payload(*session, "dev7", {}, table());
    if (at(frame, "/day") == "absent") return "absent";
    return at(frame, "/day/since") + " " + at(frame, "/day/input") + " " + at(frame, "/day/cost_usd") + " " +
           at(frame, "/day/cost_source");
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "the day has what was used since the local midnight") {
  CHECK(day() == "absent");
  say("2026-02-02T09:00:00Z");
  CHECK(day() == R"("2026-02-01T23:00:00.000Z" 1000000 10 "estimated")");
  say("2026-02-02T22:59:59.999Z");
  CHECK(day() == R"("2026-02-01T23:00:00.000Z" 2000000 20 "estimated")");
  say("2026-02-02T23:00:00.000Z");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 1000000 10 "estimated")");
  say("2026-02-01T12:00:00Z");  // a record of an earlier day is not part of it
  say("2026-02-03T12:00:00Z");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 2000000 20 "estimated")");
  CHECK(at(session_payload(*session, "dev7", {}, table()), "/usage/input") == "5000000");
  CHECK(at(session_payload(*session, "dev7", {}, table()), "/day/until") == R"("2026-02-03T23:00:00.000Z")");
}

TEST_CASE_METHOD(Fixture, "a use without a time is of the time before") {
  say("2026-02-02T09:00:00Z");
  say("not a time");
  CHECK(day() == R"("2026-02-01T23:00:00.000Z" 2000000 20 "estimated")");
}

TEST_CASE_METHOD(Fixture, "the tokens of a message that grows after midnight are divided") {
  const auto grown = [&](std::string_view time, int tokens) {
    return records.record("assistant",
                          R"("message":{"id":"long","model":"big","content":[{"type":"text","text":"x"}],)"
                          R"("usage":{"input_tokens":)" +
                              std::to_string(tokens) + "}}",
                          timestamp(time));
  };
  main.write(grown("2026-02-02T22:59:00Z", 100) + grown("2026-02-02T23:01:00Z", 130), nullptr);
  CHECK(at(session_payload(*session, "dev7", {}, table()), "/day/input") == "30");
}

TEST_CASE_METHOD(Fixture, "costs of messages are recorded, also where the session began earlier") {
  say("2026-02-02T09:00:00Z", R"(,"costUSD":3)");
  CHECK(day() == R"("2026-02-01T23:00:00.000Z" 1000000 3 "recorded")");
  say("2026-02-03T09:00:00Z", R"(,"costUSD":0.5)");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 1000000 0.5 "recorded")");
  say("2026-02-03T09:01:00Z");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 2000000 10.5 "mixed")");
}

TEST_CASE_METHOD(Fixture, "a recorded total is the day's if the session began in it, else it is estimated") {
  const std::string total = R"({"type":"cost-state","sessionId":"t","totalCostUSD":7})"
                            "\n";
  say("2026-02-02T09:00:00Z");
  main.write(total, nullptr);
  CHECK(day() == R"("2026-02-01T23:00:00.000Z" 1000000 7 "recorded")");
  say("2026-02-03T09:00:00Z");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 1000000 10 "estimated")");
  main.write(total, nullptr);
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 1000000 10 "estimated")");
}

TEST_CASE_METHOD(Fixture, "a model without a price leaves the day without a cost") {
  say("2026-02-02T09:00:00Z");
  say("2026-02-03T09:00:00Z", "", "unknown");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 1000000 absent absent)");
}

TEST_CASE_METHOD(Fixture, "of subagents only what was used in the same day is counted") {
  FakeStream agent("claude/p/s1/subagents/agent-a1", "s1", "a1");
  agent.write(records.user("look", timestamp("2026-02-02T09:00:00Z")) + message("2026-02-02T09:00:00Z"),
              nullptr);
  sessions.session_of(agent);
  say("2026-02-03T09:00:00Z");
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 1000000 10 "estimated")");
  agent.write(message("2026-02-03T10:00:00Z"), nullptr);
  CHECK(day() == R"("2026-02-02T23:00:00.000Z" 2000000 20 "estimated")");
  sessions.remove_stream(agent, 0);
}

TEST_CASE("Copilot: a sum at the end of a session that began earlier is marked") {
  const test::TimeZone zone("UTC");
  FakeStream stream("copilot/c1", "c1", {}, &copilot::program().format());
  auto write = [n = 0](const std::string& type, const std::string& time, const std::string& data) mutable {
    return R"({"type":")" + type + R"(","id":"e)" + std::to_string(++n) + R"(","timestamp":")" + time +
           R"(","data":)" + data + "}\n";
  };
  const std::string before = "2026-03-01T10:00:00.000Z", after = "2026-03-02T10:00:00.000Z";
  const std::string said = R"({"messageId":"m1","model":"big","content":"x","outputTokens":10})";
  const std::string sum = R"({"modelMetrics":{"big":{"usage":{"inputTokens":900,"outputTokens":10}}}})";
  stream.write(
      write("session.start", before, R"({"copilotVersion":"1.0.5","context":{"cwd":"/home/u/api"}})") +
          write("user.message", before, R"({"content":"go"})") + write("assistant.message", before, said),
      nullptr);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(stream);
  const auto day = [&](std::string_view member) {
    return at(session_payload(session, "dev7", {}, table()), "/day/" + std::string(member));
  };
  CHECK(day("output") == "10");
  CHECK(day("partial") == "absent");
  SECTION("of one day") {
    stream.write(write("session.shutdown", before, sum), nullptr);
    CHECK(day("input") == "900");
    CHECK(day("partial") == "absent");
  }
  SECTION("of two days") {
    stream.write(write("session.shutdown", after, sum), nullptr);
    CHECK(day("since") == R"("2026-03-02T00:00:00.000Z")");
    CHECK(day("input") == "900");
    CHECK(day("output") == "0");
    CHECK(day("partial") == "true");
  }
}

}  // namespace session_day_test
