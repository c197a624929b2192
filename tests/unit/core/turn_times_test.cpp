// Waits for the user in turns, and how the time of a session was spent.
#include "core/turn_times.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

constexpr const char* question = R"({"questions":[{"question":"Which?","options":[]}]})";

/// A record at this second instead of the next one.
std::string at(int second) { return R"("timestamp":")" + Records::at(second) + '"'; }

Lines waited(const Feed& feed) { return feed.fields("turn.finished", {"turn", "duration_ms", "waited_ms"}); }

TimeSpent spent(std::int64_t waited, std::int64_t worked, std::int64_t idle, std::int64_t turn_waited,
                std::int64_t turn_worked) {
  return {waited, worked, idle, turn_waited, turn_worked};
}

}  // namespace

TEST_CASE("a turn waited from the question to the answer") {
  Records r;
  const Feed feed({r.user("go", at(0)), r.call("c1", "AskUserQuestion", question, at(5)),
                   r.result("c1", "the first", at(65)), r.text("done", "\"end_turn\"", at(70))});
  CHECK(waited(feed) == Lines{"1 70000 60000"});
}

TEST_CASE("a turn that asks nothing has no waited_ms") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", "ok"), r.text("done", "\"end_turn\"")});
  CHECK(waited(feed) == Lines{"1 3000 -"});
}

TEST_CASE("plans are waits, refused ones too") {
  Records r;
  const Feed feed({r.user("go", at(0)), r.call("c1", "ExitPlanMode", R"({"plan":"p"})", at(10)),
                   r.error("c1", "The user doesn't want to proceed", at(40)),
                   r.text("ok", "\"end_turn\"", at(41))});
  CHECK(waited(feed) == Lines{"1 41000 30000"});
}

TEST_CASE("waits that overlap count once, others are added") {
  Records r;
  const Feed feed({r.user("go", at(0)), r.call("c1", "AskUserQuestion", question, at(10)),
                   r.call("c2", "ExitPlanMode", "{}", at(15)), r.result("c1", "x", at(20)),
                   r.result("c2", "x", at(30)), r.call("c3", "AskUserQuestion", question, at(100)),
                   r.result("c3", "x", at(103)), r.text("done", "\"end_turn\"", at(110))});
  CHECK(waited(feed) == Lines{"1 110000 23000"});
}

TEST_CASE("of a question that is never answered it is not known how long the turn waited") {
  Records r;
  const Feed feed({r.user("go", at(0)), r.call("c1", "AskUserQuestion", question, at(10)),
                   r.user("something else", at(5000)), r.text("done", "\"end_turn\"", at(5001))});
  CHECK(waited(feed) == Lines{"1 10000 -", "2 1000 -"});
}

TEST_CASE("an interruption ends the wait") {
  Records r;
  const Feed feed({r.user("go", at(0)), r.call("c1", "AskUserQuestion", question, at(10)),
                   r.user_blocks(R"([{"type":"text","text":"[Request interrupted by user]"}])", at(25))});
  CHECK(waited(feed) == Lines{"1 25000 15000"});
}

TEST_CASE("questions of subagents in the same transcript are no waits of the turn") {
  Records r;
  const std::string side = R"("isSidechain":true,"parentUuid":null,)";
  const Feed feed(
      {r.user("go", at(0)), r.call("c1", "Task", "{}", at(1)), r.user("look", side + at(2)),
       r.call("c2", "AskUserQuestion", question, R"("isSidechain":true,"parentUuid":"u3",)" + at(3)),
       r.result("c2", "x", R"("isSidechain":true,"parentUuid":"u4",)" + at(13)),
       r.result("c1", "done", at(20)), r.text("done", "\"end_turn\"", at(21))});
  CHECK(waited(feed) == Lines{"1 21000 -"});
}

TEST_CASE("a clock that was set back makes no negative wait") {
  Records r;
  const Feed feed({r.user("go", at(100)), r.call("c1", "AskUserQuestion", question, at(110)),
                   r.result("c1", "x", at(50)), r.text("done", "\"end_turn\"", at(120))});
  CHECK(waited(feed) == Lines{"1 20000 0"});
}

TEST_CASE("a question without a time is no recorded wait") {
  Records r;
  const Feed feed({r.user("go", at(0)), r.call("c1", "AskUserQuestion", question, R"("timestamp":"never")"),
                   r.result("c1", "x", at(50)), r.text("done", "\"end_turn\"", at(60))});
  CHECK(waited(feed) == Lines{"1 60000 -"});
}

TEST_CASE("the time of a stream: turns, waits, and the time between turns") {
  Records r;
  Feed feed({r.user("go", at(0)), r.call("c1", "AskUserQuestion", question, at(10)),
             r.result("c1", "x", at(40)), r.text("done", "\"end_turn\"", at(50))});
  const std::int64_t start = feed.state().turn_started_ms;
  const auto until = [&](int second) { return feed.state().times.until(start + second * 1000); };
  CHECK(until(50) == spent(30'000, 20'000, 0, 30'000, 20'000));
  CHECK(until(60) == spent(30'000, 20'000, 10'000, 30'000, 20'000));
  feed.write(r.user("again", at(80)));
  CHECK(until(80) == spent(30'000, 20'000, 30'000, 0, 0));
  CHECK(until(85) == spent(30'000, 25'000, 30'000, 0, 5'000));
  feed.write(r.call("c2", "AskUserQuestion", question, at(90)));
  CHECK(until(90) == spent(30'000, 30'000, 30'000, 0, 10'000));
  // A status that began later, such as the end of the process, does not turn the wait into work.
  CHECK(until(100) == spent(40'000, 30'000, 30'000, 10'000, 10'000));
  CHECK(feed.state().times.answered() == 0);
  feed.write(r.result("c2", "x", at(95)));
  CHECK(feed.state().times.answered() == start + 95'000);
  CHECK(until(97) == spent(35'000, 32'000, 30'000, 5'000, 12'000));
  feed.write(r.text("done", "\"end_turn\"", at(99)));
  CHECK(feed.state().times.answered() == 0);
  CHECK(until(99) == spent(35'000, 34'000, 30'000, 5'000, 14'000));
}

TEST_CASE("the wait after a turn that ended with a question is no idle time") {
  TurnTimes times;
  CHECK_FALSE(times.is_known());
  times.start_turn(1'000);
  CHECK(times.is_known());
  times.finish_turn(5'000);
  times.ask_after_turn();
  CHECK(times.until(7'000) == spent(2'000, 4'000, 0, 0, 4'000));
  times.start_turn(8'000);
  times.finish_turn(9'000);
  times.start_turn(19'000);
  CHECK(times.until(19'000) == spent(3'000, 5'000, 10'000, 0, 0));
}

TEST_CASE("any number of waits is counted, each once") {
  TurnTimes times;
  times.start_turn(1'000);
  std::int64_t now = 1'000;
  for (int n = 0; n < 1'000; ++n) {
    times.begin_wait(now);
    times.end_wait(now, now + 3);
    now += 10;
  }
  CHECK(times.turn_waited() == 3'000);
  times.begin_wait(now);
  times.end_wait(now, 0);  // its end is not known
  times.end_wait(0, now);  // nor the begin of this one
  CHECK(times.turn_waited() == 3'000);
}

TEST_CASE("a sum of times ends at a century, whatever times are written") {
  constexpr std::int64_t year_10000 = 253'402'300'799'000, most = duration_max.count();
  TurnTimes times;
  for (int turn = 0; turn < 40'000; ++turn) {
    times.start_turn(1);
    if (turn % 2) times.begin_wait(1), times.end_wait(1, year_10000);
    times.finish_turn(year_10000);
    times.start_turn(1);
    times.finish_turn(1);
    times.start_turn(year_10000);
    times.finish_turn(year_10000);
  }
  const TimeSpent spent = times.until(year_10000);
  CHECK(spent.waited == most);
  CHECK(spent.worked == most);
  CHECK(spent.idle == most);
}

TEST_CASE("the waits of a turn are not negative and at most a century, whatever another host states") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t stated : {most, -most - 1}) {
    TurnTimes times;
    times.start_turn(1000);
    times.begin_wait(2000);
    times.set_turn_waited(stated);
    const TimeSpent open = times.until(5000);
    CHECK(open.turn_waited == (stated > 0 ? 4000 : 3000));
    CHECK(open.turn_worked == (stated > 0 ? 0 : 1000));
  }
}

}  // namespace earshot::test
