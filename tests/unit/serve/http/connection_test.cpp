// Responses that are made in slices, over loopback sockets.
#include "serve/http/connection.hpp"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>

#include "unit/serve/server_fixture.hpp"

namespace connection_test {

using namespace earshot;
using namespace earshot::serve;

namespace {

constexpr int many = 20'000;

/// A server with sessions of running processes: a slice is not enough to visit them.
struct ManySessions : test::ServerFixture {
  ManySessions() {
    status::Status status;
    status.source = "registry";
    status.state = "working";
    for (int i = 0; i < many; ++i) server.status_changed("m" + std::to_string(i), status);
    until([this] { return io.poll() == 0; });
  }
  bool is_scanning() const { return server.context().scans->pending() > 0; }
  std::uint64_t answers(unsigned status) const {
    const auto& all = server.context().counters.answers;
    return all.contains(status) ? all.at(status) : 0;
  }
};

struct Requester {
  Requester(ManySessions& fixture, const std::string& target) : socket(fixture.io) {
    socket.connect({boost::asio::ip::address_v4::loopback(), fixture.port()});
    const std::string request = "GET " + target +
                                " HTTP/1.1\r\nHost: localhost:" + std::to_string(fixture.port()) +
                                "\r\nAuthorization: Bearer " + test::token + "\r\n\r\n";
    boost::asio::write(socket, boost::asio::buffer(request));
  }
  boost::asio::ip::tcp::socket socket;
};

}  // namespace

TEST_CASE("fault 141: other clients are answered while a page about many sessions is made") {
  const std::string path = GENERATE("/metrics", "/v1/health", "/v1/sessions?project=none");
  CAPTURE(path);
  ManySessions fixture;
  Requester page(fixture, path);
  REQUIRE(fixture.until([&] { return fixture.is_scanning(); }));
  Requester other(fixture, "/healthz");
  REQUIRE(fixture.until([&] { return fixture.answers(200) == 1; }));
  REQUIRE(fixture.is_scanning());
  REQUIRE(fixture.until([&] { return fixture.answers(200) == 2; }));
}

TEST_CASE("fault 141: a client that leaves while its page is made cancels it") {
  ManySessions fixture;
  {
    Requester page(fixture, "/metrics");
    REQUIRE(fixture.until([&] { return fixture.is_scanning(); }));
  }
  REQUIRE(fixture.until([&] { return !fixture.is_scanning() && fixture.server.connections() == 0; }));
  REQUIRE(fixture.answers(200) == 0);
}

}  // namespace connection_test
