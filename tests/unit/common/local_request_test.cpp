#include "common/local_request.hpp"

#include <poll.h>

#include <catch2/catch.hpp>

#include "unit/common/captured.hpp"
#include "unit/common/fake_daemon.hpp"

using namespace earshot::common;
using namespace earshot::common::test;

namespace {

void finish(LocalRequest& request) {
  while (!request.is_done()) {
    pollfd polled{request.fd(), request.events(), 0};
    REQUIRE(::poll(&polled, 1, 60'000) == 1);
    request.advance();
  }
}

}  // namespace

TEST_CASE("a request over the socket has its response when the connection ends") {
  const TemporaryDirectory folder;
  std::string asked, posted;
  FakeDaemon daemon({[&](Peer& peer) {
                       asked = peer.head();
                       peer.raw("HTTP/1.0 200 OK\r\nA: b\r\n");
                       peer.raw("\r\none\ntwo");
                     },
                     [&](Peer& peer) { posted = peer.answer("404 Not Found", "{}"); }},
                    folder.path("sock"));
  LocalRequest get(folder.path("sock"), "/v1/x?y=z");
  REQUIRE(get.is_connected());
  finish(get);
  CHECK(get.status() == 200);
  CHECK(get.body() == "one\ntwo");
  const std::string body(200 << 10, 'x');
  LocalRequest post(folder.path("sock"), "/v1/p", body);
  finish(post);
  CHECK(post.status() == 404);
  CHECK(daemon.join().empty());
  CHECK(asked.starts_with("GET /v1/x?y=z HTTP/1.0\r\nHost: localhost\r\n"));
  CHECK(posted.ends_with("\r\n\r\n" + body));
}

TEST_CASE("without a listener a request is done at once") {
  const TemporaryDirectory folder;
  for (const std::string& path : {folder.path("none"), folder.put("file", ""), std::string(300, 'x')}) {
    const LocalRequest request(path, "/");
    CHECK_FALSE(request.is_connected());
    CHECK(request.is_done());
    CHECK(request.status() == 0);
    CHECK(request.body().empty());
  }
}
