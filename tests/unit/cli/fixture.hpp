// A state directory whose daemon listens at a Unix socket, for tests of commands.
#pragma once
#include <string>
#include <utility>
#include <vector>

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

}  // namespace earshot::cli::test
