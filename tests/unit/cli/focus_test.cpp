#include <unistd.h>

#include <catch2/catch.hpp>

#include "unit/cli/fixture.hpp"

namespace focus_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

namespace {

std::string session(const std::string& id, const std::string& state, const std::string& since,
                    const std::string& host = "dev7") {
  return R"({"type":"session","host":")" + host + R"(","session":")" + id +
         R"(","project":"/home/u/api","status":{"state":")" + state + R"(","since":"2025-11-04T)" + since +
         R"(Z"},"last_activity":"2025-11-04T12:00:00Z"})";
}

std::function<void(Peer&)> sending(std::vector<std::string> sessions, std::string* request = nullptr) {
  return [=](Peer& peer) {
    peer.upgrade();
    peer.send(R"({"type":"welcome","protocol":1,"host":"dev7","view":"full"})");
    const std::string asked = peer.receive(1).payload;
    if (request != nullptr) *request = asked;
    for (const std::string& each : sessions) peer.send(each);
    peer.send(R"({"type":"ready","id":"cli"})");
    peer.finish();
  };
}

}  // namespace

TEST_CASE("focus chooses the session that has waited longest and asks for its process") {
  const State state;
  std::string asked;
  FakeDaemon daemon({sending({session("b", "waiting", "11:50:00"), session("a%/b", "waiting", "11:40:00"),
                              session("c", "working", "11:00:00")}),
                     [&](Peer& peer) { asked = peer.answer("404 Not Found", "none"); }},
                    state.socket());
  const Printed printed = run(focus_command, {.daemon = state.options()});
  CHECK(daemon.join().empty());
  CHECK(asked.starts_with("GET /v1/process?session=a%25%2Fb HTTP/1.1\r\n"));
  CHECK(printed.exit_code == exit_no_process);
  CHECK(printed.err.find("no process of api (a%/b) is known") != std::string::npos);
}

TEST_CASE("focus without a waiting session, or with an ambiguous name, says so") {
  const State state;
  std::string request;
  FakeDaemon daemon(
      {sending({session("b", "working", "11:50:00")}),
       sending({session("b1", "idle", "11:50:00"), session("b2", "idle", "11:50:00")}, &request)},
      state.socket());
  const Printed none = run(focus_command, {.daemon = state.options()});
  CHECK(none.exit_code == exit_failed);
  CHECK(none.err.find("no session waits for you") != std::string::npos);
  const Printed several = run(focus_command, {.session = "b", .daemon = state.options()});
  CHECK(daemon.join().empty());
  CHECK(several.exit_code == exit_usage);
  CHECK(request.find(R"("session":["b*"])") != std::string::npos);
}

TEST_CASE("the session of another host is not searched for here") {
  const State state;
  FakeDaemon daemon({sending({session("a@bob", "waiting", "11:50:00", "bob")})}, state.socket());
  const Printed printed = run(focus_command, {.daemon = state.options()});
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_no_process);
  CHECK(printed.err.find("runs on the host bob") != std::string::npos);
}

TEST_CASE("a process that is not here, or has no terminal, is reported") {
  const State state;
  const auto answer = [](const std::string& pid) {
    return [pid](Peer& peer) {
      peer.answer("200 OK",
                  R"({"session":"a","program":"claude-code","pid":)" + pid + R"(,"source":"registry"})");
    };
  };
  FakeDaemon daemon({sending({session("a", "idle", "11:50:00")}), answer("0"),
                     sending({session("a", "idle", "11:50:00")}), answer("\"x\"")},
                    state.socket());
  for (int n = 0; n < 2; ++n) {
    const Printed printed = run(focus_command, {.session = "last", .daemon = state.options()});
    CHECK(printed.exit_code == exit_no_process);
    CHECK(printed.err.find("does not exist here") != std::string::npos);
  }
  CHECK(daemon.join().empty());
}

TEST_CASE("focus without a daemon says how to start it, as other commands do") {
  const Printed printed = run_without_daemon(focus_command);
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("Start it:  earshotd") != std::string::npos);
}

}  // namespace focus_test
