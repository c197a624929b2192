#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "cli/commands.hpp"
#include "unit/common/captured.hpp"
#include "unit/common/fake_daemon.hpp"

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::common::test;

namespace {

ConnectOptions by_state(const TemporaryDirectory& state) { return {.state = state.path()}; }

// Writes STATE/socket, as the daemon does.
std::string socket_of(const TemporaryDirectory& state) {
  state.put("socket", state.path("sock") + "\n");
  return state.path("sock");
}

}  // namespace

TEST_CASE("token prints the content of the file, or why there is none") {
  const TemporaryDirectory state;
  const Printed none = printed_by([&] { return token_command({.daemon = by_state(state)}); });
  CHECK(none.exit_code == exit_failed);
  CHECK(none.err.find("earshotd") != std::string::npos);
  state.put("token", "abc123\n");
  CHECK(printed_by([&] { return token_command({.daemon = by_state(state)}); }).out == "abc123\n");
}

TEST_CASE("token --rotate requests a new token from the daemon") {
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

TEST_CASE("without a daemon token --rotate deletes the file, unless the state directory is locked") {
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
  CHECK(free.err.find("creates a new token at its next start") != std::string::npos);
}
