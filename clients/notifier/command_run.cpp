// `earshot-notify`: tells, until it is stopped. It does not give up: no daemon, another token, a bus that is
// not there yet are all waited for.
#include <csignal>
#include <set>

#include "common/backoff.hpp"
#include "common/client.hpp"
#include "common/connect_error.hpp"
#include "common/diagnostics.hpp"
#include "notifier/commands.hpp"
#include "notifier/notifier.hpp"
#include "notifier/rules_file.hpp"

namespace earshot::notifier {
namespace {

using common::complain;
using common::for_stderr;

// What is wrong is said once, not with every attempt.
class Teller {
 public:
  void say(const std::string& text) {
    if (text == last_) return;
    last_ = text;
    complain(text);
  }
  void forget() { last_.clear(); }

 private:
  std::string last_;
};

// The view is asked for in the address: the daemon sends no text that no rule wants.
void ask_for_meta(common::Doors& doors) {
  for (common::DaemonAddress& door : doors) door.endpoint.path += "?view=meta";
}

}  // namespace

std::string own_directory(const Options& options) { return options.daemon.state_directory() + "/notify"; }

int run_command(const Options& options) {
  ReadRules read = load_rules(options.rules);
  for (const Problem& each : read.problems) complain(for_stderr(each.text()));
  if (!read.problems.empty()) {
    complain("these rules cannot be followed; `earshot-notify check` says the same without starting");
    return exit_usage;
  }
  const Rules rules = std::move(read.rules);
  const Places places{own_directory(options)};
  for (const std::string& directory : {places.directory, places.spool()}) {
    if (const std::string why = make_directory(directory); !why.empty()) {
      complain("cannot make " + for_stderr(why));
      return exit_failed;
    }
  }
  const Lock lock(places.lock());
  if (!lock.held()) {
    complain("another earshot-notify runs already with " + for_stderr(places.directory) +
             ": two would tell everything twice");
    return exit_failed;
  }
  common::Client client;
  Station station(rules, options.daemon, client, places, options.verbose);
  common::Backoff backoff;
  Teller teller;
  while (true) {
    // Again each time: a new daemon may have another address and token.
    auto found = common::find_daemon(options.daemon);
    if (const auto* why = std::get_if<std::string>(&found)) {
      teller.say(for_stderr(*why));
      if (!options.daemon.connect.empty() || !options.daemon.socket.empty()) return exit_usage;
      if (!client.pause(backoff.next_ms())) return exit_ok;
      continue;
    }
    common::Doors doors = std::get<common::Doors>(std::move(found));
    if (!rules.wants_text()) ask_for_meta(doors);
    bool is_open = false, is_live = false;
    common::Handlers handlers;
    handlers.on_open = [&] {
      is_open = true;
      client.send(station.begin());
    };
    handlers.on_message = [&](std::string_view json) {
      station.take(json);
      for (std::string& request : station.take_requests()) client.send(std::move(request));
      return true;
    };
    handlers.on_quiet = [&] {
      station.settle();
      if (!is_live && station.live()) teller.say("listening to the daemon");
      is_live = is_live || station.live();
    };
    const common::Visit visit = client.visit(doors, handlers);
    if (visit.last().ending == common::Ending::stopped) return exit_ok;
    if (is_open) {
      backoff.reset();
      teller.say("lost the daemon (" + for_stderr(visit.last().text) + "); trying to come back");
    } else {
      teller.say(explain(visit, doors) + "\n  Trying again until it is there.");
    }
    if (!client.pause(backoff.next_ms())) return exit_ok;
  }
}

}  // namespace earshot::notifier
