// `earshot tail`: follows live.
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/follower.hpp"
#include "common/backoff.hpp"
#include "common/client.hpp"
#include "common/connect_error.hpp"
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
      complain(for_stderr(*why));
      return options.daemon.connect.empty() && options.daemon.socket.empty() ? exit_failed : exit_usage;
    }
    const Doors& doors = std::get<Doors>(found);
    bool is_open = false;
    Handlers handlers;
    handlers.on_open = [&] {
      if (was_open) complain("connected again");
      is_open = was_open = true;
      client.send(follower.begin());
    };
    handlers.on_message = [&](std::string_view json) {
      const bool more = follower.take(json);
      for (std::string& request : follower.take_requests()) client.send(std::move(request));
      return more;
    };
    handlers.on_quiet = [&] { follower.flush(); };
    const Visit visit = client.visit(doors, handlers);
    const std::string& warning = visit.door(doors).warning;
    if (!warning.empty() && !warned) complain(for_stderr(warning));
    warned = warned || !warning.empty();
    if (is_open) follower.end(now_ms());
    follower.flush();
    if (!follower.output().error().empty()) {
      complain("cannot write: " + follower.output().error());
      return exit_failed;
    }
    if (visit.last().ending == Ending::stopped) return follower.failed() ? exit_failed : exit_ok;
    if (!was_open || is_final(visit.last())) {
      complain(explain(visit, doors));
      return exit_failed;
    }
    if (is_open) {
      backoff.reset();
      complain("lost the daemon (" + for_stderr(visit.last().text) + "); trying to come back");
    }
    if (!client.pause(backoff.next_ms())) return exit_ok;
  }
}

}  // namespace earshot::cli
