#include "notifier/notifier.hpp"

#include "unit/notifier/engine_harness.hpp"

using namespace earshot;
using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

const char* const own_ready = R"({"type":"ready","id":"notify"})";

std::string session(const std::string& cursor, std::int64_t activity_ms) {
  return R"({"type":"session","host":"h","session":"s","directory":"d","cursors":[")" + cursor +
         R"("],"last_activity":")" + format_time(activity_ms) +
         R"(","status":{"state":"idle","source":"registry","since":")" + format_time(activity_ms) + R"("}})";
}

}  // namespace

TEST_CASE("after a restart known streams resume, of others the recent events are requested") {
  EngineHarness harness;
  Subscription subscription(harness.engine(), {"turn.*"}, {{"c/known", "7.1.aa"}}, 0);
  const std::string request = subscription.begin(harness.now_ms, 300'000);
  CHECK(request.find(R"("after":["c/known:7.1.aa"])") != std::string::npos);
  CHECK(request.find(R"("since":")" + format_time(harness.now_ms - 300'000)) != std::string::npos);
  CHECK(request.find(R"("type":["turn.*"])") != std::string::npos);
  CHECK(request.find(R"("on_lag":"catch_up")") != std::string::npos);
  subscription.receive(session("c/known:9.1.bb", harness.now_ms), harness.now_ms);
  subscription.receive(own_ready, harness.now_ms);
  CHECK_FALSE(subscription.live());
}

TEST_CASE("at the first start events from before the start are not requested") {
  EngineHarness harness;
  Subscription subscription(harness.engine(), {"turn.*"}, {}, harness.now_ms);
  const std::string request = subscription.begin(harness.now_ms, 300'000);
  CHECK(request.find(R"("since":")" + format_time(harness.now_ms)) != std::string::npos);
  CHECK(request.find("after") == std::string::npos);
}

TEST_CASE("each event is handled once, and the cursors advance") {
  EngineHarness harness;
  Subscription subscription(harness.engine(), {"turn.*"}, {}, harness.now_ms);
  subscription.begin(harness.now_ms, 300'000);
  subscription.receive(own_ready, harness.now_ms);
  CHECK(subscription.live());  // nothing was missed
  subscription.receive(harness.event("s", "turn.finished", 1, R"(,"outcome":"failed")"), harness.now_ms);
  CHECK(subscription.cursors(10) == SavedState::Cursors{{"c/p/s", "1.1.0000000000000001"}});
  harness.advance(5000);
  CHECK(harness.notices.size() == 1);
  subscription.receive(R"({"type":"bookmark","cursors":["c/p/s:9.1.ff"]})", harness.now_ms);
  CHECK(subscription.cursors(10) == SavedState::Cursors{{"c/p/s", "9.1.ff"}});
  subscription.receive(R"({"type":"stream.removed","stream":"c/p/s"})", harness.now_ms);
  CHECK(subscription.cursors(10).empty());
}

TEST_CASE("fault 125: the cursor of a renamed stream is stored under its new name") {
  EngineHarness harness;
  Subscription subscription(harness.engine(), {"turn.*"}, {}, harness.now_ms);
  subscription.begin(harness.now_ms, 300'000);
  subscription.receive(own_ready, harness.now_ms);
  subscription.receive(harness.event("s", "turn.finished", 1, R"(,"outcome":"failed")"), harness.now_ms);
  subscription.receive(R"({"type":"stream.renamed","session":"s","from":"c/p/s","to":"c/t/s"})",
                       harness.now_ms);
  CHECK(subscription.cursors(10) == SavedState::Cursors{{"c/t/s", "1.1.0000000000000001"}});
  harness.advance(5000);
  CHECK(harness.notices.size() == 1);
}

TEST_CASE("missed events are decided when the complete bookmark arrives") {
  EngineHarness harness;
  Subscription subscription(harness.engine(), {"turn.*"}, {{"c/p/s", "0.0.aa"}}, 0);
  subscription.begin(harness.now_ms, 300'000);
  subscription.receive(session("c/p/s:9.1.bb", harness.now_ms), harness.now_ms);
  subscription.receive(own_ready, harness.now_ms);
  subscription.receive(
      harness.event("s", "turn.finished", 1, R"(,"outcome":"failed")", harness.now_ms - 60'000),
      harness.now_ms);
  harness.advance(20'000);
  CHECK(harness.notices.empty());
  CHECK_FALSE(subscription.live());
  subscription.receive(R"({"type":"bookmark","id":"notify","cursors":[],"complete":true})", harness.now_ms);
  CHECK(subscription.live());
  CHECK(harness.engine().take_notices().size() == 1);
}

TEST_CASE("malformed and unknown frames are reported or ignored") {
  EngineHarness harness;
  Subscription subscription(harness.engine(), {"turn.*"}, {}, harness.now_ms);
  subscription.begin(harness.now_ms, 300'000);
  subscription.receive("[1,2", harness.now_ms);
  subscription.receive(R"({"type":"error","code":"bad_cursor","message":"no"})", harness.now_ms);
  subscription.receive(R"({"type":"later.kind","x":1})", harness.now_ms);
  CHECK(subscription.take_diagnostics().size() == 2);
}

TEST_CASE("focus asks the daemon that the notifier is connected to, and a session is never an option") {
  common::ConnectOptions daemon;
  daemon.state = "/home/ada/state dir";
  const std::vector<std::string> command = focus_command(daemon, "--rotate $(touch x)");
  REQUIRE(command.size() == 6);
  CHECK((command[0] == "earshot" || command[0].ends_with("/earshot")));
  CHECK(std::vector<std::string>(command.begin() + 1, command.end()) ==
        std::vector<std::string>{"focus", "--state", "/home/ada/state dir", "--", "--rotate $(touch x)"});
}
