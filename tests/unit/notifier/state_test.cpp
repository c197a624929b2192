// The state file, and what is asked of the daemon to go on from it.
#include "notifier/state_file.hpp"

#include "notifier/following.hpp"
#include "unit/notifier/rig.hpp"

using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

const char* const own_ready = R"({"type":"ready","id":"notify"})";

std::string session(const std::string& place, std::int64_t activity_ms) {
  return R"({"type":"session","host":"h","session":"s","directory":"d","cursors":[")" + place +
         R"("],"last_activity":")" + time_text(activity_ms) +
         R"(","status":{"state":"idle","source":"registry","since":")" + time_text(activity_ms) + R"("}})";
}

}  // namespace

TEST_CASE("what is written down is what is read") {
  Desk desk(
      "sinks = [\"desktop\", \"bell\"]\n[[rule]]\nname = \"t\"\non = \"tool.finished\"\nhold = "
      "\"0\"\nthrottle = \"1h\"\n");
  desk.project("s", R"(/home/ada/ö \"quoted\")");
  desk.waits("s");
  desk.finishes("t", 1);
  desk.frame(desk.event("s", "tool.finished", 1, R"(,"call":"c","tool":"B","outcome":"ok")"));
  State state;
  state.memory = desk.memory();
  state.cursors = {{"c/p/s", "1.1.ab"}, {"c/a:b", ""}};
  state.memory.since_ms = 7;
  state.outgoing = desk.told;
  state.bus = "bus:1.5";
  state.shown = {{"s", 7}};
  state.shown_ids = {{"s", "abc"}};
  const auto read = parse_state(written(state));
  REQUIRE(read);
  CHECK(read->cursors == state.cursors);
  CHECK(read->memory.handled == state.memory.handled);
  CHECK(read->memory.open == state.memory.open);
  CHECK(read->memory.throttles == state.memory.throttles);
  REQUIRE(read->memory.held.size() == state.memory.held.size());
  CHECK(read->memory.held.size() == 2);
  for (std::size_t i = 0; i < read->memory.held.size(); ++i) {
    CHECK(read->memory.held[i].notice == state.memory.held[i].notice);
    CHECK(read->memory.held[i].due_ms == state.memory.held[i].due_ms);
  }
  CHECK(read->memory.since_ms == 7);
  CHECK(read->outgoing == desk.told);
  CHECK(read->outgoing.size() == 2);
  CHECK(read->bus == state.bus);
  CHECK(read->shown == state.shown);
  CHECK(read->shown_ids == state.shown_ids);
  CHECK(written(*read) == written(state));
}

TEST_CASE("what is no state is none") {
  for (const char* text : {"", "{}", "[]", R"({"version":2})", R"({"version":1)"})
    CHECK_FALSE(parse_state(text));
  CHECK(parse_state(R"({"version":1,"held":[{"due_ms":3}],"cursors":[3,"x"],"handled":"no"})"));
}

TEST_CASE("after a restart known streams resume; of others the recent events are requested") {
  Desk desk;
  Following following(desk.engine(), {"turn.*"}, {{"c/known", "7.1.aa"}}, 0);
  const std::string request = following.begin(desk.now_ms, 300'000);
  CHECK(request.find(R"("after":["c/known:7.1.aa"])") != std::string::npos);
  CHECK(request.find(R"("since":")" + time_text(desk.now_ms - 300'000)) != std::string::npos);
  CHECK(request.find(R"("type":["turn.*"])") != std::string::npos);
  CHECK(request.find(R"("on_lag":"catch_up")") != std::string::npos);
  following.take(session("c/known:9.1.bb", desk.now_ms), desk.now_ms);
  following.take(own_ready, desk.now_ms);
  CHECK_FALSE(following.live());
}

TEST_CASE("at the first start events from before the start are not requested") {
  Desk desk;
  Following following(desk.engine(), {"turn.*"}, {}, desk.now_ms);
  const std::string request = following.begin(desk.now_ms, 300'000);
  CHECK(request.find(R"("since":")" + time_text(desk.now_ms)) != std::string::npos);
  CHECK(request.find("after") == std::string::npos);
}

TEST_CASE("each event is handled once, and the cursors advance") {
  Desk desk;
  Following following(desk.engine(), {"turn.*"}, {}, desk.now_ms);
  following.begin(desk.now_ms, 300'000);
  following.take(own_ready, desk.now_ms);
  CHECK(following.live());  // there was nothing to catch up with
  following.take(desk.event("s", "turn.finished", 1, R"(,"outcome":"failed")"), desk.now_ms);
  CHECK(following.places(10) == Following::Places{{"c/p/s", "1.1.0000000000000001"}});
  desk.passes(5000);
  CHECK(desk.told.size() == 1);
  following.take(R"({"type":"bookmark","cursors":["c/p/s:9.1.ff"]})", desk.now_ms);
  CHECK(following.places(10) == Following::Places{{"c/p/s", "9.1.ff"}});
  following.take(R"({"type":"stream.removed","stream":"c/p/s"})", desk.now_ms);
  CHECK(following.places(10).empty());
}

TEST_CASE("missed events are decided when the complete bookmark arrives") {
  Desk desk;
  Following following(desk.engine(), {"turn.*"}, {{"c/p/s", "0.0.aa"}}, 0);
  following.begin(desk.now_ms, 300'000);
  following.take(session("c/p/s:9.1.bb", desk.now_ms), desk.now_ms);
  following.take(own_ready, desk.now_ms);
  following.take(desk.event("s", "turn.finished", 1, R"(,"outcome":"failed")", desk.now_ms - 60'000),
                 desk.now_ms);
  desk.passes(20'000);
  CHECK(desk.told.empty());
  CHECK_FALSE(following.live());
  following.take(R"({"type":"bookmark","id":"notify","cursors":[],"complete":true})", desk.now_ms);
  CHECK(following.live());
  CHECK(desk.engine().take_notices().size() == 1);
}

TEST_CASE("malformed and unknown frames are reported or ignored") {
  Desk desk;
  Following following(desk.engine(), {"turn.*"}, {}, desk.now_ms);
  following.begin(desk.now_ms, 300'000);
  following.take("[1,2", desk.now_ms);
  following.take(R"({"type":"error","code":"bad_cursor","message":"no"})", desk.now_ms);
  following.take(R"({"type":"later.kind","x":1})", desk.now_ms);
  CHECK(following.take_diagnostics().size() == 2);
}
