#include "common/client.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "common/http.hpp"
#include "unit/common/fake_daemon.hpp"

using namespace earshot::common;
using namespace earshot::common::test;

namespace {

Endpoint endpoint_of(const FakeDaemon& daemon) { return std::get<Endpoint>(parse_endpoint(daemon.url())); }

DaemonAddress address_of(const Endpoint& endpoint) {
  DaemonAddress address;
  address.endpoint = endpoint;
  address.token = fake_token;
  address.token_path = "/s/token";
  address.address_source = "--connect";
  return address;
}

std::atomic<std::size_t> idle_calls = 0;  // of the run that began last

// Runs once and keeps the received frames.
struct Run {
  std::vector<std::string> frames;
  ConnectionOutcome outcome;

  Run(const Endpoint& endpoint, std::size_t enough) {
    Client client;
    Handlers handlers;
    idle_calls = 0;
    handlers.on_open = [&] {
      client.send("first");
      client.send("second");
    };
    handlers.on_frame = [&](std::string_view json) {
      frames.emplace_back(json);
      return frames.size() < enough;
    };
    handlers.on_idle = [] { ++idle_calls; };
    outcome = client.run(address_of(endpoint), handlers);
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
    for (int i = 0; i < 6000 && idle_calls == 0; ++i)  // nothing has arrived yet
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
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
  CHECK(idle_calls.load() > 0);
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
  const std::string text = format_connect_error({{run.outcome}}, {address_of(endpoint_of(daemon))});
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
  const std::string text = format_connect_error({{run.outcome}}, {address_of(endpoint)});
  CHECK(text.find(endpoint.url()) != text.npos);
  CHECK(text.find("earshotd") != text.npos);
}

TEST_CASE("a server without HTTP is refused permanently") {
  FakeDaemon daemon({[](Peer& peer) {
    peer.raw("220 mail.example ESMTP\r\n");
    peer.receive();
  }});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.end_reason == EndReason::unproven);
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
  CHECK(format_connect_error({{bad.outcome}}, {address_of(endpoint_of(daemon))}).find('\x1b') ==
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

TEST_CASE("SIGHUP is handled as wished, and an interrupted client can be used again") {
  Client client;
  int hangups = 0;
  client.handle_hangup([&] {
    ++hangups;
    client.interrupt();
  });
  ::kill(::getpid(), SIGHUP);
  CHECK(client.pause(60'000));
  CHECK(hangups == 1);
  CHECK(client.pause(1));
  FakeDaemon daemon({[&](Peer& peer) {
                       peer.upgrade();
                       ::kill(::getpid(), SIGHUP);
                       peer.finish();
                     },
                     [&](Peer& peer) {
                       peer.upgrade();
                       peer.send("{}");
                       peer.finish();
                     }});
  std::size_t frames = 0;
  Handlers handlers;
  handlers.on_frame = [&](std::string_view) {
    ++frames;
    return false;
  };
  CHECK(client.run(address_of(endpoint_of(daemon)), handlers).end_reason == EndReason::stopped);
  CHECK(hangups == 2);
  CHECK(frames == 0);
  client.run(address_of(endpoint_of(daemon)), handlers);
  CHECK(frames == 1);
  daemon.join();
}

TEST_CASE("a hangup at the end of a pause does not end what follows") {
  Client client;
  int hangups = 0;
  client.handle_hangup([&] {
    ++hangups;
    client.interrupt();
  });
  FakeDaemon daemon({[&](Peer& peer) {
    peer.upgrade();
    peer.send("{}");
    peer.finish();
  }});
  std::size_t frames = 0;
  Handlers handlers;
  handlers.on_frame = [&](std::string_view) {
    ++frames;
    return false;
  };
  ::kill(::getpid(), SIGHUP);
  CHECK(client.pause(0));  // its time is over before the signal is handled
  REQUIRE(hangups == 1);
  client.run(address_of(endpoint_of(daemon)), handlers);
  CHECK(frames == 1);
  daemon.join();
}

TEST_CASE("a signal ends a pause and prevents further connections") {
  Client client;
  CHECK(client.pause(1));
  ::kill(::getpid(), SIGINT);
  CHECK_FALSE(client.pause(60'000));
  CHECK(client.run({}, {}).end_reason == EndReason::stopped);
}

namespace {

// What a server may answer instead of the proof. All that the client sent to it is collected.
using Answer = std::function<void(Peer& peer, const std::string& nonce)>;
const std::vector<std::pair<const char*, Answer>> impostors = {
    {"an older daemon", [](Peer& peer, const std::string&) { peer.answer_proof("404 Not Found", "{}"); }},
    {"nothing", [](Peer& peer, const std::string&) { peer.answer_proof("200 OK", ""); }},
    {"the proof of another token",
     [](Peer& peer, const std::string&) { peer.answer_proof("200 OK", std::string(64, '0')); }},
    {"a proof that was passed on from another port",
     [](Peer& peer, const std::string& nonce) {
       peer.answer_proof("200 OK", Peer::proof(nonce, "127.0.0.1:1"));
     }},
    {"the proof of another nonce",
     [](Peer& peer, const std::string&) {
       peer.answer_proof("200 OK", Peer::proof(std::string(32, '0'), peer.authority()));
     }},
    {"the proof and more",
     [](Peer& peer, const std::string& nonce) {
       peer.answer_proof("200 OK", Peer::proof(nonce, peer.authority()) + "\n\n");
     }},
    {"a proof of unlimited size",
     [](Peer& peer, const std::string&) { peer.answer_proof("200 OK", std::string(1 << 20, 'x')); }},
    {"an error with the proof",
     [](Peer& peer, const std::string& nonce) {
       peer.answer_proof("403 Forbidden", Peer::proof(nonce, peer.authority()));
     }},
    {"another protocol", [](Peer& peer, const std::string&) { peer.raw("SSH-2.0-OpenSSH_9\r\n\r\n"); }},
};

// The head of the first request and all that follows the answer.
std::function<void(Peer&)> collecting(const Answer& answer, std::string& sent) {
  return [&](Peer& peer) {
    sent = peer.head();
    answer(peer, Peer::nonce_of(sent));
    sent += peer.rest();
  };
}

}  // namespace

TEST_CASE("fault 87: the token is sent only to a server that proves that it has it") {
  for (const auto& [name, answer] : impostors) {
    CAPTURE(name);
    std::string to_client, to_http;
    FakeDaemon daemon({collecting(answer, to_client), collecting(answer, to_http)});
    const Run run(endpoint_of(daemon), 1);
    const HttpResponse response = send_request(address_of(endpoint_of(daemon)), {.target = "/v1/health"});
    CHECK(daemon.join().empty());
    CHECK(run.frames.empty());
    CHECK(run.outcome.end_reason == EndReason::unproven);
    CHECK(is_permanent(run.outcome));
    CHECK(response.end_reason == EndReason::unproven);
    CHECK_FALSE(response.ok());
    for (const std::string& sent : {to_client, to_http}) {
      CHECK(Peer::nonce_of(sent).size() == 32);
      CHECK(sent.find("t0ken") == sent.npos);
      CHECK(sent.find("/v1/ws") == sent.npos);
      CHECK(sent.find("/v1/health") == sent.npos);
    }
    CHECK(Peer::nonce_of(to_client) != Peer::nonce_of(to_http));
    const std::string text = format_connect_error({{run.outcome}}, {address_of(endpoint_of(daemon))});
    CHECK(text.starts_with("the token was not sent to the server at " + daemon.url()));
    CHECK(text.find("t0ken") == text.npos);
  }
}

TEST_CASE("fault 87: the connection that was proven is not replaced by another") {
  const Answer prove_and_close = [](Peer& peer, const std::string& nonce) {
    peer.raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 64\r\n\r\n" +
             Peer::proof(nonce, peer.authority()));
  };
  std::string first, second, none;
  FakeDaemon daemon({collecting(prove_and_close, first)});
  const Run run(endpoint_of(daemon), 1);
  CHECK(run.outcome.end_reason == EndReason::closed);
  CHECK(first.find("t0ken") == first.npos);
  // The connection ends with the proof; a second one would reach the next script.
  FakeDaemon other({[&](Peer& peer) {
                      second = peer.head();
                      prove_and_close(peer, Peer::nonce_of(second));
                    },
                    [&](Peer& peer) { none = peer.head(); }});
  const HttpResponse response = send_request(address_of(endpoint_of(other)), {.target = "/v1/health"});
  CHECK_FALSE(response.ok());
  CHECK(response.error == "the connection was closed after the proof");
  {  // the connection for which the second script waits
    DaemonAddress anonymous = address_of(endpoint_of(other));
    anonymous.token.clear();
    send_request(anonymous, {.target = "/last"});
  }
  CHECK(none.find("/last") != none.npos);
}

TEST_CASE("fault 87: an address whose daemon has ended is not used") {
  DaemonAddress address = address_of(endpoint_of(FakeDaemon({})));
  address.unusable = "the daemon that wrote it has ended";
  CHECK(Client().run(address, {}).end_reason == EndReason::unreachable);
  CHECK(send_request(address, {}).unreachable());
  CHECK(send_request(address, {}).error == address.unusable);
}
