// Rules with `escalate`: who does not answer is notified elsewhere.
#include "notifier/rule_engine.hpp"
#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

const std::string sinks =
    "defaults = false\n[sink.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.test/t\"\n[sink.pager]\nkind = "
    "\"json\"\nurl = \"https://pager.test/\"\n";
const std::string one_step = "escalate = { after = \"2m\", sinks = [\"phone\"] }\n";
constexpr std::int64_t minute_ms = 60'000;

std::string waiting(const std::string& more = one_step) {
  return sinks + "[[rule]]\nname = \"waiting\"\nstatus = \"waiting\"\n" + more;
}

/// The sinks of each notice, in the order in which they were sent.
std::string route(const EngineHarness& harness) {
  std::string out;
  for (const Notice& each : harness.notices) {
    for (const std::string& sink : each.sinks) out += (out.empty() ? "" : " ") + sink;
  }
  return out;
}

}  // namespace

TEST_CASE("an unanswered notice is sent to the next sink, and all are closed when it is answered") {
  EngineHarness harness(waiting());
  harness.set_waiting("s");
  CHECK(route(harness) == "desktop");
  harness.advance(2 * minute_ms - RuleEngine::refine_ms - 1);
  CHECK(route(harness) == "desktop");
  harness.advance(RuleEngine::refine_ms + 1);
  REQUIRE(route(harness) == "desktop phone");
  CHECK(harness.notices[0].id == harness.notices[1].id);
  CHECK(harness.notices[0].title == harness.notices[1].title);
  CHECK(harness.outcomes() == "notified held escalated");
  CHECK(harness.decisions[1].why == "to phone if it is unanswered after 2m");
  harness.advance(60 * minute_ms);
  CHECK(harness.notices.size() == 2);
  harness.set_status("s", "working");
  REQUIRE(harness.closed.size() == 2);
  CHECK(harness.closed[0].sinks == std::vector<std::string>{"desktop"});
  CHECK(harness.closed[1].sinks == std::vector<std::string>{"phone"});
}

TEST_CASE("an answer cancels the escalation") {
  EngineHarness harness(waiting());
  harness.set_waiting("s");
  harness.advance(minute_ms);
  harness.set_status("s", "working");
  harness.advance(10 * minute_ms);
  CHECK(route(harness) == "desktop");
  CHECK(harness.outcomes() == "notified held answered closed");
  CHECK(harness.state().held.empty());
}

TEST_CASE("the next turn cancels the escalation of a turn that failed") {
  for (const bool answered : {false, true}) {
    EngineHarness harness(
        sinks + "[[rule]]\nname = \"failed\"\non = \"turn.finished\"\noutcome = \"failed\"\n" + one_step);
    harness.finish_turn("s", 1, 200, "failed");
    harness.advance(minute_ms);
    if (answered) harness.start_turn("s", 2);
    harness.advance(2 * minute_ms);
    CHECK(route(harness) == (answered ? "desktop" : "desktop phone"));
  }
}

TEST_CASE("several steps follow each other, each counted from the first notice") {
  EngineHarness harness(waiting(
      "escalate = [{ after = \"10m\", sinks = \"pager\" }, { after = \"2m\", sinks = [\"phone\"] }]\n"));
  harness.set_waiting("s");
  harness.advance(2 * minute_ms);
  CHECK(route(harness) == "desktop phone");
  harness.advance(8 * minute_ms);
  CHECK(route(harness) == "desktop phone pager");
}

TEST_CASE("a notice that several holds send in parts escalates once") {
  EngineHarness harness(
      waiting("sinks = [\"desktop\", \"bell\"]\nescalate = { after = \"6s\", sinks = [\"phone\"] }\n"));
  harness.set_waiting("s");
  harness.advance(5 * minute_ms);
  CHECK(route(harness) == "desktop bell phone");
}

TEST_CASE("an escalation survives restarts, also one whose event is old by now") {
  EngineHarness harness(waiting("escalate = { after = \"10m\", sinks = [\"phone\"] }\n"));
  const std::int64_t since = harness.now_ms;
  harness.set_waiting("s");
  for (int i = 0; i < 9; ++i) {
    harness.advance(minute_ms);
    harness.restart();
    harness.begin();
    harness.set_waiting("s", "permission", since);
    harness.caught_up();
  }
  CHECK(route(harness) == "desktop");
  harness.advance(minute_ms);
  CHECK(route(harness) == "desktop phone");
}

TEST_CASE("an escalation that fell due while the notifier was stopped waits for the answer that it missed") {
  for (const bool answered : {false, true}) {
    EngineHarness harness(waiting());
    const std::int64_t since = harness.now_ms;
    harness.set_waiting("s");
    harness.now_ms += 3 * minute_ms;
    harness.restart();
    harness.begin();
    harness.advance(RuleEngine::grace_ms + minute_ms);  // a long replay
    CHECK(route(harness) == "desktop");
    if (answered) harness.set_status("s", "idle");
    if (!answered) harness.set_waiting("s", "permission", since);
    harness.caught_up();
    harness.advance(minute_ms);
    CHECK(route(harness) == (answered ? "desktop" : "desktop phone"));
  }
}

TEST_CASE("an escalation that is long overdue is dropped") {
  EngineHarness harness(waiting());
  harness.set_waiting("s");
  harness.now_ms += 60 * minute_ms;
  harness.restart();
  harness.advance(minute_ms);
  CHECK(route(harness) == "desktop");
}

TEST_CASE("an escalation is refined as its notice is") {
  EngineHarness harness(waiting("title = \"{name}: {reason}\"\n" + one_step));
  const std::int64_t since = harness.now_ms;
  harness.set_waiting("s");
  harness.set_project("s", "/home/ada/lighthouse");
  harness.set_status("s", "waiting", "plan", since);
  harness.advance(2 * minute_ms);
  REQUIRE(route(harness) == "desktop phone");
  CHECK(harness.notices[1].title == "lighthouse: plan");
}

TEST_CASE("a notice that is not sent does not escalate") {
  EngineHarness throttled(waiting("throttle = \"1h\"\n" + one_step));
  throttled.set_waiting("s");
  throttled.advance(3 * minute_ms);
  throttled.set_waiting("s");
  throttled.advance(3 * minute_ms);
  CHECK(route(throttled) == "desktop phone");
  EngineHarness quiet(waiting("quiet = \"11:00-13:00\"\n" + one_step));
  quiet.set_waiting("s");
  quiet.advance(3 * minute_ms);
  CHECK(route(quiet).empty());
}

TEST_CASE("a group escalates as one notice, as long as one of its sessions is unanswered") {
  for (const bool all_answered : {false, true}) {
    EngineHarness harness(waiting());
    constexpr int single = RuleEngine::group_after;
    const auto session = [](int number) { return "s" + std::to_string(number); };
    for (int i = 0; i < single + 3; ++i) harness.set_waiting(session(i));
    for (int i = 0; i < single; ++i) harness.set_status(session(i), "working");
    harness.advance(RuleEngine::group_ms);
    std::string sent = "desktop";
    for (int i = 0; i < single; ++i) sent += " desktop";
    REQUIRE(route(harness) == sent);
    for (int i = single; i < single + 2; ++i) harness.set_status(session(i), "working");
    if (all_answered) harness.set_status(session(single + 2), "working");
    harness.advance(2 * minute_ms);
    CHECK(route(harness) == sent + (all_answered ? "" : " phone"));
  }
}

TEST_CASE("above the limit of held notices escalations are dropped, not sent early") {
  EngineHarness harness(sinks +
                        "[[rule]]\nname = \"a\"\non = \"tool.finished\"\nhold = \"0\"\nescalate = { "
                        "after = \"12h\", sinks = [\"phone\"] }\n");
  for (std::size_t i = 0; i < RuleEngine::held_max + 20; ++i) {
    harness.finish_tool("s" + std::to_string(i), "c");
    harness.advance(RuleEngine::group_ms);
  }
  CHECK(harness.state().held.size() <= RuleEngine::held_max);
  CHECK(route(harness).find("phone") == std::string::npos);
}
