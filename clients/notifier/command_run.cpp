// `earshot-notify` without a command: runs until it is stopped. A missing daemon, an invalid token and a
// missing session bus are retried.
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file.hpp"
#include "common/client.hpp"
#include "common/format.hpp"
#include "notifier/commands.hpp"
#include "notifier/notifier.hpp"
#include "notifier/rules_file.hpp"

namespace earshot::notifier {
namespace {

using common::print_message;
using common::safe_text;

// Prints a message unless it repeats the previous one: failed attempts are reported once.
class StatusPrinter {
 public:
  void print(const std::string& text) {
    if (text == last_) return;
    last_ = text;
    print_message(text);
  }
  void reset() { last_.clear(); }

 private:
  std::string last_;
};

// Deletes what write_private_file() leaves behind when the process is killed while it writes.
void remove_unfinished_files(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().extension() == ".tmp") std::filesystem::remove(entry->path(), ignored);
  }
}

// Without a rule that uses text the daemon is asked to send none.
void request_meta_view(common::DaemonAddresses& addresses) {
  for (common::DaemonAddress& address : addresses) address.endpoint.path += "?view=meta";
}

}  // namespace

std::string notifier_directory(const Options& options) {
  return options.daemon.state_directory() + "/notify";
}

int run_command(const Options& options) {
  ReadRules read = load_rules(options.rules);
  for (const Problem& each : read.problems) print_message(safe_text(each.text()));
  if (!read.problems.empty()) {
    print_message("the rules have errors; `earshot-notify check` validates them without starting");
    return exit_usage;
  }
  const Rules rules = std::move(read.rules);
  const StatePaths paths{notifier_directory(options)};
  for (const std::string& directory : {paths.directory, paths.spool()}) {
    if (const std::string why = make_private_directory(directory); !why.empty()) {
      print_message("cannot create " + safe_text(why));
      return exit_failed;
    }
  }
  const FileLock lock = lock_file(paths.lock());
  if (!lock.fd && lock.error != EWOULDBLOCK) {
    print_message("cannot lock " + safe_text(paths.lock()) + ": " + std::strerror(lock.error));
    return exit_failed;
  }
  if (!lock.fd) {
    print_message("another earshot-notify runs already with " + safe_text(paths.directory) +
                  ": two would send each notice twice");
    return exit_failed;
  }
  for (const std::string& directory : {paths.directory, paths.spool()}) remove_unfinished_files(directory);
  common::Client client;
  Notifier notifier(rules, options.daemon, client, paths, options.verbose);
  common::Backoff backoff;
  StatusPrinter printer;
  while (true) {
    // On each attempt, as a restarted daemon may have another address and token.
    auto found = common::find_daemon(options.daemon);
    if (const auto* why = std::get_if<std::string>(&found)) {
      printer.print(safe_text(*why));
      if (!options.daemon.connect.empty() || !options.daemon.socket.empty()) return exit_usage;
      if (!client.pause(backoff.next_ms())) return exit_ok;
      continue;
    }
    common::DaemonAddresses addresses = std::get<common::DaemonAddresses>(std::move(found));
    if (!rules.wants_text()) request_meta_view(addresses);
    bool is_open = false, is_live = false;
    common::Handlers handlers;
    handlers.on_open = [&] {
      is_open = true;
      client.send(notifier.begin());
    };
    handlers.on_frame = [&](std::string_view json) {
      notifier.receive(json);
      return true;
    };
    handlers.on_idle = [&] {
      notifier.process();
      if (!is_live && notifier.live()) printer.print("listening to the daemon");
      is_live = is_live || notifier.live();
    };
    const common::ConnectResult result = client.run_any(addresses, handlers);
    if (result.last().end_reason == common::EndReason::stopped) return exit_ok;
    if (is_open) {
      backoff.reset();
      printer.print("lost the daemon (" + safe_text(result.last().text) + "); reconnecting");
    } else {
      printer.print(format_connect_error(result, addresses) + "\n  Retrying until it is available.");
    }
    if (!client.pause(backoff.next_ms())) return exit_ok;
  }
}

}  // namespace earshot::notifier
