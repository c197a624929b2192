#include <catch2/catch.hpp>

#include "unit/cli/fixture.hpp"

namespace open_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

TEST_CASE("open prints an address with a code that it requested through the socket") {
  const State state;
  std::string request;
  FakeDaemon daemon(
      {[&](Peer& peer) {
        request =
            peer.answer("200 OK", R"({"code":"ab","expires_in":60,"url":"http://127.0.0.1:7717/#code=ab"})");
      }},
      state.socket());
  const Printed printed = run(open_command, {.daemon = state.options(), .print = true});
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out == "http://127.0.0.1:7717/#code=ab\n");
  CHECK(request.starts_with("POST /v1/codes HTTP/1.1\r\n"));
  CHECK(request.find("Authorization") == request.npos);
}

TEST_CASE("open accepts only web addresses") {
  for (const char* url :
       {"", "file:///etc/passwd", "javascript:alert(1)", "http://x/\\u001b[2J", "http://x/ --evil"}) {
    const State state;
    FakeDaemon daemon({[&](Peer& peer) { peer.answer("200 OK", R"({"url":")" + std::string(url) + "\"}"); }},
                      state.socket());
    const Printed printed = run(open_command, {.daemon = state.options(), .print = true});
    CHECK(printed.exit_code == exit_failed);
    CHECK(printed.out.empty());
  }
}

TEST_CASE("an older daemon is reported as such") {
  const State state;
  FakeDaemon daemon({[](Peer& peer) { peer.answer("404 Not Found", "{}"); }}, state.socket());
  const Printed printed = run(open_command, {.daemon = state.options(), .print = true});
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("older than this program") != std::string::npos);
}

TEST_CASE("the TCP address is used if nothing listens at the socket") {
  const State state;
  state.put("token", "t0ken");
  { const FakeDaemon gone({}, state.socket()); }
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) {
    request = peer.upgrade();
    peer.receive(1);
    peer.send(R"({"type":"ready","id":"cli"})");
    peer.finish();
  }});
  state.put("address", daemon.url());
  const Printed printed = run(list_command, {.daemon = state.options()});
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(request.find("Authorization: Bearer t0ken") != request.npos);
}

}  // namespace open_test
