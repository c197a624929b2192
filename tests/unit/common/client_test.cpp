#include "common/client.hpp"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "common/connect_error.hpp"
#include "common/fake_daemon.hpp"

using namespace earshot::common;
using namespace earshot::common::test;

namespace {

Endpoint endpoint_of(const FakeDaemon& daemon) { return std::get<Endpoint>(parse_endpoint(daemon.url())); }

Doors doors_of(const Endpoint& endpoint) {
  DaemonAddress address;
  address.endpoint = endpoint;
  address.token = "t0ken";
  address.token_from = "/s/token";
  address.address_from = "--connect";
  return {address};
}

// Runs once and keeps what came.
struct Run {
  std::vector<std::string> messages;
  std::size_t quiet = 0;
  Outcome outcome;

  Run(const Endpoint& endpoint, std::size_t enough) {
    Client client;
    Handlers handlers;
    handlers.on_open = [&] {
      client.send("first");
      client.send("second");
    };
    handlers.on_message = [&](std::string_view json) {
      messages.emplace_back(json);
      return messages.size() < enough;
    };
    handlers.on_quiet = [&] { ++quiet; };
    outcome = client.run(endpoint, "t0ken", handlers);
  }
};

}  // namespace

TEST_CASE("the client shows its token, speaks the subprotocol and says goodbye") {
  std::string request, first, second;
  int goodbye = 0;
  FakeDaemon daemon({[&](Peer& peer) {
    request = peer.upgrade();
    first = peer.receive(1).payload;
    second = peer.receive(1).payload;
    peer.send("{\"n\":1}");
    peer.send("{\"n\":2}");
    const Peer::Frame close = peer.receive(8);
    goodbye = close.payload.size() < 2 ? 0
                                       : static_cast<unsigned char>(close.payload[0]) << 8 |
                                             static_cast<unsigned char>(close.payload[1]);
    peer.close(goodbye, "");
  }});
  const Run run(endpoint_of(daemon), 2);
  CHECK(daemon.join().empty());
  CHECK(request.starts_with("GET /v1/ws HTTP/1.1\r\n"));
  CHECK(request.find("Authorization: Bearer t0ken\r\n") != request.npos);
  CHECK(request.find("Sec-WebSocket-Protocol: earshot.v1\r\n") != request.npos);
  CHECK(request.find("Host: 127.0.0.1:" + endpoint_of(daemon).port + "\r\n") != request.npos);
  CHECK(first == "first");
  CHECK(second == "second");
  CHECK(run.messages == std::vector<std::string>{"{\"n\":1}", "{\"n\":2}"});
  CHECK(run.quiet > 0);
  CHECK(goodbye == 1000);
  CHECK(run.outcome.ending == Ending::stopped);
}

TEST_CASE("a message of a megabyte comes whole, whatever pieces it came in") {
  const std::string large = "{\"text\":\"" + std::string(1 << 20, 'x') + "\"}";
  FakeDaemon daemon({[&](Peer& peer) {
    peer.upgrade();
    peer.send(large);
    peer.receive(8);
  }});
  const Run run(endpoint_of(daemon), 1);
  REQUIRE(run.messages.size() == 1);
  CHECK((run.messages[0] == large));
}

TEST_CASE("pings are answered while nothing else happens") {
  std::string pong;
  FakeDaemon daemon({[&](Peer& peer) {
    peer.upgrade();
    peer.ping();
    pong = peer.receive(10).payload;
    peer.send("{}");
    peer.receive(8);
  }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(daemon.join().empty());
  CHECK(pong == "are you there");
}

TEST_CASE("a refused token is final and explained") {
  FakeDaemon daemon({[](Peer& peer) { peer.refuse("401 Unauthorized"); }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.ending == Ending::refused);
  CHECK(run.outcome.http_status == 401);
  CHECK(is_final(run.outcome));
  const std::string text = explain({{run.outcome}}, doors_of(endpoint_of(daemon)));
  CHECK(text.find("refused the token") != text.npos);
  CHECK(text.find("/s/token") != text.npos);
  CHECK(text.find("t0ken") == text.npos);
}

TEST_CASE("a full daemon is worth another try") {
  FakeDaemon daemon({[](Peer& peer) { peer.refuse("503 Service Unavailable"); }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.http_status == 503);
  CHECK_FALSE(is_final(run.outcome));
}

TEST_CASE("nobody there is said with what to do") {
  FakeDaemon daemon({});
  daemon.join();
  const Endpoint endpoint = endpoint_of(daemon);
  const Run run(endpoint, 1);
  CHECK(run.outcome.ending == Ending::unreachable);
  const std::string text = explain({{run.outcome}}, doors_of(endpoint));
  CHECK(text.find(endpoint.url()) != text.npos);
  CHECK(text.find("earshotd") != text.npos);
}

TEST_CASE("what speaks no WebSocket is no daemon") {
  FakeDaemon daemon({[](Peer& peer) {
    peer.raw("220 mail.example ESMTP\r\n");
    peer.receive();
  }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.ending == Ending::refused);
  CHECK(is_final(run.outcome));
}

TEST_CASE("a close code tells whether to come back") {
  FakeDaemon daemon({
      [](Peer& peer) {
        peer.upgrade();
        peer.close(1001, "stopping");
        peer.receive(8);
      },
      [](Peer& peer) {
        peer.upgrade();
        peer.close(4501, "bad\x1b token");
        peer.receive(8);
      },
      [](Peer& peer) { peer.upgrade(); },
  });
  const Run stopping(endpoint_of(daemon), 1);
  CHECK(stopping.outcome.ending == Ending::closed);
  CHECK(stopping.outcome.close_code == 1001);
  CHECK_FALSE(is_final(stopping.outcome));
  const Run bad(endpoint_of(daemon), 1);
  CHECK(bad.outcome.close_code == 4501);
  CHECK(is_final(bad.outcome));
  CHECK(explain({{bad.outcome}}, doors_of(endpoint_of(daemon))).find('\x1b') == std::string::npos);
  const Run dropped(endpoint_of(daemon), 1);
  CHECK(dropped.outcome.ending == Ending::closed);
  CHECK_FALSE(is_final(dropped.outcome));
}

TEST_CASE("a signal ends the wait, politely") {
  int opcode = 0;
  FakeDaemon daemon({[&](Peer& peer) {
    peer.upgrade();
    peer.receive(1);
    ::kill(::getpid(), SIGTERM);
    opcode = peer.receive(8).opcode;
    peer.close(1000, "");
  }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.ending == Ending::stopped);
  CHECK(daemon.join().empty());
  CHECK(opcode == 8);
}

TEST_CASE("a signal ends a pause, and nothing is begun after it") {
  Client client;
  CHECK(client.pause(1));
  ::kill(::getpid(), SIGINT);
  CHECK_FALSE(client.pause(60'000));
  CHECK(client.run({}, "", {}).ending == Ending::stopped);
}
