// The state file, and what is asked of the daemon to go on from it.
#include "notifier/state_file.hpp"

#include "notifier/following.hpp"
#include "unit/notifier/rig.hpp"

using namespace earshot::notifier;
using namespace earshot::notifier::test;

namespace {

const char* const look_ready = R"({"type":"ready","id":"look"})";
const char* const own_ready = R"({"type":"ready","id":"notify"})";

std::string session(const std::string& place, std::int64_t activity_ms) {
  return R"({"type":"session","host":"h","session":"s","directory":"d","cursors":[")" + place +
         R"("],"last_activity":")" + time_text(activity_ms) +
         R"(","status":{"state":"idle","source":"registry","since":")" + time_text(activity_ms) + R"("}})";
}

std::string all(std::vector<std::string> texts) {
  std::string out;
  for (const std::string& each : texts) out += each + "\n";
  return out;
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

TEST_CASE(
    "after a restart known streams go on where they were; those that moved lately begin at their first "
    "event") {
  Desk desk;
  Following following(desk.decider(), {"turn.*"}, {{"c/known", "7.1.aa"}}, 0);
  CHECK(following.begin(desk.now_ms, 300'000).find(R"("deliver":"state")") != std::string::npos);
  following.take(session("c/known:9.1.bb", desk.now_ms), desk.now_ms);
  following.take(session("c/young:5.1.cc", desk.now_ms - 299'000), desk.now_ms);
  following.take(session("c/old:5.1.dd", desk.now_ms - 301'000), desk.now_ms);
  following.take(look_ready, desk.now_ms);
  const std::string asked = all(following.take_requests());
  CHECK(asked.find(R"("unsubscribe","id":"look")") != std::string::npos);
  CHECK(asked.find(R"("c/known:7.1.aa")") != std::string::npos);
  CHECK(asked.find(R"("c/young:")") != std::string::npos);
  CHECK(asked.find(R"("c/old:5.1.dd")") != std::string::npos);
  CHECK(asked.find(R"("type":["turn.*"])") != std::string::npos);
  CHECK(asked.find(R"("on_lag":"catch_up")") != std::string::npos);
  CHECK_FALSE(following.live());
}

TEST_CASE("the very first time everything begins where it is") {
  Desk desk;
  Following following(desk.decider(), {"turn.*"}, {}, desk.now_ms);
  following.begin(desk.now_ms, 300'000);
  following.take(session("c/young:5.1.cc", desk.now_ms - 1000), desk.now_ms);
  following.take(look_ready, desk.now_ms);
  CHECK(all(following.take_requests()).find(R"("c/young:5.1.cc")") != std::string::npos);
}

TEST_CASE("events are handled from where they were asked for, once; the cursors say so") {
  Desk desk;
  Following following(desk.decider(), {"turn.*"}, {}, desk.now_ms);
  following.begin(desk.now_ms, 300'000);
  following.take(look_ready, desk.now_ms);
  following.take_requests();
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

TEST_CASE("what was missed is decided when its bookmark says that it is complete") {
  Desk desk;
  Following following(desk.decider(), {"turn.*"}, {{"c/p/s", "0.0.aa"}}, 0);
  following.begin(desk.now_ms, 300'000);
  following.take(session("c/p/s:9.1.bb", desk.now_ms), desk.now_ms);
  following.take(look_ready, desk.now_ms);
  following.take(own_ready, desk.now_ms);
  following.take(desk.event("s", "turn.finished", 1, R"(,"outcome":"failed")", desk.now_ms - 60'000),
                 desk.now_ms);
  desk.passes(20'000);
  CHECK(desk.told.empty());
  following.take(R"({"type":"bookmark","id":"notify","cursors":[],"complete":true})", desk.now_ms);
  CHECK(desk.decider().take_notices().size() == 1);
}

TEST_CASE("a stream that is born between the look and the subscription is told from its first event") {
  Desk desk;
  Following following(desk.decider(), {"turn.*"}, {}, 0);
  following.begin(desk.now_ms, 300'000);
  following.take(session("c/p/old:9.1.bb", desk.now_ms), desk.now_ms);
  following.take(look_ready, desk.now_ms);
  following.take_requests();
  following.take(session("c/p/s:5.1.cc", desk.now_ms), desk.now_ms);
  following.take(own_ready, desk.now_ms);
  CHECK(all(following.take_requests()).find(R"("after":["c/p/s:"])") != std::string::npos);
  following.take(R"({"type":"bookmark","id":"notify","cursors":[],"complete":true})", desk.now_ms);
  CHECK_FALSE(following.live());
  following.take(desk.event("s", "turn.finished", 1, R"(,"outcome":"failed")", desk.now_ms - 60'000),
                 desk.now_ms);
  following.take(R"({"type":"bookmark","id":"young","cursors":[],"complete":true})", desk.now_ms);
  CHECK(following.live());
  CHECK(desk.decider().take_notices().size() == 1);
}

TEST_CASE("nonsense from the daemon is complained of, and nothing else") {
  Desk desk;
  Following following(desk.decider(), {"turn.*"}, {}, desk.now_ms);
  following.begin(desk.now_ms, 300'000);
  following.take("[1,2", desk.now_ms);
  following.take(R"({"type":"error","code":"bad_cursor","message":"no"})", desk.now_ms);
  following.take(R"({"type":"later.kind","x":1})", desk.now_ms);
  CHECK(following.take_complaints().size() == 2);
}
