#include "common/flags.hpp"

namespace earshot::common {

void add_daemon(CLI::App& command, DaemonWish& daemon) {
  const auto add = [&](const char* name, std::string& value, const char* what, const char* type) {
    command.add_option(name, value, what)->type_name(type)->group("Daemon");
  };
  add("--connect", daemon.connect, "the daemon's address, ws://HOST:PORT/v1/ws, with the token", "URL");
  add("--socket", daemon.socket, "the daemon's Unix socket (default: the one that STATE/socket names)",
      "FILE");
  add("--token-file", daemon.token_file, "its token, where one is needed (default: STATE/token)", "FILE");
  add("--state", daemon.state,
      "its state directory (default: $XDG_STATE_HOME/earshot, ~/.local/state/earshot)", "DIR");
}

}  // namespace earshot::common
