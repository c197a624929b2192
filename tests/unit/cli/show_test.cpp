#include <catch2/catch.hpp>

#include "unit/cli/fixture.hpp"

namespace show_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

TEST_CASE("show finds the session, then requests all its events") {
  const State state;
  const std::string found =
      R"({"type":"session","host":"h","session":"2eaa1c04","cursors":["c/p/2eaa1c04:9.1.x","c/p/2eaa1c04/subagents/agent-x:3.1.x"],"project":"/home/u/api","turn":{"number":1,"open":false},"status":{"state":"idle"}})";
  const std::string one =
      R"({"type":"turn.started","host":"h","stream":"c/p/2eaa1c04","session":"2eaa1c04","cursor":"1.1.x","turn":1,"prompt":"go"})";
  const std::string other =
      R"({"type":"turn.started","host":"h","stream":"c/p/2eaa1c04f","session":"2eaa1c04f","cursor":"1.1.x","turn":1})";
  std::string find, unsubscribe, show;
  const auto script = [&](Peer& peer) {
    peer.upgrade();
    peer.send(R"({"type":"welcome","protocol":1,"host":"h","view":"full"})");
    find = peer.receive(1).payload;
    peer.send(found);
    peer.send(R"({"type":"ready","id":"find-all"})");
    unsubscribe = peer.receive(1).payload;
    show = peer.receive(1).payload;
    peer.send(R"({"type":"ready","id":"show"})");
    peer.send(one);
    peer.send(other);
    peer.send(R"({"type":"bookmark","id":"show","cursors":[],"complete":true})");
    peer.finish();
  };
  std::string seen;
  const auto mark = [&](Peer& peer) { seen = peer.answer("404 Not Found", "{}"); };  // of an older daemon
  FakeDaemon daemon({script, script, mark}, state.socket());
  const Printed json = run(show_command, {.session = "2eaa", .daemon = state.options(), .json = true});
  CHECK(json.exit_code == exit_ok);
  CHECK(json.out == one + "\n");
  CHECK(find.find(R"("session":["2eaa*"])") != find.npos);
  CHECK(find.find(R"("all":true)") != find.npos);
  CHECK(unsubscribe == R"({"type":"unsubscribe","id":"find-all"})");
  CHECK(show.find(R"("after":["c/p/2eaa1c04:","c/p/2eaa1c04/subagents/agent-x:"])") != show.npos);
  CHECK(show.find(R"("snapshot":false)") != show.npos);
  const Printed pretty =
      run(show_command, {.session = "2eaa", .daemon = state.options(), .colour = ColourMode::never});
  CHECK(daemon.join().empty());
  CHECK(pretty.exit_code == exit_ok);
  CHECK(pretty.err.empty());
  CHECK(seen.starts_with("POST /v1/seen HTTP/1.1\r\n"));
  CHECK(seen.ends_with(R"({"session":"2eaa1c04"})"));
  CHECK(pretty.out.starts_with("api\n2eaa1c04"));
  CHECK(pretty.out.find("turn 1") != std::string::npos);
}

TEST_CASE("show without a daemon refers to replay") {
  const Printed printed = run_without_daemon(show_command);
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("earshot replay FILE --pretty") != std::string::npos);
}

TEST_CASE("show suggests a session with a similar id") {
  const State state;
  FakeDaemon daemon({[](Peer& peer) {
                      peer.subscription();
                      peer.send(R"({"type":"ready","id":"find-all"})");
                      peer.receive(1);
                      peer.receive(1);
                      peer.send(R"({"type":"session","host":"h","session":"2eaa1c04-0000"})");
                      peer.send(R"({"type":"ready","id":"suggest"})");
                      peer.finish();
                    }},
                    state.socket());
  const Printed printed = run(show_command, {.session = "2eab1c04", .daemon = state.options()});
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("did you mean 2eaa1c04?") != std::string::npos);
}

}  // namespace show_test
