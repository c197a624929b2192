#include "common/common_options.hpp"

namespace earshot::common {

void add_connect_options(CLI::App& command, ConnectOptions& options) {
  const auto add = [&](const char* name, std::string& value, const char* description, const char* type) {
    command.add_option(name, value, description)->type_name(type)->group("Daemon");
  };
  add("--connect", options.connect, "connect to this address, ws://HOST:PORT/v1/ws, with the token", "URL");
  add("--socket", options.socket, "connect to this Unix socket (default: the one named in STATE/socket)",
      "FILE");
  add("--token-file", options.token_file, "file with the daemon's token (default: STATE/token)", "FILE");
  add("--state", options.state,
      "the daemon's state directory (default: $XDG_STATE_HOME/earshot, ~/.local/state/earshot)", "DIR");
}

}  // namespace earshot::common
