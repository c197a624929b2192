#include "serve/stream/catch_up.hpp"

#include <catch2/catch.hpp>

#include "unit/serve/stream/subscriber_fixture.hpp"

namespace catch_up_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

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

TEST_CASE("fault 79: a client with one cursor does not wait for a client with hundreds") {
  Daemon daemon;
  std::vector<std::string> after;
  for (int i = 0; i < 300; ++i) {
    FakeStream& stream = daemon.stream("s" + std::to_string(i));
    daemon.turn(stream);
    after.push_back(stream.name() + ":");
  }
  FakeStream& one = daemon.stream("one");
  daemon.turn(one);
  Client many(daemon), single(daemon);
  many.subscribe(after);
  many.take(1);
  daemon.settle();
  single.subscribe({one.name() + ":"});
  std::size_t opened = 0;
  while (single.count("bookmark") == 0) {
    single.take(1 << 30);
    many.take(1 << 30);
    daemon.io.restart();
    daemon.io.poll_one();
    single.look();
    opened = daemon.archive.opened;
    REQUIRE(daemon.catch_ups.reading() <= daemon.context.limits.catch_up_folds);
  }
  REQUIRE(single.events[one.name()] == expected(one));
  REQUIRE(opened < 20);
  many.take_all();
  REQUIRE(many.count("bookmark") == 1);
  for (const auto& stream : daemon.streams)
    if (stream.get() != &one) REQUIRE(many.events[stream->name()] == expected(*stream));
}

TEST_CASE("a cursor behind what was read of a truncated file is reset, whatever a fold for others reads") {
  Daemon daemon;
  FakeStream& one = daemon.stream("one");
  for (int n = 0; n < 5; ++n) daemon.turn(one);
  const std::vector<Cursor> cursors = one.cursors();
  Client all(daemon), ahead(daemon);
  all.subscribe({one.name() + ":"});
  while (all.take(1 << 30)) {  // then it waits for all events
  }
  one.unread();
  ahead.subscribe({place(one, cursors[cursors.size() / 2])});
  while (ahead.take(1 << 30)) {
  }
  REQUIRE(daemon.archive.opened == 0);
  daemon.settle();
  REQUIRE(daemon.archive.opened == 1);  // for both
  all.take_all();
  ahead.take_all();
  REQUIRE(all.resets == 0);
  REQUIRE(all.events[one.name()] == expected(one));
  REQUIRE(ahead.types == std::vector<std::string>{"ready", "reset", "session", "bookmark"});
}

TEST_CASE("between the slices of a piece the event loop has turns for others") {
  Daemon daemon;
  FakeStream& stream = daemon.stream("s");
  for (int n = 0; n < 8; ++n) daemon.turn(stream, 2000);
  Client client(daemon);
  client.subscribe({stream.name() + ":"});
  while (client.take(1 << 30)) {  // then it waits for the events
  }
  daemon.io.restart();
  while (daemon.archive.bytes_read == 0) REQUIRE(daemon.io.poll_one() == 1);
  REQUIRE(daemon.archive.bytes_read == stream.text().size());  // one piece
  std::size_t turns = 0;
  for (; daemon.catch_ups.reading() > 0; ++turns) REQUIRE(daemon.io.poll_one() == 1);
  REQUIRE(turns >= stream.text().size() / 10'000);
  client.take_all();
  REQUIRE(client.events[stream.name()] == expected(stream));
}

TEST_CASE("clients that come and go between the slices of a piece receive each event once") {
  std::size_t shared = 0;
  for (int turns = 0; turns < 60; ++turns) {
    Daemon daemon;
    FakeStream& stream = daemon.stream("s");
    for (int n = 0; n < 30; ++n) daemon.turn(stream, 2000);
    const std::vector<Cursor> cursors = stream.cursors();
    const std::size_t known = cursors.size() / 8;  // in the first piece
    Client stays(daemon), leaves(daemon), comes(daemon);
    for (Client* const client : {&stays, &leaves}) client->subscribe({stream.name() + ":"});
    for (Client* const client : {&stays, &leaves})
      while (client->take(1 << 30)) {
      }
    daemon.io.restart();
    for (int n = 0; n < turns; ++n) daemon.io.poll_one();
    leaves.reconnect();
    comes.subscribe({place(stream, cursors[known])});
    while (comes.take(1 << 30)) {
    }
    for (bool more = true; more;) {
      more = stays.take(1 << 30) | comes.take(1 << 30);
      daemon.settle();
      more |= stays.take(1 << 30) | comes.take(1 << 30);
    }
    stays.look();
    comes.look();
    REQUIRE(stays.events[stream.name()] == expected(stream));
    std::vector<std::string> rest = expected(stream);
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(known) + 1);
    REQUIRE(comes.events[stream.name()] == rest);
    REQUIRE(stays.resets + comes.resets == 0);
    REQUIRE(daemon.catch_ups.folds() == 0);
    shared += daemon.archive.opened == 1;
  }
  REQUIRE(shared > 0);
  REQUIRE(shared < 60);
}

}  // namespace catch_up_test
