#include "common/client.hpp"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "unit/common/fake_daemon.hpp"

using namespace earshot::common;
using namespace earshot::common::test;

namespace {

Endpoint endpoint_of(const FakeDaemon& daemon) { return std::get<Endpoint>(parse_endpoint(daemon.url())); }

DaemonAddresses addresses_of(const Endpoint& endpoint) {
  DaemonAddress address;
  address.endpoint = endpoint;
  address.token = "t0ken";
  address.token_path = "/s/token";
  address.address_source = "--connect";
  return {address};
}

// Runs once and keeps the received frames.
struct Run {
  std::vector<std::string> frames;
  std::size_t idle_calls = 0;
  ConnectionOutcome outcome;

  Run(const Endpoint& endpoint, std::size_t enough) {
    Client client;
    Handlers handlers;
    handlers.on_open = [&] {
      client.send("first");
      client.send("second");
    };
    handlers.on_frame = [&](std::string_view json) {
      frames.emplace_back(json);
      return frames.size() < enough;
    };
    handlers.on_idle = [&] { ++idle_calls; };
    outcome = client.run(endpoint, "t0ken", handlers);
  }
};

}  // namespace

TEST_CASE("the client sends its token, requests the subprotocol and closes the connection") {
  std::string request, first, second;
  int close_code = 0;
  FakeDaemon daemon({[&](Peer& peer) {
    request = peer.upgrade();
    first = peer.receive(1).payload;
    second = peer.receive(1).payload;
    peer.send("{\"n\":1}");
    peer.send("{\"n\":2}");
    const Peer::Frame close = peer.receive(8);
    close_code = close.payload.size() < 2 ? 0
                                          : static_cast<unsigned char>(close.payload[0]) << 8 |
                                                static_cast<unsigned char>(close.payload[1]);
    peer.close(close_code, "");
  }});
  const Run run(endpoint_of(daemon), 2);
  CHECK(daemon.join().empty());
  CHECK(request.starts_with("GET /v1/ws HTTP/1.1\r\n"));
  CHECK(request.find("Authorization: Bearer t0ken\r\n") != request.npos);
  CHECK(request.find("Sec-WebSocket-Protocol: earshot.v1\r\n") != request.npos);
  CHECK(request.find("Host: 127.0.0.1:" + endpoint_of(daemon).port + "\r\n") != request.npos);
  CHECK(first == "first");
  CHECK(second == "second");
  CHECK(run.frames == std::vector<std::string>{"{\"n\":1}", "{\"n\":2}"});
  CHECK(run.idle_calls > 0);
  CHECK(close_code == 1000);
  CHECK(run.outcome.end_reason == EndReason::stopped);
}

TEST_CASE("a frame of a megabyte is received whole") {
  const std::string large = "{\"text\":\"" + std::string(1 << 20, 'x') + "\"}";
  FakeDaemon daemon({[&](Peer& peer) {
    peer.upgrade();
    peer.send(large);
    peer.receive(8);
  }});
  const Run run(endpoint_of(daemon), 1);
  REQUIRE(run.frames.size() == 1);
  CHECK((run.frames[0] == large));
}

TEST_CASE("pings are answered on an idle connection") {
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

TEST_CASE("a rejected token is permanent and explained") {
  FakeDaemon daemon({[](Peer& peer) { peer.refuse("401 Unauthorized"); }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.end_reason == EndReason::refused);
  CHECK(run.outcome.http_status == 401);
  CHECK(is_permanent(run.outcome));
  const std::string text = format_connect_error({{run.outcome}}, addresses_of(endpoint_of(daemon)));
  CHECK(text.find("the token was rejected") != text.npos);
  CHECK(text.find("/s/token") != text.npos);
  CHECK(text.find("t0ken") == text.npos);
}

TEST_CASE("a full daemon is not a permanent failure") {
  FakeDaemon daemon({[](Peer& peer) { peer.refuse("503 Service Unavailable"); }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.http_status == 503);
  CHECK_FALSE(is_permanent(run.outcome));
}

TEST_CASE("an unreachable daemon is reported with the command that starts it") {
  FakeDaemon daemon({});
  daemon.join();
  const Endpoint endpoint = endpoint_of(daemon);
  const Run run(endpoint, 1);
  CHECK(run.outcome.end_reason == EndReason::unreachable);
  const std::string text = format_connect_error({{run.outcome}}, addresses_of(endpoint));
  CHECK(text.find(endpoint.url()) != text.npos);
  CHECK(text.find("earshotd") != text.npos);
}

TEST_CASE("a server without WebSocket is refused permanently") {
  FakeDaemon daemon({[](Peer& peer) {
    peer.raw("220 mail.example ESMTP\r\n");
    peer.receive();
  }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.end_reason == EndReason::refused);
  CHECK(is_permanent(run.outcome));
}

TEST_CASE("the close code decides whether to reconnect") {
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
  CHECK(stopping.outcome.end_reason == EndReason::closed);
  CHECK(stopping.outcome.close_code == 1001);
  CHECK_FALSE(is_permanent(stopping.outcome));
  const Run bad(endpoint_of(daemon), 1);
  CHECK(bad.outcome.close_code == 4501);
  CHECK(is_permanent(bad.outcome));
  CHECK(format_connect_error({{bad.outcome}}, addresses_of(endpoint_of(daemon))).find('\x1b') ==
        std::string::npos);
  const Run dropped(endpoint_of(daemon), 1);
  CHECK(dropped.outcome.end_reason == EndReason::closed);
  CHECK_FALSE(is_permanent(dropped.outcome));
}

TEST_CASE("a signal closes the connection with a closing handshake") {
  int opcode = 0;
  FakeDaemon daemon({[&](Peer& peer) {
    peer.upgrade();
    peer.receive(1);
    ::kill(::getpid(), SIGTERM);
    opcode = peer.receive(8).opcode;
    peer.close(1000, "");
  }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.end_reason == EndReason::stopped);
  CHECK(daemon.join().empty());
  CHECK(opcode == 8);
}

TEST_CASE("a signal ends a pause and prevents further connections") {
  Client client;
  CHECK(client.pause(1));
  ::kill(::getpid(), SIGINT);
  CHECK_FALSE(client.pause(60'000));
  CHECK(client.run({}, "", {}).end_reason == EndReason::stopped);
}
