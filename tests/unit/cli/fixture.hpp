// A state directory whose daemon listens at a Unix socket, for tests of commands.
#pragma once
#include <string>
#include <type_traits>

#include "cli/commands.hpp"
#include "unit/common/captured.hpp"
#include "unit/common/fake_daemon.hpp"

namespace earshot::cli::test {

using namespace earshot::common::test;

/// With STATE/socket, as the daemon writes it.
struct State : TemporaryDirectory {
  ConnectOptions options() const { return {.state = path()}; }
  std::string socket() const {
    put("socket", path("sock") + "\n");
    return path("sock");
  }
};

/// What a command prints that needs the daemon.
template <class Options>
Printed run(int (*command)(const Options&, const DaemonAddresses&),
            const std::type_identity_t<Options>& options) {
  return printed_by([&] {
    return with_daemon(options.daemon, [&](const auto& addresses) { return command(options, addresses); });
  });
}

}  // namespace earshot::cli::test
