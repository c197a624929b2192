// `since`, `new_streams`, `unsubscribe`, and each event once per connection.
#include <catch2/catch.hpp>

#include "base/quantities.hpp"
#include "unit/serve/stream/subscriber_fixture.hpp"

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

namespace {

message::Subscribe since(const std::string& id, std::string_view time) {
  message::Subscribe asked = request(id);
  asked.since_ms = parse_time(time);
  REQUIRE(asked.since_ms);
  return asked;
}

message::Subscribe after(const std::string& id, std::vector<std::string> cursors) {
  message::Subscribe asked = request(id, false);
  asked.after = std::move(cursors);
  return asked;
}

message::Subscribe from_beginning() {
  message::Subscribe asked = request("a");
  asked.from_beginning = true;
  return asked;
}

std::size_t index_of(const std::vector<std::string>& types, const std::string& type) {
  return static_cast<std::size_t>(std::find(types.begin(), types.end(), type) - types.begin());
}

}  // namespace

TEST_CASE("`since` sends the events from that time on, then a bookmark, then live events") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  for (int n = 0; n < 3; ++n) daemon.turn(one);  // at 10:00:10, :20 and :30
  const std::vector<std::string> all = expected(one);
  Client client(daemon);
  client.send(since("a", "2026-03-01T10:00:20Z"));
  daemon.turn(one);
  client.take_all();
  const std::size_t missed = 14;  // the second and the third turn
  REQUIRE(client.types[0] == "session");
  REQUIRE(client.types[1] == "ready");
  REQUIRE(client.types[2] == "event");
  REQUIRE(client.types[2 + missed] == "bookmark");
  REQUIRE(at(client.frames[2 + missed], "/id") == "\"a\"");
  REQUIRE(at(client.frames[2 + missed], "/complete") == "true");
  const std::vector<std::string> now = expected(one);
  REQUIRE(client.events[one.name()] ==
          std::vector(now.begin() + static_cast<long>(all.size() - missed), now.end()));
}

TEST_CASE("`since` reads no file that did not change since then") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  one.modified_ms_ = *parse_time("2026-03-01T09:00:00Z");
  daemon.context.recent = std::chrono::hours(24 * 365 * 100);
  Client client(daemon);
  client.send(since("a", "2026-03-01T10:00:00Z"));
  client.take_all();
  REQUIRE(client.types == std::vector<std::string>{"session", "ready", "bookmark"});
  REQUIRE(daemon.archive.opened == 0);
}

TEST_CASE(
    "events without a time have that of the event before them, the first ones that of the first timed one") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  const auto untimed = [](std::string line) {
    const std::size_t at = line.find(R"(,"timestamp":")");
    return line.erase(at, line.find('"', at + 14) + 1 - at);
  };
  one.write(
      untimed(test::prompt(1, "no time")) + test::answer(20, "done") + untimed(test::prompt(21, "nor here")),
      &daemon);
  const std::vector<std::string> all = expected(one);
  const auto received = [&](std::string_view time) {
    Client client(daemon);
    client.send(since("a", time));
    client.take_all();
    return client.events[one.name()];
  };
  REQUIRE(received("2026-03-01T10:00:20Z") == all);
  REQUIRE(received("2026-03-01T10:00:21Z").empty());
}

TEST_CASE("a stream that `after` names resumes from its cursor, the others from `since`") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  FakeStream& two = daemon.stream("two");
  for (int n = 0; n < 2; ++n) {
    daemon.turn(one);
    daemon.turn(two);
  }
  message::Subscribe asked = since("a", "2026-03-01T10:00:20Z");
  asked.after.emplace().push_back(one.name() + ":");
  Client client(daemon);
  client.send(std::move(asked));
  client.take_all();
  REQUIRE(client.events[one.name()] == expected(one));
  REQUIRE(client.events[two.name()].size() == 7);
}

TEST_CASE("`new_streams: beginning` sends the snapshot's streams from their first event") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  FakeStream& two = daemon.stream("two");
  daemon.turn(one);
  daemon.turn(two);
  message::Subscribe asked = from_beginning();
  asked.after.emplace().push_back(place(two, two.transcript()->last_event()));
  Client client(daemon);
  client.send(std::move(asked));
  client.take_all();
  REQUIRE(client.events[one.name()] == expected(one));
  REQUIRE(client.events[two.name()].empty());
  REQUIRE(client.count("bookmark") == 1);
}

TEST_CASE("`new_streams: beginning` sends a stream with history when a session frame mentions it first") {
  Daemon daemon;
  Client client(daemon);
  client.send(from_beginning());
  client.take_all();
  FakeStream& late = daemon.stream("late");
  late.write(test::prompt(10, "history") + test::answer(11, "done"), nullptr);
  client.subscriber->session_shown(*daemon.context.sessions.find("late"));
  daemon.turn(late);
  client.take_all();
  REQUIRE(client.events[late.name()] == expected(late));
  REQUIRE(index_of(client.types, "event") < client.types.size());
  // Mentioned again: nothing is repeated.
  client.subscriber->session_shown(*daemon.context.sessions.find("late"));
  client.take_all();
  REQUIRE(client.events[late.name()] == expected(late));
}

TEST_CASE("a stream that starts while `new_streams: beginning` is subscribed is sent once") {
  Daemon daemon;
  Client client(daemon);
  client.send(from_beginning());
  FakeStream& fresh = daemon.stream("fresh");
  client.subscriber->stream_appeared(daemon.context.sessions.stream_id(fresh));
  daemon.turn(fresh);
  client.subscriber->session_shown(*daemon.context.sessions.find("fresh"));
  daemon.turn(fresh);
  client.take_all();
  REQUIRE(client.events[fresh.name()] == expected(fresh));
  REQUIRE(daemon.archive.opened == 0);
}

TEST_CASE("unsubscribe is acknowledged, and nothing of the subscription follows") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client client(daemon);
  client.send(after("kept", {one.name() + ":"}));
  message::Subscribe asked = request("ended");
  asked.after.emplace().push_back(one.name() + ":");
  client.send(std::move(asked));
  client.subscriber->unsubscribe("ended");
  daemon.turn(one);
  client.take_all();
  REQUIRE(client.events[one.name()] == expected(one));
  REQUIRE(client.count("unsubscribed") == 1);
  std::size_t frames_of_ended = 0;
  for (const std::string& frame : client.frames) frames_of_ended += at(frame, "/id") == "\"ended\"";
  REQUIRE(frames_of_ended == 1);  // `unsubscribed` itself
  REQUIRE(client.count("session") == 0);
  REQUIRE(client.count("ready") == 1);
  client.subscriber->unsubscribe("ended");
  client.take_all();
  REQUIRE(client.types.back() == "error");
}

TEST_CASE("a resume does not depend on a subscription that has ended") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client client(daemon);
  client.send(after("ended", {one.name() + ":"}));
  client.send(after("kept", {one.name() + ":"}));
  client.subscriber->unsubscribe("ended");
  daemon.turn(one);
  client.take_all();
  REQUIRE(client.events[one.name()] == expected(one));
}

TEST_CASE("an event is sent once per connection, whatever the subscriptions resume") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  const std::string middle = place(one, one.transcript()->last_event());
  daemon.turn(one);
  const std::vector<std::string> resumes[] = {{one.name() + ":"}, {middle}};
  for (const auto& first : resumes) {
    for (const auto& second : resumes) {
      CAPTURE(first, second);
      Client client(daemon);
      client.send(after("a", first));
      client.send(after("b", second));  // while the first one catches up
      daemon.turn(one);
      client.take_all();
      client.send(after("c", {one.name() + ":"}));  // after it
      client.take_all();
      REQUIRE(same_events(client.events[one.name()], one));
      REQUIRE(client.resets == 0);
    }
  }
}

TEST_CASE("a resume is not shortened by a subscription to other types") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client client(daemon);
  message::Subscribe tools = after("tools", {one.name() + ":"});
  tools.filter.type = {"tool.*"};
  client.send(std::move(tools));
  daemon.turn(one);
  client.take_all();
  client.send(after("all", {one.name() + ":"}));
  client.take_all();
  REQUIRE(same_events(client.events[one.name()], one));
}

TEST_CASE("events that the log has evicted are not repeated either") {
  Daemon daemon;  // a log of two segments
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client client(daemon);
  client.send(after("live", {one.name() + ":"}));
  client.take_all();
  for (int n = 0; n < 400; ++n) {
    daemon.turn(one, 2000);
    client.take_all();
  }
  REQUIRE(daemon.context.logs.first() > 0);
  client.send(after("again", {one.name() + ":"}));
  client.take_all();
  REQUIRE(client.events[one.name()] == expected(one));
}
