#include "common/http.hpp"

#include <catch2/catch.hpp>

#include "common/captured.hpp"
#include "common/fake_daemon.hpp"

using namespace earshot::common;
using namespace earshot::common::test;

namespace {

DaemonAddress socket_door(const std::string& path) {
  DaemonAddress door;
  door.endpoint.socket = path;
  return door;
}

DaemonAddress tcp_door(const FakeDaemon& daemon) {
  DaemonAddress door;
  door.endpoint = std::get<Endpoint>(parse_endpoint(daemon.url()));
  door.token = "t0ken";
  return door;
}

}  // namespace

TEST_CASE("an answer is taken apart by its length, by its chunks or by its end") {
  CHECK(parse_answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}xx").body == "{}");
  CHECK(parse_answer("HTTP/1.0 200 OK\r\n\r\nall of it").body == "all of it");
  CHECK(parse_answer(
            "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING:  chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n")
            .body == "abcd");
  CHECK(parse_answer("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").status == 404);
}

TEST_CASE("an answer that is cut off or none at all is told as such") {
  for (const char* bytes : {"", "HTTP/1.1 200 OK\r\n", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 ok\r\n\r\n",
                            "HTTP/1.1 -12\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    CAPTURE(bytes);
    CHECK(parse_answer(bytes).status == 0);
    CHECK_FALSE(parse_answer(bytes).trouble.empty());
    CHECK_FALSE(parse_answer(bytes).trouble.empty());
  }
}

TEST_CASE("by the Unix socket no token goes out") {
  const TemporaryDirectory directory;
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("200 OK", R"({"a":1})"); }},
                    directory.path("sock"));
  const HttpAnswer answer =
      ask(socket_door(directory.path("sock")), {.method = "POST", .target = "/v1/codes"});
  CHECK(daemon.join().empty());
  CHECK(answer.ok());
  CHECK(answer.body == R"({"a":1})");
  CHECK(request.starts_with("POST /v1/codes HTTP/1.1\r\nHost: localhost\r\n"));
  CHECK(request.find("Content-Length: 0\r\n") != request.npos);
  CHECK(request.find("Authorization") == request.npos);
}

TEST_CASE("by TCP the token goes out, and the body with it") {
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("201 Created", "{}"); }});
  const HttpAnswer answer = ask(tcp_door(daemon), {.method = "POST", .target = "/x", .body = R"({"b":2})"});
  CHECK(daemon.join().empty());
  CHECK(answer.status == 201);
  CHECK(request.find("Authorization: Bearer t0ken\r\n") != request.npos);
  CHECK(request.ends_with("\r\n\r\n{\"b\":2}"));
}

TEST_CASE("the next door is tried when nobody is at the first") {
  const TemporaryDirectory directory;
  FakeDaemon daemon({[](Peer& peer) { peer.answer("200 OK", "{}"); }});
  const Doors doors{socket_door(directory.path("nobody")), tcp_door(daemon)};
  const HttpVisit asked = ask(doors, {});
  CHECK(asked.answer.ok());
  CHECK(asked.visit.outcomes.size() == 2);
  CHECK(asked.visit.door(doors).endpoint.url() == daemon.url());
}

TEST_CASE("an answer is not read without end") {
  FakeDaemon daemon({[](Peer& peer) {
    peer.request();
    peer.raw("HTTP/1.1 200 OK\r\n\r\n" + std::string(http_answer_bytes_max + (1 << 20), 'x'));
  }});
  const HttpAnswer answer = ask(tcp_door(daemon), {});
  CHECK(answer.status == 0);
  CHECK(answer.trouble.find("longer than") != std::string::npos);
}
