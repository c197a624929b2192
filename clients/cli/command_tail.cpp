// `earshot tail`: follows live.
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/follower.hpp"
#include "common/client.hpp"
#include "common/format.hpp"

namespace earshot::cli {

int tail_command(const TailOptions& options) {
  const bool pretty =
      options.format == Format::pretty || (options.format == Format::automatic && is_terminal(STDOUT_FILENO));
  Client client;
  Follower follower(options, pretty);
  Backoff backoff;
  bool was_open = false, warned = false;
  while (true) {
    // Again each time: a new daemon may have another address and token.
    const auto found = find_daemon(options.daemon);
    if (const auto* why = std::get_if<std::string>(&found)) {
      print_message(safe_text(*why));
      return options.daemon.connect.empty() && options.daemon.socket.empty() ? exit_failed : exit_usage;
    }
    const DaemonAddresses& addresses = std::get<DaemonAddresses>(found);
    bool is_open = false;
    Handlers handlers;
    handlers.on_open = [&] {
      if (was_open) print_message("connected again");
      is_open = was_open = true;
      client.send(follower.begin());
    };
    handlers.on_frame = [&](std::string_view json) {
      const bool more = follower.take(json);
      for (std::string& request : follower.take_requests()) client.send(std::move(request));
      return more;
    };
    handlers.on_idle = [&] { follower.flush(); };
    const ConnectResult result = client.run_any(addresses, handlers);
    const std::string& warning = result.address(addresses).warning;
    if (!warning.empty() && !warned) print_message(safe_text(warning));
    warned = warned || !warning.empty();
    if (is_open) follower.end(now_ms());
    follower.flush();
    if (!follower.output().error().empty()) {
      print_message("cannot write: " + follower.output().error());
      return exit_failed;
    }
    if (result.last().end_reason == EndReason::stopped) return follower.failed() ? exit_failed : exit_ok;
    if (!was_open || is_permanent(result.last())) {
      print_message(format_connect_error(result, addresses));
      return exit_failed;
    }
    if (is_open) {
      backoff.reset();
      print_message("lost the daemon (" + safe_text(result.last().text) + "); trying to come back");
    }
    if (!client.pause(backoff.next_ms())) return exit_ok;
  }
}

}  // namespace earshot::cli
