#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/cli/fixture.hpp"

namespace token_test {

using namespace earshot;
using namespace earshot::cli;
using namespace earshot::cli::test;

TEST_CASE("token prints the content of the file, or why there is none") {
  const State state;
  const Printed none = printed_by([&] { return token_command({.daemon = state.options()}); });
  CHECK(none.exit_code == exit_failed);
  CHECK(none.err.find("earshotd") != std::string::npos);
  state.put("token", "abc123\n");
  CHECK(printed_by([&] { return token_command({.daemon = state.options()}); }).out == "abc123\n");
}

TEST_CASE("token --rotate requests a new token from the daemon") {
  const State state;
  state.put("token", "old");
  std::string request;
  FakeDaemon daemon({[&](Peer& peer) { request = peer.answer("200 OK", R"({"token":"fresh"})"); }},
                    state.socket());
  const Printed printed =
      printed_by([&] { return token_command({.daemon = state.options(), .rotate = true}); });
  CHECK(daemon.join().empty());
  CHECK(printed.exit_code == exit_ok);
  CHECK(printed.out == "fresh\n");
  CHECK(request.starts_with("POST /v1/token/rotate HTTP/1.1\r\n"));
}

TEST_CASE("without a daemon token --rotate deletes the file, unless the state directory is locked") {
  const State state;
  state.put("token", "old");
  state.put("address", "ws://127.0.0.1:1/v1/ws");
  state.put("lock", "");
  const int lock = ::open(state.path("lock").c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(::flock(lock, LOCK_EX | LOCK_NB) == 0);
  const TokenOptions rotate{.daemon = state.options(), .rotate = true};
  const Printed held = printed_by([&] { return token_command(rotate); });
  CHECK(held.exit_code == exit_failed);
  CHECK(std::filesystem::exists(state.path("token")));
  ::close(lock);
  const Printed free = printed_by([&] { return token_command(rotate); });
  CHECK(free.exit_code == exit_ok);
  CHECK_FALSE(std::filesystem::exists(state.path("token")));
  CHECK(free.err.find("creates a new token at its next start") != std::string::npos);
}

}  // namespace token_test
