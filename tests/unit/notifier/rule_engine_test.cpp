#include "notifier/rule_engine.hpp"

#include <functional>

#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

TEST_CASE("a waiting agent causes one notice immediately, closed when it continues") {
  EngineHarness harness;
  const std::int64_t since = harness.now_ms;
  harness.set_project("s", "/home/ada/lighthouse");
  harness.receive(harness.event("s", "tool.invoked", 1, R"(,"call":"c1","tool":"Bash")"));
  harness.set_waiting("s");
  REQUIRE(harness.titles() == std::vector<std::string>{"lighthouse needs you"});
  CHECK(harness.notices[0].body == "permission: Bash");
  CHECK(harness.notices[0].urgency == Urgency::critical);
  CHECK(harness.notices[0].slot == "s");
  harness.set_waiting("s", "permission", since);  // repeated by the daemon
  harness.advance(3000);
  CHECK(harness.notices.size() == 1);
  CHECK(harness.closed.empty());
  harness.set_status("s", "working");
  REQUIRE(harness.closed.size() == 1);
  CHECK(harness.closed[0].id == harness.notices[0].id);
  CHECK(harness.closed[0].slot == "s");
}

TEST_CASE("each wait causes a notice, except a dialog") {
  EngineHarness harness;
  for (const char* reason : {"permission", "question", "plan", "dialog"}) {
    harness.set_waiting("s", reason);
    harness.advance(60'000);
    harness.set_status("s", "working");
    harness.advance(60'000);
  }
  CHECK(harness.notices.size() == 3);
  CHECK(harness.closed.size() == 3);
}

TEST_CASE("a new wait causes a new notice, the same wait from another source does not") {
  EngineHarness harness;
  harness.set_waiting("s");
  harness.advance(5000);
  harness.set_waiting("s");  // a new wait from the registry
  CHECK(harness.notices.size() == 2);
  CHECK(harness.closed.size() == 1);
  harness.advance(1000);
  const auto from_transcript = [&](std::int64_t since_ms) {
    harness.receive(
        R"({"type":"status","host":"h","session":"s","state":"waiting","reason":"permission","source":"transcript","since":")" +
        format_time(since_ms) + R"("})");
    harness.advance(5000);
  };
  from_transcript(harness.now_ms - 1000 - RuleEngine::refine_ms);
  CHECK(harness.notices.size() == 2);
  from_transcript(harness.now_ms);  // fault 137: a new wait, of which no other frame was received
  CHECK(harness.notices.size() == 3);
}

TEST_CASE("a turn that fails for want of a sign-in causes one notice") {
  EngineHarness harness;
  harness.finish_turn("s", 1, 200, "failed");
  harness.set_waiting("s", "auth");
  harness.advance(60'000);
  REQUIRE(harness.titles() == std::vector<std::string>{"s needs you"});
  CHECK(harness.notices[0].body == "auth");
}

TEST_CASE("a long turn causes a notice after 5 s without an answer") {
  EngineHarness harness;
  harness.finish_turn("s", 1, 95'000);
  CHECK(harness.notices.empty());
  harness.advance(4999);
  CHECK(harness.notices.empty());
  harness.advance(1);
  REQUIRE(harness.titles() == std::vector<std::string>{"s is done"});
  CHECK(harness.notices[0].body == "turn 1, 1m35s");
  harness.advance(60'000);
  harness.start_turn("s", 2);
  CHECK(harness.closed.size() == 1);
}

TEST_CASE("an answer within 5 s suppresses the notice") {
  EngineHarness harness;
  harness.finish_turn("s", 1);
  harness.advance(4000);
  harness.start_turn("s", 2);
  harness.advance(60'000);
  CHECK(harness.notices.empty());
  CHECK(harness.outcomes() == "held answered");
}

TEST_CASE("turns of other sessions and of subagents are not answers") {
  EngineHarness harness;
  harness.finish_turn("s", 1);
  harness.start_turn("other", 7);
  harness.receive(harness.event("s", "turn.started", 1, R"(,"agent":"a1","origin":"agent")"));
  harness.advance(5000);
  CHECK(harness.notices.size() == 1);
}

TEST_CASE("short, interrupted and superseded turns cause no notice, with a recorded reason") {
  EngineHarness harness;
  harness.finish_turn("s", 1, 12'000);
  harness.finish_turn("s", 2, 95'000, "interrupted");
  harness.finish_turn("s", 3, 95'000, "superseded");
  harness.receive(
      harness.event("s", "turn.finished", 1, R"(,"agent":"a1","outcome":"completed","duration_ms":95000)"));
  harness.advance(60'000);
  CHECK(harness.notices.empty());
  REQUIRE(harness.decisions.size() == 3);
  CHECK(harness.decisions[0].outcome == "no match");
  CHECK(harness.decisions[0].why == "it took 12.0s, not more than 30s");
}

TEST_CASE("a turn that failed with an API error causes a notice with its status") {
  EngineHarness harness;
  harness.receive(harness.event("s", "api.failed", 1, R"(,"fatal":true,"status":529,"error":"Overloaded")"));
  harness.finish_turn("s", 1, 200, "failed");
  harness.advance(5000);
  REQUIRE(harness.titles() == std::vector<std::string>{"s failed"});
  CHECK(harness.notices[0].body == "turn 1, 0.2s: API error 529");
}

TEST_CASE("repeated events and copies of the transcript cause no second notice") {
  EngineHarness harness;
  const std::string event =
      harness.event("s", "turn.finished", 1, R"(,"outcome":"failed","duration_ms":95000)");
  harness.receive(event);
  harness.advance(5000);
  harness.receive(event);
  std::string copy = event;
  copy.replace(copy.find("c/p/s"), 5, "c/p/t");
  copy.replace(copy.find("\"session\":\"s\""), 13, "\"session\":\"t\"");
  harness.receive(copy);
  harness.advance(60'000);
  CHECK(harness.notices.size() == 1);
}

TEST_CASE("sessions that finish at the same time cause a notice each") {
  EngineHarness harness;
  harness.finish_turn("s", 1, 95'000);
  harness.finish_turn("t", 1, 95'001);
  harness.advance(5000);
  CHECK(harness.notices.size() == 2);
}

TEST_CASE("events older than 5 minutes cause no notice") {
  EngineHarness harness("[[rule]]\nname = \"busy\"\nstatus = \"working\"\n");
  harness.finish_turn("s", 1, 95'000, "completed", harness.now_ms - 301'000);
  harness.set_status("t", "working", "", harness.now_ms - 301'000);
  harness.advance(60'000);
  CHECK(harness.notices.empty());
  CHECK(harness.outcomes() == "too old too old");
  harness.finish_turn("s", 2, 95'000, "completed", harness.now_ms - 299'000);
  harness.advance(0);
  CHECK(harness.notices.size() == 1);  // its hold is over
}

TEST_CASE("fault 135: a wait is notified whatever its age, also if a restart found its notice held") {
  EngineHarness harness;
  harness.set_waiting("s", "permission", harness.now_ms - 7 * 3'600'000);
  CHECK(harness.titles() == std::vector<std::string>{"s needs you"});
  EngineHarness held("defaults = false\n[[rule]]\nname = \"late\"\nstatus = \"waiting\"\nhold = \"1m\"\n");
  held.set_waiting("s");
  held.now_ms += 3'600'000;
  held.restart();
  held.advance(60'000);
  CHECK(held.notices.size() == 1);
}

TEST_CASE("fault 164: one notice of what is done, and none of hooks, tasks and headless runs") {
  EngineHarness harness;
  harness.set_done("s", 3);
  harness.receive(harness.event("s", "turn.started", 4, R"(,"origin":"hook")"));
  harness.receive(harness.event("s", "turn.started", 5, R"(,"origin":"task")"));
  harness.advance(5000);
  CHECK(harness.titles() == std::vector<std::string>{"s is done"});
  harness.set_done("s", 3, 60'000, "completed",
                   harness.now_ms - 5000);  // stated again, as in a session frame
  harness.set_done("t", 1, 60'000, "completed", 0, R"(,"headless":true)");
  harness.set_done("u", 1);
  harness.start_turn("u", 2);
  harness.set_done("v", 1, 20'000);
  harness.set_done("w", 1, 60'000, "interrupted");
  harness.advance(60'000);
  CHECK(harness.titles().size() == 1);
  EngineHarness asks("[[rule]]\nname = \"runs\"\non = \"done\"\nheadless = true\nhold = \"0\"\n");
  asks.set_done("t", 1, 60'000, "completed", 0, R"(,"headless":true)");
  CHECK(asks.titles().size() == 1);
}

TEST_CASE("events before the first start cause no notice, a wait that continues does") {
  EngineHarness harness({}, noon_ms, noon_ms);
  harness.finish_turn("s", 1, 95'000, "completed", noon_ms - 1);
  harness.set_waiting("t", "permission", noon_ms - 60'000);
  harness.advance(60'000);
  CHECK(harness.titles() == std::vector<std::string>{"t needs you"});
}

TEST_CASE("missed events cause notices after the replay unless answered") {
  EngineHarness harness;
  harness.begin();
  harness.finish_turn("s", 1, 95'000, "completed", harness.now_ms - 100'000);
  harness.finish_turn("t", 1, 95'000, "completed", harness.now_ms - 50'000);
  harness.advance(60'000);  // a long replay
  CHECK(harness.notices.empty());
  harness.receive(harness.event("s", "turn.started", 2, "", harness.now_ms - 90'000));
  harness.caught_up();
  CHECK(harness.titles() == std::vector<std::string>{"t is done"});
}

TEST_CASE("an event without a time causes a notice if live, not if missed") {
  EngineHarness harness;
  const std::string event =
      R"({"type":"turn.finished","host":"h","stream":"c/p/s","session":"s","cursor":"1.1.00","turn":1,"outcome":"failed"})";
  harness.begin();
  harness.receive(event);
  harness.caught_up();
  harness.advance(60'000);
  CHECK(harness.notices.empty());
  std::string second = event;
  second.replace(second.find("1.1.00"), 6, "2.1.00");
  harness.receive(second);
  harness.advance(5000);
  CHECK(harness.notices.size() == 1);
}

TEST_CASE("after a restart sent notices are not repeated, held ones are sent, answered ones closed") {
  EngineHarness harness;
  const std::int64_t since = harness.now_ms;
  harness.set_waiting("s");
  harness.finish_turn("t", 1);
  REQUIRE(harness.notices.size() == 1);
  harness.advance(1000);
  harness.restart();
  harness.begin();
  harness.set_waiting("s", "permission", since);
  harness.caught_up();
  CHECK(harness.notices.size() == 1);
  harness.advance(RuleEngine::grace_ms);
  CHECK(harness.titles() == std::vector<std::string>{"s needs you", "t is done"});
  harness.restart();
  harness.begin();
  harness.set_status("s", "idle");
  harness.caught_up();
  CHECK(harness.closed.size() == 1);
}

TEST_CASE(
    "fault 111: after an answer the next request notifies, however old it is, and one that returns, too") {
  EngineHarness harness;
  const std::int64_t begin = harness.now_ms;
  const auto wait_for = [&](const std::string& request, std::int64_t since) {
    harness.receive(R"({"type":"status","host":"h","session":"s","state":"waiting","reason":"permission",)"
                    R"("detail":"approve )" +
                    request + R"(","source":"transcript","since":")" + format_time(since) +
                    R"(","request":")" + request + "\"}");
    harness.advance(RuleEngine::refine_ms);
  };
  wait_for("one", begin);
  harness.advance(10 * 60'000);
  wait_for("two", begin + 1);  // was open all the time
  CHECK(harness.notices.size() == 2);
  CHECK(harness.closed.size() == 1);
  wait_for("two", begin + 1);  // refined
  CHECK(harness.notices.size() == 2);
  wait_for("one", begin);
  CHECK(harness.notices.size() == 3);
  CHECK(harness.closed.size() == 2);
}

TEST_CASE("a wait whose request becomes known later is the same one") {
  EngineHarness harness;
  const std::string status =
      R"({"type":"status","host":"h","session":"s","state":"waiting","reason":"permission","source":"transcript","since":")" +
      format_time(harness.now_ms) + "\"";
  harness.receive(status + "}");
  harness.advance(RuleEngine::refine_ms);
  harness.receive(status + R"(,"request":"one"})");
  harness.advance(1000);
  CHECK(harness.notices.size() == 1);
  harness.receive(status + R"(,"request":"two"})");
  harness.advance(1000);
  CHECK(harness.notices.size() == 2);
}

TEST_CASE("the notice of a removed session is closed") {
  EngineHarness harness;
  harness.set_waiting("s");
  harness.restart();
  harness.begin();
  harness.caught_up();
  CHECK(harness.closed.size() == 1);
}

TEST_CASE("held notices expire while the notifier is stopped") {
  EngineHarness harness;
  harness.finish_turn("s", 1);
  harness.now_ms += 400'000;
  harness.restart();
  harness.advance(60'000);
  CHECK(harness.notices.empty());
}

TEST_CASE("many notices at once are grouped after the first few") {
  EngineHarness harness;
  for (int i = 0; i < 14; ++i) harness.set_waiting("s" + std::to_string(i));
  CHECK(harness.notices.size() == RuleEngine::group_after);
  harness.set_status("s7", "working");  // answered
  harness.advance(RuleEngine::group_ms);
  REQUIRE(harness.notices.size() == RuleEngine::group_after + 1);
  const Notice& group = harness.notices.back();
  CHECK(group.title == "8 notices: waiting");
  CHECK(group.ack_keys.size() == 8);
  CHECK(group.body.find("s5 needs you — permission\n") == 0);
  CHECK(group.body.find("and 2 more") != std::string::npos);
  CHECK(group.body.find("s7") == std::string::npos);
  harness.clear();
  for (int i = 5; i < 13; ++i) harness.set_status("s" + std::to_string(i), "working");
  CHECK(harness.closed.empty());  // one notice of the group is unanswered
  harness.set_status("s13", "working");
  REQUIRE(harness.closed.size() == 1);
  CHECK(harness.closed[0].slot == "group waiting");
}

TEST_CASE("throttling limits notices per session") {
  EngineHarness harness(
      "[[rule]]\nname = \"tools\"\non = \"tool.finished\"\nhold = \"0\"\nthrottle = \"1m\"\n");
  harness.finish_tool("s", "c1");
  harness.finish_tool("s", "c2");
  harness.finish_tool("t", "c3");
  CHECK(harness.notices.size() == 2);
  harness.advance(60'000);
  harness.finish_tool("s", "c4");
  CHECK(harness.notices.size() == 3);
  CHECK(harness.outcomes() == "notified throttled notified notified");
}

TEST_CASE("in quiet hours notices are dropped, or deferred until they end") {
  const std::string later =
      "[[rule]]\nname = \"waiting\"\nstatus = \"waiting\"\nquiet = \"11:00-13:00\"\nafter_quiet = true\n";
  EngineHarness quiet("quiet = \"11:00-13:00\"\n"), patient(later);
  for (EngineHarness* harness : {&quiet, &patient}) {
    harness->set_waiting("s");
    harness->set_waiting("t");
    harness->advance(30 * 60'000);
    CHECK(harness->notices.empty());
    harness->set_status("t", "working");
    harness->restart();
    harness->advance(40 * 60'000);
  }
  CHECK(quiet.notices.empty());
  REQUIRE(patient.notices.size() == 1);
  CHECK(patient.notices[0].session == "s");
}

TEST_CASE("once per session also applies across restarts") {
  EngineHarness harness(
      "[[rule]]\nname = \"expensive\"\non = \"usage.updated\"\ncost = \">5\"\nhold = \"0\"\nonce = "
      "\"session\"\n");
  const auto costs = [&](const std::string& session, const std::string& usd) {
    harness.advance(1000);
    harness.receive(harness.event(session, "usage.updated", 1, R"(,"cost_usd":)" + usd + R"(,"total":{})"));
  };
  costs("s", "4.9");
  costs("s", "5.1");
  costs("s", "5.2");
  harness.restart();
  costs("s", "5.3");
  costs("t", "6");
  CHECK(harness.notices.size() == 2);
}

TEST_CASE("a sink that cannot retract receives a wait only if unanswered") {
  EngineHarness harness("sinks = [\"desktop\", \"bell\"]\n");
  harness.set_waiting("s");
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].sinks == std::vector<std::string>{"desktop"});
  harness.advance(3000);
  harness.set_status("s", "working");
  harness.advance(60'000);
  CHECK(harness.notices.size() == 1);
  harness.set_waiting("s");
  harness.advance(5000);
  REQUIRE(harness.notices.size() == 3);
  CHECK(harness.notices[2].sinks == std::vector<std::string>{"bell"});
}

TEST_CASE("a notice replaces the earlier one of the session") {
  EngineHarness harness;
  harness.finish_turn("s", 1);
  harness.advance(5000);
  harness.set_waiting("s");
  REQUIRE(harness.notices.size() == 2);
  CHECK(harness.notices[0].slot == harness.notices[1].slot);
  harness.set_status("s", "working");
  REQUIRE(harness.closed.size() == 1);
  CHECK(harness.closed[0].id == harness.notices[1].id);
}

TEST_CASE("without view = full no text is sent, even if frames contain it") {
  const std::string rule = "[[rule]]\nname = \"failed\"\non = \"tool.finished\"\nhold = \"0\"\n";
  EngineHarness meta(rule + "title = \"{tool}\"\n"),
      full(rule + "view = \"full\"\ntitle = \"{tool}: {output}\"\n");
  for (EngineHarness* harness : {&meta, &full}) harness->finish_tool("s", "c", R"(,"output":"the secret")");
  REQUIRE(meta.notices.size() == 1);
  std::string json;
  JsonWriter writer(json);
  write_notice(writer, meta.notices[0]);
  CHECK(json.find("secret") == std::string::npos);
  CHECK(meta.notices[0].event.find("\"call\":\"c\"") != std::string::npos);
  CHECK(full.notices[0].title == "Bash: the secret");
  CHECK(full.notices[0].event.find("the secret") != std::string::npos);
}

TEST_CASE("control characters and line breaks in untrusted text are escaped") {
  EngineHarness harness(
      "[[rule]]\nname = \"a\"\non = \"tool.finished\"\nhold = \"0\"\nview = \"full\"\ntitle = "
      "\"{output}\"\nbody = \"{output}\"\n");
  harness.finish_tool("s", "c", R"(,"output":"a\u001b[31mb\nc\u202ed")");
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].title == "a\\x1b[31mb c\\u202ed");
  CHECK(harness.notices[0].body == "a\\x1b[31mb\nc\\u202ed");
}

TEST_CASE("a project matches by its last component or its path") {
  for (const auto& [pattern, fits] : std::vector<std::pair<std::string, bool>>{{"lighthouse", true},
                                                                               {"/home/ada/*", true},
                                                                               {"light*", true},
                                                                               {"house", false},
                                                                               {"/srv/*", false}}) {
    EngineHarness harness("defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nproject = \"" +
                          pattern + "\"\n");
    harness.set_project("s", "/home/ada/lighthouse");
    harness.set_waiting("s");
    INFO(pattern);
    CHECK(harness.notices.size() == (fits ? 1 : 0));
  }
}

TEST_CASE("above the limit of held notices the oldest are sent, not lost") {
  EngineHarness harness("defaults = false\n[[rule]]\nname = \"a\"\non = \"tool.finished\"\nhold = \"1h\"\n");
  for (std::size_t i = 0; i < RuleEngine::held_max + 20; ++i)
    harness.finish_tool("s", "c" + std::to_string(i));
  CHECK(harness.state().held.size() == RuleEngine::held_max);
  CHECK(harness.notices.size() == 20);
  CHECK(harness.state().open.size() <= RuleEngine::open_max);
}

namespace {

const std::string refined_id = "6bd6afad-0000-4000-8000-000000000001";

// A wait whose project is not known yet, at noon.
struct RefinedHarness : EngineHarness {
  explicit RefinedHarness(const std::string& rules = {}) : EngineHarness(rules) { wait_for("permission"); }
  void wait_for(const std::string& reason) { set_status(refined_id, "waiting", reason, noon_ms); }
  void start_session() { receive(event(refined_id, "session.started", 0, R"(,"cwd":"/home/ada/i_plan")")); }
  std::string text() { return notices.at(0).title + " | " + notices.at(0).body; }
};

}  // namespace

TEST_CASE("fault 104: a wait that is refined while its notice is held causes the refined notice") {
  using Step = std::function<void(RefinedHarness&)>;
  const Step project = [](RefinedHarness& harness) { harness.set_project(refined_id, "/home/ada/i_plan"); };
  const Step started = [](RefinedHarness& harness) { harness.start_session(); };
  const Step plan = [](RefinedHarness& harness) { harness.wait_for("plan"); };
  const Step repeated = [](RefinedHarness& harness) { harness.wait_for(""); };
  const std::vector<std::vector<Step>> orders{{plan, project},
                                              {project, plan},
                                              {plan, started},
                                              {started, plan, repeated},
                                              {plan, repeated, project}};
  for (const std::vector<Step>& steps : orders) {
    RefinedHarness desktop, webhook("sinks = \"bell\"\n");
    for (RefinedHarness* harness : {&desktop, &webhook}) {
      for (const Step& step : steps) {
        harness->advance(30);
        step(*harness);
      }
      CHECK(harness->notices.empty());
      harness->advance(5000);
      REQUIRE(harness->notices.size() == 1);
      CHECK(harness->text() == "i_plan needs you | plan");
      CHECK(harness->notices[0].project == "/home/ada/i_plan");
      CHECK(harness->notices[0].event.find(R"("type":"status")") != std::string::npos);
      CHECK(harness->refined.empty());
    }
  }
}

TEST_CASE("fault 104: a notice that was sent is refined: by a status, or soon after it was sent") {
  RefinedHarness harness;
  harness.advance(RuleEngine::refine_ms);
  CHECK(harness.text() == "6bd6afad needs you | permission");
  harness.start_session();
  REQUIRE(harness.refined.size() == 1);
  CHECK(harness.refined[0].title == "i_plan needs you");
  CHECK(harness.refined[0].id == harness.notices[0].id);
  harness.start_session();  // nothing new
  harness.wait_for("permission");
  CHECK(harness.refined.size() == 1);
  harness.advance(RuleEngine::replace_ms);
  harness.receive(harness.event(refined_id, "tool.invoked", 1, R"(,"call":"c1","tool":"Bash")"));
  CHECK(harness.refined.size() == 1);
  harness.wait_for("plan");
  REQUIRE(harness.refined.size() == 2);
  CHECK(harness.refined[1].body == "plan");
  CHECK(harness.notices.size() == 1);
  harness.set_status(refined_id, "working");
  CHECK(harness.closed.size() == 1);
}

TEST_CASE(
    "fault 104: a refined reason that no rule matches withdraws the notice, and another rule may match") {
  const std::string plans = "[[rule]]\nname = \"plans\"\nreason = \"plan\"\ntitle = \"plan of {name}\"\n";
  RefinedHarness held("[[rule]]\nname = \"waiting\"\nreason = \"permission\"\n" + plans);
  held.wait_for("plan");
  held.advance(5000);
  CHECK(held.titles() == std::vector<std::string>{"plan of 6bd6afad"});
  RefinedHarness sent;
  sent.advance(RuleEngine::refine_ms);
  sent.wait_for("dialog");
  CHECK(sent.notices.size() == 1);
  CHECK(sent.closed.size() == 1);
}

TEST_CASE("fault 104: a rule for a project matches when the project becomes known after the wait") {
  RefinedHarness harness(
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nproject = \"i_*\"\n");
  harness.advance(100);
  harness.start_session();
  harness.advance(RuleEngine::refine_ms);
  CHECK(harness.notices.size() == 1);
}

namespace {

// Frames of a hub.
struct HubHarness : EngineHarness {
  explicit HubHarness(const std::string& rules = {}) : EngineHarness(rules) {
    receive(R"({"type":"welcome","protocol":1,"host":"hub"})");
  }
  void set_status(const std::string& session, const std::string& host, const std::string& state,
                  std::int64_t since, const std::string& reason = {}) {
    receive(R"({"type":"status","host":")" + host + R"(","session":")" + session + "@" + host +
            R"(","state":")" + state + "\"" + (reason.empty() ? "" : R"(,"reason":")" + reason + "\"") +
            R"(,"source":"registry","since":")" + format_time(since) + R"("})");
  }
  void set_waiting(const std::string& session, const std::string& host, std::int64_t since) {
    set_status(session, host, "waiting", since, "permission");
    advance(RuleEngine::refine_ms);
  }
  /// The notifier restarts while the host of session `s` is offline.
  void restart_offline(std::int64_t since) {
    restart();
    begin();
    set_offline("s", "ada", since);
    caught_up();
  }
  void set_offline(const std::string& session, const std::string& host, std::int64_t since) {
    set_status(session, host, "unknown", since, "host_offline");
  }
};

}  // namespace

TEST_CASE("notices name the program unless it is Claude Code") {
  EngineHarness harness;
  const auto set_program = [&](const std::string& session, const std::string& program) {
    harness.receive(R"({"type":"session","host":"h","session":")" + session + R"(","program":")" + program +
                    R"(","project":"/home/ada/lamp","directory":"d","cursors":[]})");
  };
  set_program("s", "codex");
  set_program("t", "claude-code");
  harness.set_waiting("s", "question");
  harness.set_waiting("t", "question");
  harness.finish_turn("s", 1);
  harness.advance(5000);
  CHECK(harness.titles() ==
        std::vector<std::string>{"codex · lamp needs you", "lamp needs you", "codex · lamp is done"});
  harness.clear();
  // The program of a session without a session frame.
  harness.receive(
      R"({"type":"status","host":"h","session":"u","program":"pi","project":"/p/api","state":"waiting","reason":"question","source":"transcript","since":")" +
      format_time(harness.now_ms) + R"("})");
  harness.advance(RuleEngine::refine_ms);
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].title.starts_with("pi · "));
}

TEST_CASE("a turn that failed causes a notice with the program's name of the failure") {
  EngineHarness harness;
  harness.receive(harness.event("s", "api.failed", 1, R"(,"fatal":true,"kind":"usage_limit_exceeded")"));
  harness.finish_turn("s", 1, 2000, "failed");
  harness.advance(5000);
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].body == "turn 1, 2.0s: usage_limit_exceeded");
  harness.clear();
  harness.start_turn("s", 2);
  harness.finish_turn("s", 2, 2000, "failed");
  harness.advance(5000);
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].body == "turn 2, 2.0s");
}

TEST_CASE("rules can select programs") {
  EngineHarness harness(
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nprogram = [\"codex\", \"p*\"]\n");
  for (const std::string program : {"codex", "claude-code", "pi", ""}) {
    if (!program.empty())
      harness.receive(R"({"type":"session","host":"h","session":"s-)" + program + R"(","program":")" +
                      program + R"(","directory":"d","cursors":[]})");
    harness.set_waiting("s-" + program);
  }
  REQUIRE(harness.notices.size() == 2);
  CHECK(harness.notices[0].session == "s-codex");
  CHECK(harness.notices[1].session == "s-pi");
}

TEST_CASE("a limit of which 90 % is used causes one notice per period, whichever session states it") {
  EngineHarness harness;
  const auto state_limit = [&](const std::string& session, const std::string& used, std::int64_t resets_ms,
                               const std::string& more = {}) {
    harness.receive(harness.event(
        session, "limits.updated", 1,
        more +
            R"(,"limit":"codex","windows":[{"name":"secondary","used_percent":20,"window_minutes":10080},)" +
            R"({"name":"primary","used_percent":)" + used + R"(,"window_minutes":300,"resets_at":")" +
            format_time(resets_ms) + R"("}])"));
  };
  harness.receive(
      R"({"type":"session","host":"h","session":"s","program":"codex","directory":"d","cursors":[]})");
  harness.receive(
      R"({"type":"session","host":"h","session":"t","program":"codex","directory":"d","cursors":[]})");
  constexpr std::int64_t hour_ms = 3'600'000;
  const std::int64_t resets = harness.now_ms + hour_ms;
  state_limit("s", "89.9", resets);
  CHECK(harness.notices.empty());
  state_limit("s", "91.5", resets);
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].title == "91% of the limit of codex is used");
  CHECK(harness.notices[0].body == "of 5h, until " + format_local_clock(resets));
  state_limit("s", "95", resets + 30'000);
  state_limit("t", "96", resets, R"(,"agent":"a1")");
  CHECK(harness.notices.size() == 1);
  harness.now_ms += 2 * hour_ms;
  state_limit("t", "92", resets + 5 * hour_ms,
              R"(,"agent":"a1")");  // of the next period, in a subagent's stream
  CHECK(harness.notices.size() == 2);
}

TEST_CASE("fault 131: a reset that varies by seconds is one period, and one that is over causes no notice") {
  constexpr std::int64_t hour_ms = 3'600'000;
  // Also where the resets are around the middle and the end of periods since 1970.
  for (const std::int64_t shift_ms : {std::int64_t{0}, hour_ms / 2, hour_ms, 5 * hour_ms / 2, 4 * hour_ms}) {
    EngineHarness harness;
    const std::int64_t period_ms = 5 * hour_ms;
    const std::int64_t resets = (harness.now_ms / period_ms + 1) * period_ms + shift_ms;
    const auto state_limit = [&](std::int64_t resets_ms) {
      harness.receive(harness.event(
          "s", "limits.updated", 1,
          R"(,"limit":"l","windows":[{"name":"five_hour","used_percent":95,"window_minutes":300,"resets_at":")" +
              format_time(resets_ms) + R"("}])"));
      harness.now_ms += 1000;
    };
    for (const std::int64_t jitter_ms : {0, -1000, 1000, -2000, 0}) state_limit(resets + jitter_ms);
    CHECK(harness.notices.size() == 1);
    harness.now_ms = resets + hour_ms;
    state_limit(resets);
    CHECK(harness.notices.size() == 1);
    state_limit(resets + period_ms);
    CHECK(harness.notices.size() == 2);
  }
}

TEST_CASE("limits that only session frames state cause one notice per period") {
  EngineHarness harness;
  constexpr std::int64_t hour_ms = 3'600'000;
  const std::int64_t resets = harness.now_ms + hour_ms;
  const auto state_limit = [&](const std::string& used, std::int64_t time_ms) {
    harness.receive(
        R"({"type":"session","host":"h","session":"s","program":"claude-code","directory":"d","cursors":[],)"
        R"("status":{"state":"idle"},"limits":[{"time":")" +
        format_time(time_ms) +
        R"(","limit":"claude","windows":[{"name":"five_hour","window_minutes":300,"used_percent":)" + used +
        R"(,"resets_at":")" + format_time(resets) + R"("}]}]})");
  };
  state_limit("95", harness.now_ms - hour_ms);  // too old to cause a notice, and to suppress one
  state_limit("89.9", harness.now_ms);
  CHECK(harness.notices.empty());
  harness.now_ms += 1000;
  state_limit("91.5", harness.now_ms);
  REQUIRE(harness.notices.size() == 1);
  CHECK(harness.notices[0].title == "91% of the limit of claude-code is used");
  CHECK(harness.notices[0].body == "of 5h, until " + format_local_clock(resets));
  state_limit("91.5", harness.now_ms);  // repeated with another change of the session
  harness.now_ms += 1000;
  state_limit("95", harness.now_ms);
  CHECK(harness.notices.size() == 1);
}

TEST_CASE("notices from a hub name the host unless it is the hub's own") {
  HubHarness harness;
  harness.set_waiting("s", "ada", harness.now_ms);
  harness.set_waiting("t", "hub", harness.now_ms);
  CHECK(harness.titles() == std::vector<std::string>{"s@ada on ada needs you", "t@hub needs you"});
  CHECK(harness.notices[0].host == "ada");
}

TEST_CASE("rules can select hosts") {
  HubHarness harness(
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nhost = [\"ci-*\", \"ada\"]\n");
  for (const char* host : {"ada", "bob", "ci-7"}) harness.set_waiting("s", host, harness.now_ms);
  REQUIRE(harness.notices.size() == 2);
  CHECK(harness.notices[1].host == "ci-7");
}

TEST_CASE("an offline host causes no notice, and its wait is not repeated when it is back") {
  HubHarness harness;
  const std::int64_t since = harness.now_ms;
  harness.set_waiting("s", "ada", since);
  REQUIRE(harness.notices.size() == 1);
  harness.advance(20'000);
  harness.set_offline("s", "ada", since + 4'000);
  CHECK(harness.closed.empty());  // not answered
  harness.advance(600'000);
  harness.set_waiting("s", "ada", since);
  CHECK(harness.notices.size() == 1);
  harness.set_status("s", "ada", "working", harness.now_ms);
  CHECK(harness.closed.size() == 1);
  harness.set_waiting("s", "ada", harness.now_ms);  // a new wait
  CHECK(harness.notices.size() == 2);
}

TEST_CASE("a wait is not repeated if the notifier restarts while the host is offline") {
  HubHarness harness;
  const std::int64_t since = harness.now_ms;
  harness.set_waiting("s", "ada", since);
  harness.restart_offline(since + 4'000);
  harness.advance(60'000);
  CHECK(harness.closed.empty());
  harness.set_waiting("s", "ada", since);
  CHECK(harness.notices.size() == 1);
  CHECK(harness.state().open.size() == 1);
}

TEST_CASE("a held wait of an offline host is sent when the host is back, unless answered") {
  const std::string rules =
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nhold = \"30s\"\n";
  for (const bool answered : {false, true}) {
    for (const bool restarted : {false, true}) {
      INFO(answered << restarted);
      HubHarness harness(rules);
      const std::int64_t since = harness.now_ms;
      harness.set_waiting("s", "ada", since);
      harness.advance(20'000);
      harness.set_offline("s", "ada", since + 4'000);
      if (restarted) harness.restart_offline(since + 4'000);
      harness.advance(60'000);
      CHECK(harness.notices.empty());
      if (answered) harness.set_status("s", "ada", "working", harness.now_ms);
      if (!answered) harness.set_waiting("s", "ada", since);
      harness.advance(20'000);
      CHECK(harness.notices.size() == (answered ? 0 : 1));
    }
  }
}

constexpr const char* offline_rule =
    "defaults = false\n[[rule]]\nname = \"gone\"\nstatus = \"unknown\"\nreason = \"host_offline\"\nhold = "
    "\"5s\"\ntitle = \"{host} is away\"\n";

TEST_CASE("a host without a heartbeat so far is not notified as offline") {
  const std::string session = R"({"type":"session","host":"ada","session":"s@ada","cursors":[],"status":)"
                              R"({"state":"unknown","reason":"host_offline","source":"clock"}})";
  HubHarness harness(offline_rule);
  harness.receive(session);
  harness.advance(RuleEngine::grace_ms);
  CHECK(harness.notices.empty());
  harness.set_offline("s", "ada", harness.now_ms - 15'000);
  harness.advance(5000);
  CHECK(harness.titles() == std::vector<std::string>{"ada is away"});

  HubHarness waiting;
  waiting.set_waiting("s", "ada", waiting.now_ms);
  waiting.advance(5000);
  REQUIRE(waiting.notices.size() == 1);
  waiting.receive(session);  // the hub was started again: the request may be unanswered
  CHECK(waiting.closed.empty());
}

TEST_CASE("a rule can notify of an offline host, once per session") {
  HubHarness harness(offline_rule);
  harness.set_offline("s", "ada", harness.now_ms);
  harness.set_offline("s", "ada", harness.now_ms);
  harness.advance(10'000);
  CHECK(harness.titles() == std::vector<std::string>{"ada is away"});
  harness.set_status("s", "ada", "working", harness.now_ms);
  CHECK(harness.closed.size() == 1);
}
