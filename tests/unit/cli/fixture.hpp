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

/// The same while no daemon listens.
template <class Options>
Printed run_without_daemon(int (*command)(const Options&, const DaemonAddresses&)) {
  const State state;
  state.put("address", "ws://127.0.0.1:1/v1/ws");
  Options options;
  options.daemon = state.options();
  return run(command, options);
}

}  // namespace earshot::cli::test
