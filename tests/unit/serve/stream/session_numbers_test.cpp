// What sessions cost, how full their contexts are, and how their time was spent.
#include "serve/stream/session_numbers.hpp"

#include <catch2/catch.hpp>

#include "agents/codex/program.hpp"
#include "agents/copilot/program.hpp"
#include "agents/pi/program.hpp"
#include "serve/stream/frames.hpp"
#include "unit/serve/support.hpp"
#include "unit/support/records.hpp"

namespace session_numbers_test {

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
context_window = 1000
input = 10
output = 100
cache_read = 1
cache_write_5m = 20
cache_write_1h = 40

[[model]]
pattern = "big"
context_window = 5000

[[model]]
pattern = "small"
input = 1
output = 2
)",
                                                                                   "test.toml"));
  return models;
}

std::string message(Records& r, std::string_view model, std::string_view id, std::string_view usage,
                    std::string_view extra = "") {
  return r.record("assistant",
                  R"("message":{"id":")" + std::string(id) + R"(","model":")" + std::string(model) +
                      R"(","content":[{"type":"text","text":"x"}],"usage":)" + std::string(usage) + "}",
                  extra);
}

std::string input(int tokens) { return R"({"input_tokens":)" + std::to_string(tokens) + "}"; }
std::string time_at(int second) { return R"("timestamp":")" + Records::at(second) + '"'; }
std::string cost_state(std::string_view usd) {
  return R"({"type":"cost-state","sessionId":"t","totalCostUSD":)" + std::string(usd) + "}\n";
}

std::string usage_of(const Session& session) {
  return at(session_payload(session, "dev7", {}, table()), "/usage");
}
std::string cost(const Session& session) {
  const auto cost = cost_of(session, table());
  return cost ? std::to_string(cost->usd) + " " + std::string(cost->source) : "absent";
}
std::string times(const Session& session) {
  return at(session_payload(session, "dev7", {}, table()), "/times");
}
std::string times(int waited, int worked, int idle, int turn_waited, int turn_worked) {
  const auto ms = [](int seconds) { return std::to_string(seconds * 1000); };
  return R"({"waited_ms":)" + ms(waited) + R"(,"worked_ms":)" + ms(worked) + R"(,"idle_ms":)" + ms(idle) +
         R"(,"turn":{"waited_ms":)" + ms(turn_waited) + R"(,"worked_ms":)" + ms(turn_worked) + "}}";
}

struct Fixture {
  FakeStream main{"claude/p/s1", "s1"}, agent{"claude/p/s1/subagents/agent-a1", "s1", "a1"};
  SessionStore sessions{"dev7"};
  Session* session = nullptr;
  Records records;

  Fixture() {
    main.write(records.user("go"), nullptr);
    session = &sessions.session_of(main);
  }
  void write(std::string_view lines) { main.write(lines, nullptr); }
  void say(std::string_view model, std::string_view usage, std::string_view extra = "") {
    write(message(records, model, "m" + std::to_string(++messages_), usage, extra));
  }
  void status(std::string_view state, std::string_view reason, int second,
              std::string_view source = "registry") {
    status::Status next;
    next.state = state, next.reason = reason, next.source = source, next.since = Records::at(second);
    session->set_status(next);
  }

 private:
  int messages_ = 0;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a cost is estimated from all kinds of tokens") {
  say("big", R"({"input_tokens":100000,"output_tokens":10000,"cache_read_input_tokens":1000000,)"
             R"("cache_creation_input_tokens":50000,"cache_creation":{"ephemeral_5m_input_tokens":40000,)"
             R"("ephemeral_1h_input_tokens":10000}})");
  CHECK(cost(*session) == "4.200000 estimated");
  CHECK(usage_of(*session) ==
        R"({"input":100000,"output":10000,"cache_read":1000000,"cache_write":50000,"context":1150000,)"
        R"("cost_usd":4.2,"cost_source":"estimated"})");
}

TEST_CASE_METHOD(Fixture, "a session without tokens has no cost") { CHECK(cost(*session) == "absent"); }

TEST_CASE_METHOD(Fixture, "a model without a price has no estimate, nor has the session then") {
  say("unknown", input(100));
  CHECK(cost(*session) == "absent");
  say("big", input(1'000'000));
  CHECK(cost(*session) == "absent");
  CHECK(at(session_payload(*session, "dev7", {}, table()), "/usage/cost_source") == "absent");
}

TEST_CASE_METHOD(Fixture, "models are estimated one by one") {
  say("big", input(1'000'000));
  say("small", input(1'000'000));
  CHECK(cost(*session) == "11.000000 estimated");
}

TEST_CASE_METHOD(Fixture, "a recorded cost is used as it is, the rest is estimated") {
  say("big", input(1'000'000), R"("costUSD":3.5)");
  CHECK(cost(*session) == "3.500000 recorded");
  say("small", input(1'000'000));
  CHECK(cost(*session) == "4.500000 mixed");
  say("unknown", input(1));
  CHECK(cost(*session) == "3.500000 recorded");
}

TEST_CASE_METHOD(Fixture, "subagents' streams are included") {
  say("big", input(1'000'000));
  Records r;
  agent.write(r.user("look") + message(r, "small", "a1", input(2'000'000)), nullptr);
  sessions.session_of(agent);
  CHECK(cost(*session) == "12.000000 estimated");
}

TEST_CASE_METHOD(Fixture, "a recorded total includes the subagents that ran before it") {
  Records r;
  agent.write(r.user("look", time_at(10)) + message(r, "small", "a1", input(2'000'000), time_at(20)),
              nullptr);
  sessions.session_of(agent);
  say("big", input(1'000'000), time_at(30));
  write(cost_state("7.25"));
  CHECK(cost(*session) == "7.250000 recorded");
  // What follows is estimated.
  say("small", input(1'000'000), time_at(40));
  agent.write(message(r, "small", "a2", input(1'000'000), time_at(41)), nullptr);
  CHECK(cost(*session) == "9.250000 mixed");
  FakeStream later("claude/p/s1/subagents/agent-a2", "s1", "a2");
  later.write(r.user("look", time_at(50)) + message(r, "small", "a3", input(1'000'000), time_at(51)),
              nullptr);
  sessions.session_of(later);
  CHECK(cost(*session) == "10.250000 mixed");
  say("small", input(1'000'000), time_at(45));
  write(cost_state("9"));
  CHECK(cost(*session) == "10.000000 mixed");
  sessions.remove_stream(later, 0);
  CHECK(cost(*session) == "9.000000 recorded");
}

TEST_CASE_METHOD(Fixture, "the window of the context is that of the table, if the context fits into it") {
  say("big", input(900));
  CHECK(context_window_of(*session, table()) == 1000);
  CHECK(at(session_payload(*session, "dev7", {}, table()), "/usage/context_window") == "1000");
  say("big", input(1001));
  CHECK(context_window_of(*session, table()) == 5000);
  say("big", input(5001));
  CHECK_FALSE(context_window_of(*session, table()));
  say("small", input(1));
  CHECK_FALSE(context_window_of(*session, table()));
}

TEST_CASE("Codex: the model's tokens are the growth of the total, of copied history none") {
  FakeStream stream("codex/2026/03/01/rollout-r1", "r1", {}, &codex::program().format());
  const auto line = [](const std::string& type, const std::string& payload) {
    return R"({"timestamp":"2026-03-01T10:00:00.000Z","type":")" + type + R"(","payload":)" + payload + "}\n";
  };
  const auto total = [&](int in, int last) {
    const auto counts = [](int n) {
      return R"({"input_tokens":)" + std::to_string(n) + R"(,"output_tokens":0})";
    };
    return line("event_msg", R"({"type":"token_count","info":{"total_token_usage":)" + counts(in) +
                                 R"(,"last_token_usage":)" + counts(last) +
                                 R"(,"model_context_window":4000}})");
  };
  stream.write(line("session_meta", R"({"id":"r1","cwd":"/home/u/api"})") +
                   line("turn_context", R"({"model":"big"})") + total(1'000'000, 1'000'000) +
                   total(1'000'000, 1'000'000) + line("turn_context", R"({"model":"small"})") +
                   total(3'000'000, 2'000'000),
               nullptr);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(stream);
  CHECK(cost(session) == "12.000000 estimated");
  CHECK(context_window_of(session, table()) == 4000);  // as recorded
  // The program's total began anew.
  stream.write(total(500'000, 500'000), nullptr);
  CHECK(cost(session) == "12.500000 estimated");
}

TEST_CASE("Copilot: output alone is no estimate, the sums at the end are") {
  FakeStream stream("copilot/c1", "c1", {}, &copilot::program().format());
  auto write = [n = 0](const std::string& type, const std::string& data) mutable {
    return R"({"type":")" + type + R"(","id":"e)" + std::to_string(++n) +
           R"(","timestamp":"2026-03-01T10:00:00.000Z","data":)" + data + "}\n";
  };
  stream.write(
      write("session.start", R"({"copilotVersion":"1.0.5","context":{"cwd":"/home/u/api"}})") +
          write("user.message", R"({"content":"go"})") +
          write("assistant.message", R"({"messageId":"m1","model":"big","content":"x","outputTokens":10})"),
      nullptr);
  SessionStore sessions("dev7");
  Session& session = sessions.session_of(stream);
  CHECK(cost(session) == "absent");
  stream.write(write("session.shutdown",
                     R"({"modelMetrics":{"big":{"usage":{"inputTokens":1000000,"outputTokens":10000,)"
                     R"("cacheReadTokens":500000,"cacheWriteTokens":0}}}})"),
               nullptr);
  CHECK(cost(session) == "6.500000 estimated");
}

TEST_CASE("Pi: its own cost, of every model") {
  FakeStream stream("pi/p1", "p1", {}, &pi::program().format());
  stream.write(
      R"({"type":"session","version":3,"id":"p1","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/w"})"
      "\n"
      R"({"type":"message","id":"a","timestamp":"2026-03-01T10:00:01.000Z","message":{"role":"user","content":"go"}})"
      "\n"
      R"({"type":"message","id":"b","timestamp":"2026-03-01T10:00:02.000Z","message":{"role":"assistant",)"
      R"("model":"unknown","content":[{"type":"text","text":"x"}],"stopReason":"stop",)"
      R"("usage":{"input":5,"output":5,"cacheRead":0,"cacheWrite":0,"cost":{"total":0.25}}}})"
      "\n",
      nullptr);
  SessionStore sessions("dev7");
  CHECK(cost(sessions.session_of(stream)) == "0.250000 recorded");
}

TEST_CASE_METHOD(Fixture, "times are those up to the beginning of the present status") {
  main.restart();
  Records r;
  main.write(r.user("go", time_at(0)), nullptr);
  status("working", "", 0);
  CHECK(times(*session) == times(0, 0, 0, 0, 0));
  main.write(r.call("c1", "AskUserQuestion", "{}", time_at(10)), nullptr);
  status("waiting", "question", 10);
  CHECK(times(*session) == times(0, 10, 0, 0, 10));
  main.write(r.result("c1", "x", time_at(70)), nullptr);
  status("working", "", 70);
  CHECK(times(*session) == times(60, 10, 0, 60, 10));
  main.write(r.text("done", "\"end_turn\"", time_at(80)), nullptr);
  status("idle", "", 80);
  CHECK(times(*session) == times(60, 20, 0, 60, 20));
  main.write(r.user("more", time_at(100)), nullptr);
  status("working", "", 100);
  CHECK(times(*session) == times(60, 20, 20, 0, 0));
  status("ended", "", 130);
  CHECK(times(*session) == times(60, 50, 20, 0, 30));
}

TEST_CASE_METHOD(Fixture, "waits for permission that were seen live are not work") {
  main.restart();
  Records r;
  main.write(r.user("go", time_at(0)) + r.call("c1", "Bash", "{}", time_at(10)), nullptr);
  status("working", "", 0);
  status("waiting", "permission", 11);
  CHECK(times(*session) == times(0, 11, 0, 0, 11));
  status("waiting", "permission", 11);  // refined
  main.write(r.result("c1", "x", time_at(42)), nullptr);
  status("working", "", 41);
  CHECK(times(*session) == times(30, 11, 0, 30, 11));
  status("waiting", "dialog", 50);
  status("waiting", "permission", 60);  // another one
  status("working", "", 65);
  CHECK(times(*session) == times(45, 20, 0, 45, 20));
  main.write(r.text("done", "\"end_turn\"", time_at(80)), nullptr);
  status("idle", "", 80);
  CHECK(times(*session) == times(45, 35, 0, 45, 35));
  main.write(r.user("more", time_at(100)), nullptr);
  status("working", "", 100);
  CHECK(times(*session) == times(45, 35, 20, 0, 0));
}

TEST_CASE_METHOD(Fixture, "a wait that the transcript records is not counted again") {
  main.restart();
  Records r;
  main.write(r.user("go", time_at(0)) + r.call("c1", "ExitPlanMode", "{}", time_at(10)), nullptr);
  status("waiting", "permission", 11);  // the transcript was not read yet: no refined reason
  main.write(r.result("c1", "x", time_at(40)), nullptr);
  status("working", "", 41);
  CHECK(times(*session) == times(30, 11, 0, 30, 11));
}

TEST_CASE_METHOD(Fixture, "other evidence than the registry is no live wait") {
  main.restart();
  Records r;
  main.write(r.user("go", time_at(0)) + r.call("c1", "Bash", "{}", time_at(10)), nullptr);
  status("waiting", "permission", 11, "transcript");
  status("working", "", 41);
  CHECK(times(*session) == times(0, 41, 0, 0, 41));
}

TEST_CASE_METHOD(Fixture, "a transcript without times has none") {
  main.restart();
  main.write(R"({"type":"user","uuid":"u1","sessionId":"t","message":{"role":"user","content":"go"}})"
             "\n",
             nullptr);
  CHECK(times(*session) == "absent");
}

}  // namespace session_numbers_test
