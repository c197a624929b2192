// What notices say of a session and when: its page, its title, its host's clock, how full its context is.
#include "notifier/rule_engine.hpp"
#include "unit/notifier/engine_harness.hpp"

namespace rule_engine_facts_test {

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

constexpr std::int64_t minute_ms = 60'000;

std::string welcome(const std::string& host, const std::string& url = {}) {
  return R"({"type":"welcome","protocol":1,"host":")" + host + "\"" +
         (url.empty() ? "" : R"(,"url":")" + url + "\"") + "}";
}

}  // namespace

TEST_CASE("a notice links to the page of its session") {
  EngineHarness harness;
  harness.engine().set_page("http://127.0.0.1:7717/");
  harness.receive(welcome("h"));
  harness.set_waiting("s");
  harness.receive(welcome("h", "https://hub.test/earshot/"));
  harness.set_waiting("a b&c/#");
  harness.receive(welcome("h", "javascript:alert(1)"));
  harness.set_waiting("t");
  REQUIRE(harness.notices.size() == 3);
  CHECK(harness.notices[0].link == "http://127.0.0.1:7717/?session=s&host=h");
  CHECK(harness.notices[1].link == "https://hub.test/earshot/?session=a%20b%26c%2F%23&host=h");
  CHECK(harness.notices[2].link.empty());
  CHECK(notice_json(harness.notices[0]).find(R"("link":"http://127.0.0.1:7717/?session=s&host=h")") !=
        std::string::npos);
}

TEST_CASE("a group of notices links to the overview") {
  EngineHarness harness;
  harness.receive(welcome("h", "http://127.0.0.1:7717/"));
  for (std::size_t i = 0; i < RuleEngine::group_after + 3; ++i) harness.set_waiting("s" + std::to_string(i));
  harness.advance(RuleEngine::group_ms);
  REQUIRE(harness.notices.size() == RuleEngine::group_after + 1);
  CHECK(harness.notices.back().link == "http://127.0.0.1:7717/");
}

TEST_CASE("templates can use the link") {
  EngineHarness harness(
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\ntitle = \"{name}\"\nbody = \"[see "
      "{link}]\"\n");
  harness.set_waiting("s");
  harness.receive(welcome("h", "http://h.test/"));
  harness.set_waiting("t");
  harness.advance(5000);
  REQUIRE(harness.notices.size() == 2);
  CHECK(harness.notices[0].body.empty());
  CHECK(harness.notices[1].body == "see http://h.test/?session=t&host=h");
}

TEST_CASE("only a session on the daemon's own host has a terminal to show") {
  EngineHarness harness;
  harness.set_waiting("s");  // no welcome yet
  harness.receive(welcome("h"));
  harness.set_waiting("t");
  harness.receive(welcome("hub"));
  harness.set_waiting("u");
  REQUIRE(harness.notices.size() == 3);
  CHECK_FALSE(harness.notices[0].is_here);
  CHECK(harness.notices[1].is_here);
  CHECK_FALSE(harness.notices[2].is_here);
}

TEST_CASE("the built-in rules state the title and what is asked in the full view only") {
  EngineHarness meta, full("view = \"full\"\n");
  for (EngineHarness* harness : {&meta, &full}) {
    harness->receive(
        R"({"type":"session","host":"h","session":"s","project":"/p/lamp","title":"Fix the lamp","directory":"d","cursors":[]})");
    const std::string status =
        R"({"type":"status","host":"h","session":"s","state":"waiting","source":"registry","since":")" +
        format_time(harness->now_ms) + "\"";
    harness->receive(status + R"(,"reason":"permission"})");
    harness->receive(status + R"(,"reason":"permission","detail":"approve Bash: make soak"})");
    harness->advance(RuleEngine::refine_ms);
    REQUIRE(harness->notices.size() == 1);
    CHECK(harness->notices[0].title == "lamp needs you");
  }
  CHECK(meta.notices[0].body == "permission");
  CHECK(full.notices[0].body == "Fix the lamp\npermission\napprove Bash: make soak");
}

TEST_CASE("the age of an event is judged by this machine's clock where the host's is known to be off") {
  for (const std::int64_t offset : {10 * minute_ms, -10 * minute_ms}) {
    for (const bool known : {true, false}) {
      INFO(offset << known);
      EngineHarness harness({}, noon_ms, noon_ms - minute_ms);
      harness.receive(R"({"type":"session","host":"h","session":"s","directory":"d","cursors":[])" +
                      (known ? R"(,"clock_offset_ms":)" + std::to_string(offset) : std::string()) + "}");
      const std::int64_t there = harness.now_ms - offset;
      harness.set_waiting("s", "permission", there);
      harness.finish_turn("t", 1, 95'000, "completed", there);  // another session of the host
      harness.advance(5000);
      CHECK(harness.notices.size() == (known || offset < 0 ? 2 : 1));  // a wait may be old
      if (known) CHECK(harness.notices[0].time_ms == noon_ms);
    }
  }
}

TEST_CASE("an old event of a host whose clock is ahead is too old") {
  EngineHarness harness;
  harness.receive(
      R"({"type":"session","host":"h","session":"s","directory":"d","cursors":[],"clock_offset_ms":-600000})");
  harness.finish_turn("s", 1, 95'000, "completed", harness.now_ms + 10 * minute_ms - 6 * minute_ms);
  harness.advance(minute_ms);
  CHECK(harness.outcomes() == "too old");
  harness.receive(
      R"({"type":"session","host":"h","session":"s","directory":"d","cursors":[]})");  // set right
  harness.finish_turn("s", 2, 95'000, "completed", harness.now_ms);
  harness.advance(5000);
  CHECK(harness.notices.size() == 1);
}

namespace {

struct ContextHarness : EngineHarness {
  ContextHarness()
      : EngineHarness(
            "defaults = false\n[[rule]]\nname = \"full\"\ncontext = \">80%\"\nhold = \"0\"\ntitle = "
            "\"{session}: "
            "{context}\"\n") {}
  void set_session(const std::string& usage, const std::string& session = "s") {
    receive(R"({"type":"session","host":"h","session":")" + session +
            R"(","model":"m","directory":"d","cursors":[],"usage":{)" + usage + "}}");
  }
  void use(const std::string& fields, const std::string& session = "s") {
    advance(1000);
    receive(event(session, "usage.updated", 1, R"(,"model":"m","total":{},)" + fields));
  }
  void compact(const std::string& session = "s") {
    receive(event(session, "compaction.finished", 1, R"(,"kind":"full","pre_tokens":170000)"));
  }
};

}  // namespace

TEST_CASE("a full context causes one notice per session and compaction") {
  ContextHarness harness;
  harness.set_session(R"("context":100000,"context_window":200000)");
  harness.use(R"("input":10,"cache_read":150000,"cache_write":9990,"output":500)");
  CHECK(harness.notices.empty());  // exactly 80 %
  harness.use(R"("input":10,"cache_read":155000,"cache_write":9990,"output":500)");
  REQUIRE(harness.titles() == std::vector<std::string>{"s: 82%"});
  harness.use(R"("input":10,"cache_read":180000,"cache_write":0,"output":500)");
  harness.restart();
  harness.set_session(R"("context":180000,"context_window":200000)");
  harness.use(R"("input":10,"cache_read":185000,"cache_write":0,"output":500)");
  CHECK(harness.notices.size() == 1);
  harness.compact();
  harness.use(R"("input":10,"cache_read":40000,"cache_write":0,"output":500)");
  CHECK(harness.notices.size() == 1);
  harness.use(R"("input":10,"cache_read":170000,"cache_write":0,"output":500)");
  CHECK(harness.titles() == std::vector<std::string>{"s: 82%", "s: 85%"});
}

TEST_CASE("a drop of the context arms the condition again, a fluctuation does not") {
  ContextHarness harness;
  const auto use = [&](int tokens) {
    harness.use(R"("context_window":100000,"context_tokens":)" + std::to_string(tokens));
  };
  for (const int tokens : {81'000, 79'000, 82'000, 0, 83'000}) use(tokens);
  CHECK(harness.notices.size() == 1);
  for (const int tokens : {74'000, 81'000}) use(tokens);
  CHECK(harness.titles() == std::vector<std::string>{"s: 81%", "s: 81%"});
}

TEST_CASE("each session has its context, subagents do not change it, and an old event does not use it up") {
  ContextHarness harness;
  for (const char* session : {"s", "t"})
    harness.set_session(R"("context":1000,"context_window":100000)", session);
  harness.use(R"("context_tokens":90000,"agent":"a1")");
  CHECK(harness.notices.empty());
  harness.receive(harness.event("s", "usage.updated", 1, R"(,"model":"m","context_tokens":85000)",
                                harness.now_ms - 10 * minute_ms));
  CHECK(harness.notices.empty());
  harness.use(R"("context_tokens":90000)");
  harness.use(R"("context_tokens":90000)", "t");
  CHECK(harness.titles() == std::vector<std::string>{"s: 90%", "t: 90%"});
  CHECK(harness.outcomes() == "notified notified");
}

TEST_CASE("without the model's window there is no share of it until the present figures are known") {
  ContextHarness harness;
  harness.use(R"("input":90000)");
  CHECK(harness.notices.empty());
  harness.figures(R"("context":90000,"context_window":100000)");
  CHECK(harness.titles() == std::vector<std::string>{"s: 90%"});
}

TEST_CASE("fault 138: a rule on the cost follows the session's present cost") {
  EngineHarness harness(
      "[[rule]]\nname = \"expensive\"\non = [\"usage.updated\", \"turn.finished\"]\ncost = \">5\"\nhold = "
      "\"0\"\ntitle = \"{cost}\"\n");
  const auto use = [&](int n) {
    harness.receive(harness.event("s", "usage.updated", 1, R"(,"message":"m)" + std::to_string(n) + "\""));
  };
  use(1);
  CHECK(harness.notices.empty());
  harness.figures(R"("cost_usd":4.5,"cost_source":"estimated")");
  CHECK(harness.notices.empty());
  CHECK(harness.engine().take_figures_wanted(harness.now_ms).empty());

  harness.advance(500);
  use(2);
  CHECK(harness.engine().take_figures_wanted(harness.now_ms).empty());  // it was asked just now
  CHECK(harness.engine().figures_due_ms() == noon_ms + RuleEngine::figures_ms);
  harness.advance(RuleEngine::figures_ms);
  harness.figures(R"("cost_usd":6.25,"cost_source":"estimated")");
  CHECK(harness.titles() == std::vector<std::string>{"~$6.25"});
  harness.advance(RuleEngine::figures_ms);
  harness.figures(R"("cost_usd":7,"cost_source":"mixed")");  // nothing was asked
  CHECK(harness.notices.size() == 1);
  CHECK(harness.outcomes() == "notified");  // no duplicate of it
}

TEST_CASE("fault 138: nothing is asked for an event that the present figures cannot make match") {
  EngineHarness harness(
      "defaults = false\n[[rule]]\nname = \"a\"\non = \"turn.finished\"\noutcome = \"failed\"\ncost = "
      "\">5\"\nhold = \"0\"\n");
  const auto wanted = [&] { return harness.engine().take_figures_wanted(harness.now_ms).size(); };
  harness.finish_turn("s", 1);
  CHECK(wanted() == 0);
  harness.finish_turn("s", 2, 60'000, "failed");
  CHECK(wanted() == 1);
  harness.finish_turn("s", 3, 60'000, "failed");
  harness.advance(RuleEngine::figures_ms);
  CHECK(wanted() == 0);  // the answer is still to come
  CHECK_FALSE(harness.engine().figures_due_ms());
  harness.answer_figures(R"("cost_usd":6)");
  CHECK(harness.notices.size() == 2);
  CHECK(wanted() == 1);  // the third turn may have cost more, and was notified
  harness.answer_figures("");
  harness.advance(RuleEngine::figures_ms);
  CHECK(wanted() == 0);
}

TEST_CASE("fault 138: a wait that is over when the figures come is not notified") {
  EngineHarness harness(
      "defaults = false\n[[rule]]\nname = \"a\"\nstatus = \"waiting\"\ncost = \">5\"\nhold = \"0\"\n");
  const bool is_over = GENERATE(true, false);
  harness.set_waiting("s");
  REQUIRE(harness.engine().take_figures_wanted(harness.now_ms).size() == 1);
  if (is_over) harness.set_status("s", "working");
  harness.answer_figures(R"("cost_usd":6)");
  harness.advance(RuleEngine::refine_ms);
  CHECK(harness.notices.size() == (is_over ? 0 : 1));
}

TEST_CASE("fault 138: an event that comes while the figures are asked for waits for the next ones") {
  ContextHarness harness;
  harness.use(R"("input":1000)");
  REQUIRE(harness.engine().take_figures_wanted(harness.now_ms).size() == 1);
  harness.use(R"("input":90000)");
  harness.answer_figures(R"("context":1000,"context_window":200000)");
  CHECK(harness.notices.empty());
  harness.advance(RuleEngine::figures_ms);
  harness.figures(R"("context":90000,"context_window":100000)");
  CHECK(harness.titles() == std::vector<std::string>{"s: 90%"});
}

}  // namespace rule_engine_facts_test
