// `earshot open`, `earshot token` and `earshot show`, as far as they talk to a daemon.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "cli/commands.hpp"
#include "common/captured.hpp"
#include "common/fake_daemon.hpp"

using namespace earshot::cli;
using namespace earshot::common::test;

namespace {

ConnectOptions by_state(const TemporaryDirectory& state) { return {.state = state.path()}; }

// STATE/socket names the socket, as the daemon has it.
std::string socket_of(const TemporaryDirectory& state) {
  state.put("socket", state.path("sock") + "\n");
  return state.path("sock");
}

}  // namespace

TEST_CASE("open prints an address with a code that the daemon gave through its socket") {
  const TemporaryDirectory state;
  std::string request;
  FakeDaemon daemon(
      {[&](Peer& peer) {
        request =
            peer.answer("200 OK", R"({"code":"ab","expires_in":60,"url":"http://127.0.0.1:7717/#code=ab"})");
      }},
      socket_of(state));
  const Printed printed =
      printed_by([&] { return open_command({.daemon = by_state(state), .print = true}); });
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out == "http://127.0.0.1:7717/#code=ab\n");
  CHECK(request.starts_with("POST /v1/codes HTTP/1.1\r\n"));
  CHECK(request.find("Authorization") == request.npos);
}

TEST_CASE("open hands nothing to a browser but an address") {
  for (const char* url :
       {"", "file:///etc/passwd", "javascript:alert(1)", "http://x/\\u001b[2J", "http://x/ --evil"}) {
    const TemporaryDirectory state;
    FakeDaemon daemon({[&](Peer& peer) { peer.answer("200 OK", R"({"url":")" + std::string(url) + "\"}"); }},
                      socket_of(state));
    const Printed printed =
        printed_by([&] { return open_command({.daemon = by_state(state), .print = true}); });
    CHECK(printed.exit_code == exit_failed);
    CHECK(printed.out.empty());
  }
}

TEST_CASE("an older daemon is told from none") {
  const TemporaryDirectory state;
  FakeDaemon daemon({[](Peer& peer) { peer.answer("404 Not Found", "{}"); }}, socket_of(state));
  const Printed printed =
      printed_by([&] { return open_command({.daemon = by_state(state), .print = true}); });
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("older than this program") != std::string::npos);
}

TEST_CASE("token prints what is in the file, and says where there is none") {
  const TemporaryDirectory state;
  const Printed none = printed_by([&] { return token_command({.daemon = by_state(state)}); });
  CHECK(none.exit_code == exit_failed);
  CHECK(none.err.find("earshotd") != std::string::npos);
  state.put("token", "abc123\n");
  CHECK(printed_by([&] { return token_command({.daemon = by_state(state)}); }).out == "abc123\n");
}

TEST_CASE("a new token comes from the daemon") {
  const TemporaryDirectory state;
  state.put("token", "old");
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("200 OK", R"({"token":"fresh"})"); }},
                    socket_of(state));
  const Printed printed =
      printed_by([&] { return token_command({.daemon = by_state(state), .rotate = true}); });
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out == "fresh\n");
  CHECK(request.starts_with("POST /v1/token/rotate HTTP/1.1\r\n"));
}

TEST_CASE("without a daemon the old token goes, unless one holds the state directory") {
  const TemporaryDirectory state;
  state.put("token", "old");
  state.put("address", "ws://127.0.0.1:1/v1/ws");
  state.put("lock", "");
  const int lock = ::open(state.path("lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  const TokenOptions rotate{.daemon = by_state(state), .rotate = true};
  const Printed held = printed_by([&] { return token_command(rotate); });
  CHECK(held.exit_code == exit_failed);
  CHECK(std::filesystem::exists(state.path("token")));
  ::close(lock);
  const Printed free = printed_by([&] { return token_command(rotate); });
  CHECK(free.exit_code == exit_ok);
  CHECK_FALSE(std::filesystem::exists(state.path("token")));
  CHECK(free.err.find("next start makes a new token") != std::string::npos);
}

TEST_CASE("show asks which session it is, then for all its events") {
  const TemporaryDirectory state;
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
    peer.receive(8);
    peer.close(1000, "");
  };
  FakeDaemon daemon({script, script}, socket_of(state));
  const Printed json =
      printed_by([&] { return show_command({.session = "2eaa", .daemon = by_state(state), .json = true}); });
  CHECK(json.exit_code == exit_ok);
  CHECK(json.out == one + "\n");
  CHECK(find.find(R"("session":["2eaa*"])") != find.npos);
  CHECK(find.find(R"("all":true)") != find.npos);
  CHECK(unsubscribe == R"({"type":"unsubscribe","id":"find-all"})");
  CHECK(show.find(R"("after":["c/p/2eaa1c04:","c/p/2eaa1c04/subagents/agent-x:"])") != show.npos);
  CHECK(show.find(R"("snapshot":false)") != show.npos);
  const Printed pretty = printed_by([&] {
    return show_command({.session = "2eaa", .daemon = by_state(state), .colour = ColourMode::never});
  });
  CHECK(daemon.join().empty());
  CHECK(pretty.out.starts_with("api\n2eaa1c04"));
  CHECK(pretty.out.find("turn 1") != std::string::npos);
}

TEST_CASE("show without a daemon points to replay") {
  const TemporaryDirectory state;
  state.put("address", "ws://127.0.0.1:1/v1/ws");
  const Printed printed =
      printed_by([&] { return show_command({.session = "last", .daemon = by_state(state)}); });
  CHECK(printed.exit_code == exit_failed);
  CHECK(printed.err.find("earshot replay FILE --pretty") != std::string::npos);
}

TEST_CASE("a socket that nobody is at any more gives way to the port") {
  const TemporaryDirectory state;
  state.put("token", "t0ken");
  { const FakeDaemon gone({}, socket_of(state)); }
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) {
    request = peer.upgrade();
    peer.receive(1);
    peer.send(R"({"type":"ready","id":"cli"})");
    peer.receive(8);
    peer.close(1000, "");
  }});
  state.put("address", daemon.url());
  const Printed printed = printed_by([&] { return list_command({.daemon = by_state(state)}); });
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(request.find("Authorization: Bearer t0ken") != request.npos);
}
