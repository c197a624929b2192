#include "common/http.hpp"

#include <catch2/catch.hpp>

#include "unit/common/captured.hpp"
#include "unit/common/fake_daemon.hpp"

using namespace earshot::common;
using namespace earshot::common::test;

namespace {

DaemonAddress socket_address(const std::string& path) {
  DaemonAddress address;
  address.endpoint.socket = path;
  return address;
}

DaemonAddress tcp_address(const FakeDaemon& daemon) {
  DaemonAddress address;
  address.endpoint = std::get<Endpoint>(parse_endpoint(daemon.url()));
  address.token = fake_token;
  return address;
}

// The response to a daemon that sends these bytes and closes the connection.
HttpResponse response_to(const std::string& bytes) {
  FakeDaemon daemon({[&](Peer& peer) {
    peer.request();
    if (!bytes.empty()) peer.raw(bytes);
  }});
  HttpResponse response = send_request(tcp_address(daemon), {});
  daemon.join();
  return response;
}

}  // namespace

TEST_CASE("the body ends at its length, at the last chunk or at the end of the connection") {
  CHECK(response_to("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}xx").body == "{}");
  CHECK(response_to("HTTP/1.0 200 OK\r\n\r\nall of it").body == "all of it");
  CHECK(
      response_to("HTTP/1.1 200 OK\r\nTRANSFER-ENCODING:  chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\n\r\n")
          .body == "abcd");
  CHECK(response_to("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").status == 404);
}

TEST_CASE("a malformed or truncated response is an error") {
  for (const char* bytes : {"", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 ok\r\n\r\n", "HTTP/1.1 -12\r\n\r\n",
                            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    CAPTURE(bytes);
    const HttpResponse response = response_to(bytes);
    CHECK(response.status == 0);
    CHECK(response.body.empty());
    CHECK_FALSE(response.error.empty());
  }
}

TEST_CASE("no token is sent through the Unix socket") {
  const TemporaryDirectory directory;
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("200 OK", R"({"a":1})"); }},
                    directory.path("sock"));
  const HttpResponse response =
      send_request(socket_address(directory.path("sock")), {.method = "POST", .target = "/v1/codes"});
  CHECK(daemon.join().empty());
  CHECK(response.ok());
  CHECK(response.body == R"({"a":1})");
  CHECK(request.starts_with("POST /v1/codes HTTP/1.1\r\nHost: localhost\r\n"));
  CHECK(request.find("Content-Length: 0\r\n") != request.npos);
  CHECK(request.find("Authorization") == request.npos);
}

TEST_CASE("the token and the body are sent through TCP") {
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("201 Created", "{}"); }});
  const HttpResponse response =
      send_request(tcp_address(daemon), {.method = "POST", .target = "/x", .body = R"({"b":2})"});
  CHECK(daemon.join().empty());
  CHECK(response.status == 201);
  CHECK(request.find("Authorization: Bearer t0ken\r\n") != request.npos);
  CHECK(request.ends_with("\r\n\r\n{\"b\":2}"));
}

TEST_CASE("the next address is tried if the first is unreachable") {
  const TemporaryDirectory directory;
  FakeDaemon daemon({[](Peer& peer) { peer.answer("200 OK", "{}"); }});
  const DaemonAddresses addresses{socket_address(directory.path("missing")), tcp_address(daemon)};
  const HttpResult result = send_request(addresses, {});
  CHECK(result.response.ok());
  CHECK(result.connect.outcomes.size() == 2);
  CHECK(result.connect.address(addresses).endpoint.url() == daemon.url());
}

TEST_CASE("the size of a response is limited") {
  FakeDaemon daemon({[](Peer& peer) {
    peer.request();
    peer.raw("HTTP/1.1 200 OK\r\n\r\n" + std::string(http_response_bytes_max + (1 << 20), 'x'));
  }});
  const HttpResponse response = send_request(tcp_address(daemon), {});
  CHECK(response.status == 0);
  CHECK(response.error.find("longer than") != std::string::npos);
}

TEST_CASE("the address of a session's page, a name is never part of its structure") {
  CHECK(session_page("http://127.0.0.1:7717/", "6f0c", "dev7") ==
        "http://127.0.0.1:7717/?session=6f0c&host=dev7");
  CHECK(session_page("https://hub.test", "a/b?c#d&e f\n\"", "") ==
        "https://hub.test/?session=a%2Fb%3Fc%23d%26e%20f%0A%22");
  CHECK(session_page("https://hub.test/team/?x=1#code=2", "s", "\xc3\xbc") ==
        "https://hub.test/team/?session=s&host=%C3%BC");
  for (const char* url : {"", "javascript:alert(1)", "http://a b/", "file:///etc/passwd"})
    CHECK(session_page(url, "s", "h").empty());
  CHECK(query({{"a", ""}, {"b", "1"}}) == "?b=1");
}
