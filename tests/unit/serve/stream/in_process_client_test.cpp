// When a client inside the daemon receives its frames, and how many in one turn of the loop.
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "serve/stream/subscriber_session.hpp"
#include "unit/serve/stream/subscriber_fixture.hpp"

namespace in_process_client_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

namespace {

constexpr std::chrono::hours never{24};  // no test takes so long

/// Keeps the cursors of the events it receives.
struct Listener final : InProcessListener {
  bool has_room() const override { return room; }
  void on_frame(std::string_view payload) override {
    const std::string frame(payload), cursor = at(frame, "/cursor");
    bytes += payload.size();
    if (cursor == "absent") return;
    events[unquoted(at(frame, "/stream"))].push_back(unquoted(cursor));
    ++count;
  }
  bool room = true;
  std::map<std::string, std::vector<std::string>> events;
  std::size_t count = 0, bytes = 0;
};

/// A daemon with one stream and one client.
struct Delivered {
  explicit Delivered(const DeliveryPace& pace)
      : stream(daemon.stream("s")),
        client(std::make_shared<InProcessClient>(daemon.io, daemon.context, listener, Audience::full, pace)) {
    message::Subscribe asked = request("a", false);
    asked.catch_up = true;
    client->subscribe(std::move(asked));
    daemon.settle();
  }
  ~Delivered() {
    client->leave();
    daemon.settle();
  }
  /// As the server after a batch of events.
  void turn(std::size_t text_bytes = 10) {
    daemon.turn(stream, text_bytes);
    client->wake();
  }
  std::size_t written() const { return expected(stream).size(); }
  bool has_all() { return listener.events[stream.name()] == expected(stream); }

  Daemon daemon;
  FakeStream& stream;
  Listener listener;
  std::shared_ptr<InProcessClient> client;
};

}  // namespace

TEST_CASE("without a delay events are delivered with the batch that appended them") {
  Delivered delivery({});
  delivery.turn();
  CHECK(delivery.has_all());
}

TEST_CASE("with a delay the events of that time are delivered together") {
  Delivered delivery({.delay = std::chrono::milliseconds(20)});
  delivery.turn();
  CHECK(delivery.listener.count == 0);
  delivery.turn();
  CHECK(delivery.listener.count == 0);
  delivery.daemon.io.restart();
  CHECK(test::run_until(delivery.daemon.io, [&] { return delivery.listener.count > 0; }));
  CHECK(delivery.has_all());
  delivery.turn();  // the delay begins again
  CHECK_FALSE(delivery.has_all());
  delivery.daemon.io.restart();
  CHECK(test::run_until(delivery.daemon.io, [&] { return delivery.has_all(); }));
}

TEST_CASE("a flush does not wait for the delay") {
  Delivered delivery({.delay = never});
  delivery.turn();
  delivery.daemon.settle();
  CHECK(delivery.listener.count == 0);
  delivery.client->flush();
  CHECK(delivery.has_all());
}

TEST_CASE("a flush delivers no more than the listener has room for") {
  Delivered delivery({.delay = never});
  delivery.turn();
  delivery.listener.room = false;
  delivery.client->flush();
  CHECK(delivery.listener.count == 0);
  delivery.listener.room = true;
  delivery.client->resume();
  CHECK(delivery.has_all());
}

TEST_CASE("the delay ends when too many frames wait") {
  Delivered delivery({.delay = never, .behind_max = 20});
  delivery.turn();
  delivery.daemon.settle();
  REQUIRE(delivery.written() < 20);
  CHECK(delivery.listener.count == 0);
  while (delivery.written() <= 20) delivery.turn();
  CHECK(delivery.listener.count == 0);  // not before the other clients
  delivery.daemon.settle();
  CHECK(delivery.has_all());
}

TEST_CASE("a turn of the loop delivers a bounded number of frames, and other handlers run in between") {
  Delivered delivery({.delay = never, .turn_frames_max = 5});
  for (int n = 0; n < 10; ++n) delivery.turn();
  delivery.client->resume();
  CHECK(delivery.listener.count == 5);
  std::vector<std::size_t> seen;  // by a handler that is posted after each slice
  std::function<void()> other = [&] {
    seen.push_back(delivery.listener.count);
    if (!delivery.has_all()) boost::asio::post(delivery.daemon.io, other);
  };
  boost::asio::post(delivery.daemon.io, other);
  delivery.daemon.settle();
  CHECK(delivery.has_all());
  REQUIRE(seen.size() >= delivery.written() / 5 - 1);
  for (std::size_t n = 1; n < seen.size(); ++n) CHECK(seen[n] - seen[n - 1] <= 5);
}

TEST_CASE("a turn of the loop delivers a bounded number of bytes") {
  constexpr std::size_t text_bytes = 2000, turn_bytes = 5000;
  Delivered delivery({.delay = never, .turn_bytes_max = turn_bytes});
  for (int n = 0; n < 10; ++n) delivery.turn(text_bytes);
  std::size_t before = delivery.listener.bytes;
  delivery.client->resume();
  for (int turns = 0; !delivery.has_all(); ++turns) {
    REQUIRE(turns < 1000);
    CHECK(delivery.listener.bytes > before);
    CHECK(delivery.listener.bytes - before <= turn_bytes + text_bytes + 1000);  // the last frame exceeds it
    before = delivery.listener.bytes;
    delivery.daemon.io.restart();
    delivery.daemon.io.poll_one();
  }
}

TEST_CASE("what the log evicted before it was delivered is read from the file, each event once") {
  Delivered delivery({.delay = never, .behind_max = SIZE_MAX, .turn_frames_max = 50});
  LiveLog& log = delivery.daemon.context.logs.of(Audience::full).log;
  const auto first = log.first();
  delivery.turn();
  delivery.client->flush();
  const std::size_t before = delivery.listener.count;
  CHECK(before == delivery.written());
  while (log.first() == first) delivery.turn(20'000);
  for (int n = 0; n < 5; ++n) delivery.turn();
  delivery.daemon.settle();
  CHECK(delivery.listener.count == before);
  delivery.client->resume();
  for (int quiet = 0; quiet < 1000 && !delivery.has_all(); ++quiet) delivery.daemon.settle();
  CHECK(delivery.has_all());
}

TEST_CASE("nothing is delivered after the client has left, and its delay ends") {
  Delivered delivery({.delay = never});
  delivery.turn();
  delivery.client->leave();
  delivery.client->flush();
  delivery.daemon.io.restart();
  delivery.daemon.io.run();  // returns: no timer is left
  CHECK(delivery.listener.count == 0);
}

}  // namespace in_process_client_test
