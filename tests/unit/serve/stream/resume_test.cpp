// Resuming and falling behind: each event is received once, in the order of its stream.
#include <catch2/catch.hpp>
#include <random>

#include "unit/serve/stream/subscriber_fixture.hpp"

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

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

TEST_CASE("an empty cursor is the beginning; a cursor at the end reads no file") {
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

TEST_CASE("a malformed entry is an error; the others are served") {
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
  for (const FakeStream* stream : {&one, &other}) {
    Session& session = daemon.context.sessions.session_of(*stream);
    session.project = "/srv/secret";
    ++session.generation;
  }
  client.take_all();
  REQUIRE(client.types == std::vector<std::string>{"ready", "reset", "bookmark"});
  REQUIRE(at(client.frames[1], "/reason") == "\"unknown\"");
  REQUIRE(at(client.frames[1], "/session") == "absent");
  REQUIRE(at(client.frames[2], "/cursors") == "[]");
}

TEST_CASE("fifty clients that resume the same streams share one fold per stream") {
  Daemon daemon;
  for (int i = 0; i < 40; ++i) {
    FakeStream& stream = daemon.stream("s" + std::to_string(i));
    for (int n = 0; n < 5; ++n) daemon.turn(stream, 2000);
  }
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::string> after;
  for (const auto& stream : daemon.streams) after.push_back(stream->name() + ":");
  for (int i = 0; i < 50; ++i) {
    clients.push_back(std::make_unique<Client>(daemon));
    clients.back()->subscribe(after);
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& client : clients) more |= client->take(1 << 30);
    daemon.settle();
    for (const auto& client : clients) more |= client->take(1 << 30);
  }
  for (const auto& client : clients) {
    client->look();
    for (const auto& stream : daemon.streams) REQUIRE(client->events[stream->name()] == expected(*stream));
    REQUIRE(client->count("bookmark") == 1);
  }
  REQUIRE(daemon.archive.opened == 40);
  REQUIRE(daemon.catch_ups.folds() == 0);
  REQUIRE(daemon.catch_ups.bytes() == 0);
}

TEST_CASE("a client that does not read delays no other client and holds bounded memory") {
  Daemon daemon;
  daemon.context.limits.catch_up_bytes = 1 << 20;
  daemon.context.limits.catch_up_patience = std::chrono::milliseconds(0);
  for (int i = 0; i < 20; ++i) {
    FakeStream& stream = daemon.stream("s" + std::to_string(i));
    for (int n = 0; n < 60; ++n) daemon.turn(stream, 2000);
  }
  std::vector<std::string> after;
  for (const auto& stream : daemon.streams) after.push_back(stream->name() + ":");
  std::vector<std::unique_ptr<Client>> asleep;
  for (int i = 0; i < 5; ++i) {
    asleep.push_back(std::make_unique<Client>(daemon));
    asleep.back()->subscribe(after);
    for (int n = 0; n < 1 + i; ++n) {
      asleep.back()->take(3000);
      daemon.settle();
    }
  }
  Client awake(daemon);
  awake.subscribe(after);
  for (int i = 0; i < 100'000 && awake.count("bookmark") == 0; ++i) {
    if (!awake.take(1 << 30)) daemon.settle();
    awake.look();
    REQUIRE(daemon.catch_ups.bytes() <= daemon.context.limits.catch_up_bytes + (1 << 20));
  }
  for (const auto& stream : daemon.streams) REQUIRE(awake.events[stream->name()] == expected(*stream));
  // The clients that wake up receive each event once, although their chunks were revoked.
  for (const auto& client : asleep) {
    client->take_all();
    for (const auto& stream : daemon.streams) REQUIRE(client->events[stream->name()] == expected(*stream));
  }
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
