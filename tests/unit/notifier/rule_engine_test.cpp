#include "notifier/rule_engine.hpp"

#include "unit/notifier/rig.hpp"

using namespace earshot::notifier;
using namespace earshot::notifier::test;

TEST_CASE("an agent that waits is told at once, once, and closed when it goes on") {
  Desk desk;
  desk.project("s", "/home/ada/lighthouse");
  desk.frame(desk.event("s", "tool.invoked", 1, R"(,"call":"c1","tool":"Bash")"));
  desk.waits("s");
  REQUIRE(desk.titles() == std::vector<std::string>{"lighthouse needs you"});
  CHECK(desk.told[0].body == "permission: Bash");
  CHECK(desk.told[0].urgency == Urgency::critical);
  CHECK(desk.told[0].slot == "s");
  desk.waits("s", "permission", desk.now_ms);  // told again by the daemon, which knows more now
  desk.passes(3000);
  CHECK(desk.told.size() == 1);
  CHECK(desk.closed.empty());
  desk.status("s", "working");
  REQUIRE(desk.closed.size() == 1);
  CHECK(desk.closed[0].id == desk.told[0].id);
  CHECK(desk.closed[0].slot == "s");
}

TEST_CASE("each wait is one of its own, each reason is told, a dialog is not") {
  Desk desk;
  for (const char* reason : {"permission", "question", "plan", "dialog"}) {
    desk.waits("s", reason);
    desk.passes(60'000);
    desk.status("s", "working");
    desk.passes(60'000);
  }
  CHECK(desk.told.size() == 3);
  CHECK(desk.closed.size() == 3);
}

TEST_CASE("a wait that follows a wait is another one; one that another source knows too is the same") {
  Desk desk;
  desk.waits("s");
  desk.passes(5000);
  desk.waits("s");  // the registry says so anew
  CHECK(desk.told.size() == 2);
  CHECK(desk.closed.size() == 1);
  desk.passes(1000);
  desk.frame(
      R"({"type":"status","host":"h","session":"s","state":"waiting","reason":"permission","source":"transcript","since":")" +
      time_text(desk.now_ms) + R"("})");
  CHECK(desk.told.size() == 2);
}

TEST_CASE("a long turn is told when nobody answered within 5 s") {
  Desk desk;
  desk.finishes("s", 1, 95'000);
  CHECK(desk.told.empty());
  desk.passes(4999);
  CHECK(desk.told.empty());
  desk.passes(1);
  REQUIRE(desk.titles() == std::vector<std::string>{"s is done"});
  CHECK(desk.told[0].body == "turn 1, 1m35s, 2 tools");
  desk.passes(60'000);
  desk.starts("s", 2);
  CHECK(desk.closed.size() == 1);
}

TEST_CASE("what was answered within 5 s is never told") {
  Desk desk;
  desk.finishes("s", 1);
  desk.passes(4000);
  desk.starts("s", 2);
  desk.passes(60'000);
  CHECK(desk.told.empty());
  CHECK(desk.words() == "held answered");
}

TEST_CASE("another session's answer is no answer, nor is a subagent's turn") {
  Desk desk;
  desk.finishes("s", 1);
  desk.starts("other", 7);
  desk.frame(desk.event("s", "turn.started", 1, R"(,"agent":"a1","origin":"agent")"));
  desk.passes(5000);
  CHECK(desk.told.size() == 1);
}

TEST_CASE("a short turn, an interrupted and a superseded one are not told; why says why") {
  Desk desk;
  desk.finishes("s", 1, 12'000);
  desk.finishes("s", 2, 95'000, "interrupted");
  desk.finishes("s", 3, 95'000, "superseded");
  desk.frame(
      desk.event("s", "turn.finished", 1, R"(,"agent":"a1","outcome":"completed","duration_ms":95000)"));
  desk.passes(60'000);
  CHECK(desk.told.empty());
  REQUIRE(desk.decisions.size() == 3);
  CHECK(desk.decisions[0].word == "no match");
  CHECK(desk.decisions[0].why == "it took 12.0 s, not more than 30s");
}

TEST_CASE("a turn that the API broke off is told, with what the API said") {
  Desk desk;
  desk.frame(desk.event("s", "api.failed", 1, R"(,"fatal":true,"status":529,"error":"Overloaded")"));
  desk.finishes("s", 1, 200, "failed");
  desk.passes(5000);
  REQUIRE(desk.titles() == std::vector<std::string>{"s failed"});
  CHECK(desk.told[0].body == "turn 1, 0.2 s: API error 529");
}

TEST_CASE("an event that is heard twice is told once, also when a copy of the transcript tells it") {
  Desk desk;
  const std::string event =
      desk.event("s", "turn.finished", 1, R"(,"outcome":"completed","duration_ms":95000)");
  desk.frame(event);
  desk.passes(5000);
  desk.frame(event);
  std::string copy = event;
  copy.replace(copy.find("c/p/s"), 5, "c/p/t");
  copy.replace(copy.find("\"session\":\"s\""), 13, "\"session\":\"t\"");
  desk.frame(copy);
  desk.passes(60'000);
  CHECK(desk.told.size() == 1);
}

TEST_CASE("two sessions that finish in the same moment are two") {
  Desk desk;
  desk.finishes("s", 1, 95'000);
  desk.finishes("t", 1, 95'001);
  desk.passes(5000);
  CHECK(desk.told.size() == 2);
}

TEST_CASE("nothing older than 5 minutes is told") {
  Desk desk;
  desk.finishes("s", 1, 95'000, "completed", desk.now_ms - 301'000);
  desk.waits("t", "permission", desk.now_ms - 301'000);
  desk.passes(60'000);
  CHECK(desk.told.empty());
  CHECK(desk.words() == "too old too old");
  desk.finishes("s", 2, 95'000, "completed", desk.now_ms - 299'000);
  desk.passes(0);
  CHECK(desk.told.size() == 1);  // its 5 s are long over
}

TEST_CASE("no event from before the very first start is told, a wait that goes on is") {
  Desk desk({}, noon_ms, noon_ms);
  desk.finishes("s", 1, 95'000, "completed", noon_ms - 1);
  desk.waits("t", "permission", noon_ms - 60'000);
  desk.passes(60'000);
  CHECK(desk.titles() == std::vector<std::string>{"t needs you"});
}

TEST_CASE("what was missed is told once all of it is known, and not when it is answered") {
  Desk desk;
  desk.begin();
  desk.finishes("s", 1, 95'000, "completed", desk.now_ms - 100'000);
  desk.finishes("t", 1, 95'000, "completed", desk.now_ms - 50'000);
  desk.passes(60'000);  // a long transcript takes its time
  CHECK(desk.told.empty());
  desk.frame(desk.event("s", "turn.started", 2, "", desk.now_ms - 90'000));
  desk.caught_up();
  CHECK(desk.titles() == std::vector<std::string>{"t is done"});
}

TEST_CASE("an event without a time is told when it is live, not when it was missed") {
  Desk desk;
  const std::string event =
      R"({"type":"turn.finished","host":"h","stream":"c/p/s","session":"s","cursor":"1.1.00","turn":1,"outcome":"failed"})";
  desk.begin();
  desk.frame(event);
  desk.caught_up();
  desk.passes(60'000);
  CHECK(desk.told.empty());
  std::string second = event;
  second.replace(second.find("1.1.00"), 6, "2.1.00");
  desk.frame(second);
  desk.passes(5000);
  CHECK(desk.told.size() == 1);
}

TEST_CASE(
    "after a restart what was told is not told again, what was held is told, what is answered is closed") {
  Desk desk;
  desk.waits("s");
  const std::int64_t since = desk.now_ms;
  desk.finishes("t", 1);
  REQUIRE(desk.told.size() == 1);
  desk.passes(1000);
  desk.restart();
  desk.begin();
  desk.waits("s", "permission", since);
  desk.caught_up();
  CHECK(desk.told.size() == 1);
  desk.passes(RuleEngine::grace_ms);
  CHECK(desk.titles() == std::vector<std::string>{"s needs you", "t is done"});
  desk.restart();
  desk.begin();
  desk.status("s", "idle");
  desk.caught_up();
  CHECK(desk.closed.size() == 1);
}

TEST_CASE("a session that is gone waits no more") {
  Desk desk;
  desk.waits("s");
  desk.restart();
  desk.begin();
  desk.caught_up();
  CHECK(desk.closed.size() == 1);
}

TEST_CASE("after a long pause what was held is too old") {
  Desk desk;
  desk.finishes("s", 1);
  desk.now_ms += 400'000;
  desk.restart();
  desk.passes(60'000);
  CHECK(desk.told.empty());
}

TEST_CASE("many at once are told as one, after the first few") {
  Desk desk;
  for (int i = 0; i < 12; ++i) desk.waits("s" + std::to_string(i));
  CHECK(desk.told.size() == RuleEngine::group_after);
  desk.status("s5", "working");  // answered meanwhile
  desk.passes(RuleEngine::group_ms);
  REQUIRE(desk.told.size() == RuleEngine::group_after + 1);
  const Notice& group = desk.told.back();
  CHECK(group.title == "8 notices: waiting");
  CHECK(group.matters.size() == 8);
  CHECK(group.body.find("s3 needs you — permission\n") == 0);
  CHECK(group.body.find("and 2 more") != std::string::npos);
  CHECK(group.body.find("s5") == std::string::npos);
  desk.forget();
  for (int i = 3; i < 11; ++i) desk.status("s" + std::to_string(i), "working");
  CHECK(desk.closed.empty());  // one of the group waits still
  desk.status("s11", "working");
  REQUIRE(desk.closed.size() == 1);
  CHECK(desk.closed[0].slot == "group waiting");
}

TEST_CASE("a throttled rule speaks once in its time, for each session") {
  Desk desk(
      "[[rule]]\nname = \"errors\"\non = \"tool.finished\"\noutcome = \"error\"\nhold = \"0\"\nthrottle = "
      "\"1m\"\n");
  const auto fails = [&](const std::string& session, int call) {
    desk.frame(desk.event(session, "tool.finished", 1,
                          R"(,"call":"c)" + std::to_string(call) + R"(","tool":"Bash","outcome":"error")"));
  };
  fails("s", 1);
  fails("s", 2);
  fails("t", 3);
  CHECK(desk.told.size() == 2);
  desk.passes(60'000);
  fails("s", 4);
  CHECK(desk.told.size() == 3);
  CHECK(desk.words() == "told throttled told told");
}

TEST_CASE("in quiet hours nothing is told, or it is told when they end if it still holds") {
  const std::string later =
      "[[rule]]\nname = \"waiting\"\nstatus = \"waiting\"\nquiet = \"11:00-13:00\"\nafter_quiet = true\n";
  Desk quiet("quiet = \"11:00-13:00\"\n"), patient(later);
  for (Desk* desk : {&quiet, &patient}) {
    desk->waits("s");
    desk->waits("t");
    desk->passes(30 * 60'000);
    CHECK(desk->told.empty());
    desk->status("t", "working");
    desk->restart();
    desk->passes(40 * 60'000);
  }
  CHECK(quiet.told.empty());
  REQUIRE(patient.told.size() == 1);
  CHECK(patient.told[0].session == "s");
}

TEST_CASE("once a session is once a session, across restarts") {
  Desk desk(
      "[[rule]]\nname = \"dear\"\non = \"usage.updated\"\ncost = \">5\"\nhold = \"0\"\nonce = \"session\"\n");
  const auto costs = [&](const std::string& session, const std::string& usd) {
    desk.passes(1000);
    desk.frame(desk.event(session, "usage.updated", 1, R"(,"cost_usd":)" + usd + R"(,"total":{})"));
  };
  costs("s", "4.9");
  costs("s", "5.1");
  costs("s", "5.2");
  desk.restart();
  costs("s", "5.3");
  costs("t", "6");
  CHECK(desk.told.size() == 2);
}

TEST_CASE("a sink that cannot take back gets a wait only when nobody answered") {
  Desk desk("sinks = [\"desktop\", \"bell\"]\n");
  desk.waits("s");
  REQUIRE(desk.told.size() == 1);
  CHECK(desk.told[0].sinks == std::vector<std::string>{"desktop"});
  desk.passes(3000);
  desk.status("s", "working");
  desk.passes(60'000);
  CHECK(desk.told.size() == 1);
  desk.waits("s");
  desk.passes(5000);
  REQUIRE(desk.told.size() == 3);
  CHECK(desk.told[2].sinks == std::vector<std::string>{"bell"});
}

TEST_CASE("a notice of the same session takes the place of the earlier one") {
  Desk desk;
  desk.finishes("s", 1);
  desk.passes(5000);
  desk.waits("s");
  REQUIRE(desk.told.size() == 2);
  CHECK(desk.told[0].slot == desk.told[1].slot);
  desk.status("s", "working");
  REQUIRE(desk.closed.size() == 1);
  CHECK(desk.closed[0].id == desk.told[1].id);
}

TEST_CASE("without view = full no text leaves, even when the connection brings some") {
  const std::string rule = "[[rule]]\nname = \"failed\"\non = \"tool.finished\"\nhold = \"0\"\n";
  Desk meta(rule + "title = \"{tool}\"\n"), full(rule + "view = \"full\"\ntitle = \"{tool}: {output}\"\n");
  for (Desk* desk : {&meta, &full})
    desk->frame(desk->event("s", "tool.finished", 1,
                            R"(,"call":"c","tool":"Bash","outcome":"ok","output":"the secret")"));
  REQUIRE(meta.told.size() == 1);
  std::string whole;
  append_notice(whole, meta.told[0]);
  CHECK(whole.find("secret") == std::string::npos);
  CHECK(meta.told[0].event.find("\"call\":\"c\"") != std::string::npos);
  CHECK(full.told[0].title == "Bash: the secret");
  CHECK(full.told[0].event.find("the secret") != std::string::npos);
}

TEST_CASE("what others wrote cannot command a terminal nor make a title of many lines") {
  Desk desk(
      "[[rule]]\nname = \"a\"\non = \"tool.finished\"\nhold = \"0\"\nview = \"full\"\ntitle = "
      "\"{output}\"\nbody = \"{output}\"\n");
  desk.frame(desk.event("s", "tool.finished", 1,
                        R"(,"call":"c","tool":"Bash","outcome":"ok","output":"a\u001b[31mb\nc\u202ed")"));
  REQUIRE(desk.told.size() == 1);
  CHECK(desk.told[0].title == "a\\x1b[31mb c\\u202ed");
  CHECK(desk.told[0].body == "a\\x1b[31mb\nc\\u202ed");
}

TEST_CASE("of a project its last name is enough, or a pattern of the whole") {
  for (const auto& [pattern, fits] : std::vector<std::pair<std::string, bool>>{{"lighthouse", true},
                                                                               {"/home/ada/*", true},
                                                                               {"light*", true},
                                                                               {"house", false},
                                                                               {"/srv/*", false}}) {
    Desk desk("defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nproject = \"" + pattern +
              "\"\n");
    desk.project("s", "/home/ada/lighthouse");
    desk.waits("s");
    INFO(pattern);
    CHECK(desk.told.size() == (fits ? 1 : 0));
  }
}

TEST_CASE("bounds hold, and what is beyond them is told rather than lost") {
  Desk desk("defaults = false\n[[rule]]\nname = \"a\"\non = \"tool.finished\"\nhold = \"1h\"\n");
  for (std::size_t i = 0; i < RuleEngine::held_max + 20; ++i)
    desk.frame(desk.event("s", "tool.finished", 1,
                          R"(,"outcome":"ok","tool":"T","call":"c)" + std::to_string(i) + "\""));
  CHECK(desk.memory().held.size() == RuleEngine::held_max);
  CHECK(desk.told.size() == 20);
  CHECK(desk.memory().open.size() <= RuleEngine::open_max);
}

namespace {

// A hub's words.
struct TeamDesk : Desk {
  explicit TeamDesk(const std::string& rules = {}) : Desk(rules) {
    frame(R"({"type":"welcome","protocol":1,"host":"hub"})");
  }
  void says(const std::string& session, const std::string& host, const std::string& state, std::int64_t since,
            const std::string& reason = {}) {
    frame(R"({"type":"status","host":")" + host + R"(","session":")" + session + "@" + host +
          R"(","state":")" + state + "\"" + (reason.empty() ? "" : R"(,"reason":")" + reason + "\"") +
          R"(,"source":"registry","since":")" + time_text(since) + R"("})");
  }
  void waits(const std::string& session, const std::string& host, std::int64_t since) {
    says(session, host, "waiting", since, "permission");
  }
  void away(const std::string& session, const std::string& host, std::int64_t since) {
    says(session, host, "unknown", since, "host_offline");
  }
};

}  // namespace

TEST_CASE("a notice from a hub says which host, one from a daemon of its own does not") {
  TeamDesk desk;
  desk.waits("s", "ada", desk.now_ms);
  desk.waits("t", "hub", desk.now_ms);
  CHECK(desk.titles() == std::vector<std::string>{"s@ada on ada needs you", "t@hub needs you"});
  CHECK(desk.told[0].host == "ada");
}

TEST_CASE("a rule may be for some hosts") {
  TeamDesk desk(
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nhost = [\"ci-*\", \"ada\"]\n");
  for (const char* host : {"ada", "bob", "ci-7"}) desk.waits("s", host, desk.now_ms);
  REQUIRE(desk.told.size() == 2);
  CHECK(desk.told[1].host == "ci-7");
}

TEST_CASE("a host that goes away needs nobody, and its old wait is not told twice when it is back") {
  TeamDesk desk;
  const std::int64_t asked = desk.now_ms;
  desk.waits("s", "ada", asked);
  REQUIRE(desk.told.size() == 1);
  desk.passes(20'000);
  desk.away("s", "ada", asked + 4'000);
  CHECK(desk.closed.empty());  // nobody answered
  desk.passes(600'000);
  desk.waits("s", "ada", asked);
  CHECK(desk.told.size() == 1);
  desk.says("s", "ada", "working", desk.now_ms);
  CHECK(desk.closed.size() == 1);
  desk.waits("s", "ada", desk.now_ms);  // another one
  CHECK(desk.told.size() == 2);
}

TEST_CASE("nor over a restart of the notifier while the host is away") {
  TeamDesk desk;
  const std::int64_t asked = desk.now_ms;
  desk.waits("s", "ada", asked);
  desk.restart();
  desk.begin();
  desk.away("s", "ada", asked + 4'000);
  desk.caught_up();
  desk.passes(60'000);
  CHECK(desk.closed.empty());
  desk.waits("s", "ada", asked);
  CHECK(desk.told.size() == 1);
  CHECK(desk.memory().open.size() == 1);
}

TEST_CASE("a wait that is held when its host goes away is told when it is back, if it still waits") {
  const std::string rules =
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\nhold = \"30s\"\n";
  for (const bool answered : {false, true}) {
    for (const bool restarted : {false, true}) {
      INFO(answered << restarted);
      TeamDesk desk(rules);
      const std::int64_t asked = desk.now_ms;
      desk.waits("s", "ada", asked);
      desk.passes(20'000);
      desk.away("s", "ada", asked + 4'000);
      if (restarted) {
        desk.restart();
        desk.begin();
        desk.away("s", "ada", asked + 4'000);
        desk.caught_up();
      }
      desk.passes(60'000);
      CHECK(desk.told.empty());
      if (answered) desk.says("s", "ada", "working", desk.now_ms);
      if (!answered) desk.waits("s", "ada", asked);
      desk.passes(20'000);
      CHECK(desk.told.size() == (answered ? 0 : 1));
    }
  }
}

TEST_CASE("who wants to know that a host is away can be told, once a session") {
  TeamDesk desk(
      "defaults = false\n[[rule]]\nname = \"gone\"\nstatus = \"unknown\"\nreason = \"host_offline\"\nhold = "
      "\"5s\"\ntitle = \"{host} is away\"\n");
  desk.away("s", "ada", desk.now_ms);
  desk.away("s", "ada", desk.now_ms);
  desk.passes(10'000);
  CHECK(desk.titles() == std::vector<std::string>{"ada is away"});
  desk.says("s", "ada", "working", desk.now_ms);
  CHECK(desk.closed.size() == 1);
}
