// Resuming and falling behind: each event is received once, in the order of its stream.
#include <catch2/catch.hpp>
#include <random>

#include "base/quantities.hpp"
#include "unit/serve/stream/subscriber_fixture.hpp"

namespace resume_test {

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

/// A client makes these requests for a stream, ends the subscription "ended", and receives all events.
struct WithoutEnded {
  explicit WithoutEnded(std::vector<message::Subscribe> requests) {
    daemon.turn(one);
    for (message::Subscribe& each : requests) {
      each.after = {one.name() + ":"};
      client.send(std::move(each));
    }
    client.subscriber->unsubscribe("ended");
    daemon.turn(one);
    client.take_all();
    REQUIRE(client.events[one.name()] == expected(one));
  }
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  Client client{daemon};
};

std::size_t index_of(const std::vector<std::string>& types, const std::string& type) {
  return static_cast<std::size_t>(std::find(types.begin(), types.end(), type) - types.begin());
}

}  // namespace

TEST_CASE("missed events follow ready, then a bookmark, then live events") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  const Cursor had = one.transcript()->last_event();
  daemon.turn(one);
  Client client(daemon);
  client.subscribe({place(one, had)});
  daemon.turn(one);
  client.take_all();
  const std::vector<std::string> all = expected(one);
  const std::size_t missed = 14;  // two turns
  REQUIRE(client.events[one.name()] == std::vector(all.end() - static_cast<long>(missed), all.end()));
  REQUIRE(client.types.front() == "ready");
  REQUIRE(client.types[1 + missed / 2] == "bookmark");
  REQUIRE(client.count("bookmark") == 1);
}

TEST_CASE("an empty cursor is the beginning, a cursor at the end reads no file") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client from_start(daemon), up_to_date(daemon);
  from_start.subscribe({one.name() + ":"});
  up_to_date.subscribe({place(one, one.transcript()->last_event())});
  from_start.take_all();
  up_to_date.take_all();
  REQUIRE(from_start.events[one.name()] == expected(one));
  REQUIRE(up_to_date.types == std::vector<std::string>{"ready", "bookmark"});
  REQUIRE(daemon.archive.opened == 1);
  // An edit before an append does not change the end: resuming requests a verification of the prefix.
  REQUIRE(daemon.archive.doubted == std::set<std::string>{one.name()});
}

TEST_CASE("a cursor within a line resumes after that event") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  const std::vector<std::string> all = expected(one);
  for (std::size_t n = 0; n < all.size(); ++n) {
    CAPTURE(n);
    Client client(daemon);
    client.subscribe({one.name() + ":" + all[n]});
    client.take_all();
    REQUIRE(client.events[one.name()] == std::vector(all.begin() + static_cast<long>(n) + 1, all.end()));
    REQUIRE(client.resets == 0);
  }
}

TEST_CASE("a cursor that does not match gets a reset and its session, never an event") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  const Cursor end = one.transcript()->last_event();
  struct Row {
    std::string name, after, answer;
  };
  const std::vector<Row> rows = {
      {"another mark", place(one, {end.offset, end.index, end.prefix_hash ^ 1}), "rewritten"},
      {"no line ends there", place(one, {end.offset - 1, end.index, end.prefix_hash}), "rewritten"},
      {"the future", place(one, {end.offset + 1000, 1, end.prefix_hash}), "rewritten"},
      {"an event that the line does not have", place(one, {end.offset, end.index + 9, end.prefix_hash}),
       "rewritten"},
      {"a mark of nothing", one.name() + ":0.0.00000000000000ff", "rewritten"},
      {"an event of nothing", one.name() + ":0.3.0000000000000000", "rewritten"},
      {"an unknown stream", "claude/p/nobody:" + to_string(end), "unknown"},
      {"another host's root", "laptop/p/one:", "unknown"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Client client(daemon);
    client.subscribe({row.after});
    client.take_all();
    REQUIRE(client.resets == 1);
    const std::size_t reset = client.types[1] == "reset" ? 1 : 0;
    REQUIRE(unquoted(at(client.frames[reset], "/reason")) == row.answer);
    REQUIRE(at(client.frames[reset], "/id") == "\"a\"");
    REQUIRE(client.count("event") == 0);
    REQUIRE(client.count("session") == (row.answer == "rewritten" ? 1 : 0));
    // Live events follow.
    daemon.turn(one);
    client.take_all();
    REQUIRE(client.count("event") == 7);
  }
}

TEST_CASE("resets of many streams take several turns of the loop, and none is lost or repeated") {
  constexpr std::size_t count = 1000;
  Daemon daemon;
  std::vector<std::string> places;
  for (std::size_t n = 0; n < count; ++n) {
    FakeStream& stream = daemon.stream("s" + std::to_string(n));
    if (n % 100 == 0) daemon.turn(stream);
    places.push_back(stream.name() + ":0.0.00000000000000ff");
  }
  Client client(daemon);
  bool is_due = false;
  std::size_t turns = 0;
  client.subscriber->on_more = [&is_due] { is_due = true; };
  client.subscribe(places);
  while (std::exchange(is_due, false)) {
    while (client.take(1 << 30)) {
    }
    if (client.subscriber->snapshot_bytes() > 0 && ++turns == 1) daemon.turn(*daemon.streams[0]);
    daemon.settle();
  }
  client.take_all();
  CHECK(turns > 1);
  REQUIRE(client.resets == count);
  std::map<std::string, std::size_t> reset_at, session_at;
  std::set<std::string> streams;
  for (std::size_t n = 0; n < client.frames.size(); ++n) {
    const std::string session = at(client.frames[n], "/session");
    if (client.types[n] == "reset") reset_at[session] = n;
    if (client.types[n] == "reset") streams.insert(at(client.frames[n], "/stream"));
    if (client.types[n] == "session") session_at[session] = n;
  }
  CHECK(streams.size() == count);
  CHECK(client.count("session") == count);
  for (const auto& [session, reset] : reset_at) REQUIRE(session_at[session] > reset);
  const auto complete = std::find_if(client.frames.begin(), client.frames.end(),
                                     [](const auto& frame) { return at(frame, "/complete") == "true"; });
  REQUIRE(complete != client.frames.end());
  // What happened meanwhile is in the session's frame or follows it.
  const auto event = std::find(client.types.begin(), client.types.end(), "event") - client.types.begin();
  CHECK(event > static_cast<std::ptrdiff_t>(
                    session_at[at(client.frames[static_cast<std::size_t>(event)], "/session")]));
  const std::size_t before = client.count("event");
  CHECK(before == 7);
  daemon.turn(*daemon.streams[0]);
  client.take_all();
  CHECK(client.count("event") == before + 7);
}

TEST_CASE("a malformed entry is an error, the others are served") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client client(daemon);
  client.subscribe({"", "nonsense", ":", one.name() + ":1.2", one.name() + ":1.2.xyz",
                    one.name() + ":-1.0.0000000000000000", one.name() + ":"});
  client.take_all();
  REQUIRE(client.count("error") == 6);
  REQUIRE(client.events[one.name()] == expected(one));
}

TEST_CASE("an unreadable transcript gets a reset and its session") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  daemon.archive.unreadable.insert(one.name());
  Client client(daemon);
  client.subscribe({one.name() + ":"});
  client.take_all();
  REQUIRE(client.types == std::vector<std::string>{"ready", "reset", "session", "bookmark"});
  REQUIRE(at(client.frames[1], "/reason") == "\"unreadable\"");
}

TEST_CASE("a transcript that was never read and is unreadable is reset again when it can be read") {
  Daemon daemon;
  FakeStream cold("claude/p/cold", "cold");
  daemon.archive.add(cold);
  daemon.archive.unreadable.insert(cold.name());
  cold.write(test::prompt(1, "old"), nullptr);
  Client client(daemon), other(daemon), ended(daemon);
  client.subscribe({cold.name() + ":"});
  ended.subscribe({cold.name() + ":"});
  other.subscribe({});
  for (Client* each : {&client, &other, &ended}) each->take_all();
  REQUIRE(client.types == std::vector<std::string>{"ready", "reset", "bookmark"});
  ended.subscriber->unsubscribe("a");
  ended.take_all();
  const auto before = std::pair(other.types, ended.types);

  daemon.context.sessions.session_of(cold);
  for (int times = 0; times < 2; ++times) {  // the second time it is known
    for (Client* each : {&client, &other, &ended}) each->subscriber->stream_readable(cold);
    for (Client* each : {&client, &other, &ended}) each->take_all();
  }
  REQUIRE(client.types == std::vector<std::string>{"ready", "reset", "bookmark", "reset", "session"});
  REQUIRE(at(client.frames[3], "/reason") == "\"unreadable\"");
  REQUIRE(at(client.frames[3], "/id") == "\"a\"");
  REQUIRE(at(client.frames[4], "/cursors/0") == '"' + place(cold, cold.transcript()->end()) + '"');
  REQUIRE(std::pair(other.types, ended.types) == before);
}

TEST_CASE("for a restricted client, other sessions do not exist") {
  Daemon daemon;
  FakeStream &hers = daemon.stream("hers"), &his = daemon.stream("his");
  daemon.turn(hers);
  his.write(test::prompt(1, "secret", "/srv/his"), &daemon);
  FakeStream cold("claude/p/cold", "cold");
  daemon.archive.add(cold);
  Filter allowed;
  allowed.project = {"/home/*", "-home-*"};  // the name of the directory is not a project
  const std::string mark = ":10.0.00000000000000ff";
  Client client(daemon);
  client.subscriber->restrict_to(&allowed);
  client.subscribe({hers.name() + ":", his.name() + ":", his.name() + mark, cold.name() + ":",
                    cold.name() + mark, "claude/p/none:", "claude/p/none" + mark},
                   false, {}, "a", true);
  client.take_all();
  REQUIRE(client.events[hers.name()] == expected(hers));
  REQUIRE(client.count("session") == 1);
  std::vector<std::string> resets;
  for (const std::string& frame : client.frames) {
    CHECK(frame.find("secret") == frame.npos);
    if (at(frame, "/type") != "\"reset\"") continue;
    CHECK(at(frame, "/reason") == "\"unknown\"");
    CHECK(at(frame, "/session") == "absent");
    resets.push_back(at(frame, "/stream"));
  }
  REQUIRE(resets.size() == 6);
  REQUIRE(at(client.frames.back(), "/cursors") == "[\"" + place(hers, hers.transcript()->end()) + "\"]");
  REQUIRE(daemon.archive.doubted == std::set<std::string>{hers.name()});
  REQUIRE(daemon.archive.opened == 1);
  daemon.archive.remove(cold);
}

TEST_CASE("a session that becomes forbidden during a resume is not shown at its end") {
  Daemon daemon;
  FakeStream &one = daemon.stream("one"), &other = daemon.stream("other");
  daemon.turn(one), daemon.turn(other);
  Filter allowed;
  allowed.project = {"/home/*"};
  Client client(daemon);
  client.subscriber->restrict_to(&allowed);
  client.subscribe({one.name() + ":", other.name() + ":10.0.00000000000000ff"});
  client.take(1);  // the resume has begun
  allowed.project = {"/srv/*"};
  client.take_all();
  REQUIRE(client.types == std::vector<std::string>{"ready", "reset", "bookmark"});
  REQUIRE(at(client.frames[1], "/reason") == "\"unknown\"");
  REQUIRE(at(client.frames[1], "/session") == "absent");
  REQUIRE(at(client.frames[2], "/cursors") == "[]");
}

TEST_CASE("a second subscription from the beginning does not repeat events of the first") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client client(daemon);
  client.subscribe({});
  daemon.turn(one);
  client.take(500);
  daemon.turn(one);
  client.subscribe({one.name() + ":"}, false, {}, "b");
  daemon.turn(one);
  client.take_all();
  REQUIRE(same_events(client.events[one.name()], one));
}

TEST_CASE("after random operations, a client that resumes has each event once and in order") {
  const unsigned seed = GENERATE(range(0u, 12u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Daemon daemon;
  daemon.archive.piece_bytes = seed % 3 == 0 ? 1000 : 100'000;
  daemon.context.limits.catch_up_bytes = seed % 5 == 0 ? 50'000 : 4 << 20;
  daemon.context.limits.catch_up_patience = std::chrono::milliseconds(seed % 2 ? 0 : 1000);
  for (int i = 0; i < 4; ++i) daemon.stream("s" + std::to_string(i));
  const bool keeps = seed % 4 != 0;
  const bool rewrites = seed % 2 == 0;
  std::vector<std::unique_ptr<Client>> clients;
  const auto subscribe = [&](Client& client) {
    std::vector<std::string> after = client.places();
    for (const auto& stream : daemon.streams)  // unknown streams: all
      if (!client.events.contains(stream->name())) after.push_back(stream->name() + ":");
    client.subscribe(after, true, client.filter);
  };
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(daemon));
    if (i == 1) clients.back()->filter.type = {"turn.*", "usage.*"};
    if (i == 2) clients.back()->filter.session = {"s1", "s3"};
    subscribe(*clients.back());
  }
  for (int step = 0; step < 200; ++step) {
    FakeStream& stream = *daemon.streams[below(daemon.streams.size())];
    switch (below(rewrites ? 12 : 11)) {
      case 0:
      case 1:
      case 2:
        daemon.turn(stream, below(3000));
        break;
      case 3:
        if (keeps)  // more than the log holds
          for (int n = 0; n < 60; ++n) daemon.turn(stream, 3000);
        break;
      case 4: {
        Client& client = *clients[below(clients.size())];
        client.reconnect();
        subscribe(client);
        break;
      }
      case 11:
        daemon.rewrite(stream);
        break;
      default:
        clients[below(clients.size())]->take(1 + below(20'000));
        if (below(2)) daemon.settle();
    }
  }
  // Now the slower clients are drained one after the other.
  daemon.context.limits.catch_up_patience = std::chrono::milliseconds(0);
  for (int round = 0; round < 3; ++round)
    for (const auto& client : clients) client->take_all();
  for (const auto& client : clients) {
    for (const auto& stream : daemon.streams) {
      CAPTURE(stream->name());
      const auto got = client->events[stream->name()];
      const bool asked =
          client->filter.matches_session({"dev7", stream->session(), ""}) || client->filter.session.empty();
      const auto all = asked ? expected(*stream, client->filter) : std::vector<std::string>{};
      if (rewrites) {  // after a reset for a cursor, the session frame replaces earlier events
        REQUIRE(got.size() <= all.size());
        REQUIRE(std::equal(got.rbegin(), got.rend(), all.rbegin()));
      } else {
        REQUIRE(got == all);
      }
    }
    REQUIRE(client->count("lagged") == 0);
  }
}

// --- `since`, `new_streams`, `unsubscribe`, and each event once per connection ---

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
  WithoutEnded fixture({request("kept", false), request("ended")});
  Client& client = fixture.client;
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
  const WithoutEnded fixture({request("ended", false), request("kept", false)});
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

}  // namespace resume_test
