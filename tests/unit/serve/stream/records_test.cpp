#include "serve/stream/records.hpp"

#include <catch2/catch.hpp>

#include "unit/serve/stream/subscriber_fixture.hpp"

namespace records_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

namespace {

/// A daemon with one stream, whose last record has several parts.
struct Reads {
  Reads() : stream(daemon.stream("one")) {
    daemon.context.limits.record_part_bytes = 4 << 10;
    daemon.turn(stream, 10);
    stream.write(test::prompt(500, std::string(20 << 10, 'r')), &daemon);
  }
  message::Read request(const std::string& id) const {
    return {id, stream.name(), stream.transcript()->end()};
  }
  Client& client() {
    clients.push_back(std::make_unique<Client>(daemon));
    return *clients.back();
  }
  /// A client that requests a record and reads none of its parts.
  Client& unread() {
    Client& made = client();
    made.subscriber->read(request("unread"));
    daemon.settle();
    made.take(1);
    return made;
  }
  static std::string text_of(Client& client, const std::string& id) {
    client.look();
    std::string text;
    for (const std::string& frame : client.frames)
      if (at(frame, "/type") == "\"record\"" && at(frame, "/id") == "\"" + id + "\"")
        text += unquoted(at(frame, "/data"));
    return text;
  }

  Daemon daemon;
  FakeStream& stream;
  std::vector<std::unique_ptr<Client>> clients;
};

}  // namespace

TEST_CASE("fault 92: clients that do not read their records do not delay the reads of others") {
  Reads reads;
  reads.daemon.records.patience = std::chrono::milliseconds(0);
  const std::size_t held_max = reads.daemon.context.limits.reads;
  for (std::size_t i = 0; i < held_max; ++i) reads.unread();
  REQUIRE(reads.daemon.records.held() == held_max);
  Client& awake = reads.client();
  awake.subscriber->read(reads.request("r"));
  const auto answered = [&] {
    awake.subscriber->tick(Clock::now());
    awake.take_all();
    return Reads::text_of(awake, "r").size() > 20'000;
  };
  REQUIRE(test::run_until(reads.daemon.io, answered));
  REQUIRE(reads.daemon.records.held() <= held_max);
  // A client whose record was dropped receives all parts when it reads again.
  for (const auto& client : reads.clients) {
    if (client.get() == &awake) continue;
    const auto complete = [&] {
      client->subscriber->tick(Clock::now());
      client->take_all();
      return Reads::text_of(*client, "unread") == Reads::text_of(awake, "r");
    };
    REQUIRE(test::run_until(reads.daemon.io, complete));
  }
  REQUIRE(reads.daemon.records.held() == 0);
}

TEST_CASE("fault 92: queued reads of unknown streams are answered without recursion") {
  Reads reads;
  for (std::size_t i = 0; i < reads.daemon.context.limits.reads; ++i) reads.unread();
  constexpr std::size_t clients_max = 300;
  std::vector<Client*> waiting;
  for (std::size_t i = 0; i < clients_max; ++i) {
    waiting.push_back(&reads.client());
    for (std::size_t n = 0; n < reads.daemon.context.limits.reads_waiting; ++n) {
      message::Read asked = reads.request("r");
      asked.stream = "claude/p/unknown";
      waiting.back()->subscriber->read(asked);
    }
  }
  // A record is finished: all requests are refused in one call, at a depth that does not depend on their
  // number.
  reads.clients.front()->take_all();
  for (Client* client : waiting) {
    client->take_all();
    REQUIRE(client->count("error") == reads.daemon.context.limits.reads_waiting);
  }
}

TEST_CASE("a client has one record at a time, and clients take turns") {
  Reads reads;
  reads.daemon.context.limits.reads = 1;
  reads.daemon.records.patience = std::chrono::hours(1);
  Client &first = reads.client(), &second = reads.client();
  for (const std::string id : {"1", "2", "3"}) first.subscriber->read(reads.request(id));
  second.subscriber->read(reads.request("1"));
  std::vector<std::string> order;
  while (order.size() < 4) {
    for (Client* client : {&first, &second}) {
      client->take(1 << 30);
      client->look();
      for (const std::string& frame : std::exchange(client->frames, {}))
        if (at(frame, "/part") == at(frame, "/parts")) order.push_back(client == &first ? "first" : "second");
    }
    reads.daemon.settle();
  }
  REQUIRE(order == std::vector<std::string>{"first", "second", "first", "first"});
}

TEST_CASE("too many waiting reads are refused with busy") {
  Reads reads;
  reads.daemon.context.limits.reads_waiting = 2;
  Client& client = reads.client();
  for (const std::string id : {"1", "2", "3"}) client.subscriber->read(reads.request(id));
  client.take_all();
  REQUIRE(client.count("error") == 1);
  REQUIRE(Reads::text_of(client, "1") == Reads::text_of(client, "2"));
}

}  // namespace records_test
