// The commands `run` (no command), `check` and `why`.
#include "notifier/commands.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "base/file.hpp"
#include "base/quantities.hpp"
#include "common/client.hpp"
#include "common/format.hpp"
#include "notifier/notifier.hpp"
#include "notifier/rules_file.hpp"
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {
namespace {

using common::print_message;
using common::safe_text;

// Without a rule that uses text the daemon is asked to send none.
void request_meta_view(common::DaemonAddresses& addresses) {
  for (common::DaemonAddress& address : addresses) address.endpoint.path += "?view=meta";
}

struct SinkProblem {
  std::string sink, why;
  bool fatal;  // the sink is unusable
};

// Checks sinks without sending anything.
std::vector<SinkProblem> check_sinks(const Rules& rules) {
  std::vector<SinkProblem> problems;
  for (const auto& [name, sink] : rules.sinks) {
    const bool used = std::any_of(rules.rules.begin(), rules.rules.end(), [&](const Rule& rule) {
      return std::find(rule.sinks.begin(), rule.sinks.end(), name) != rule.sinks.end();
    });
    if (!used) {
      if (sink.line > 0) problems.push_back({name, "no rule uses it", false});
      continue;
    }
    const auto keys = read_credentials(sink);
    if (const auto* error = std::get_if<SecretError>(&keys)) problems.push_back({name, error->why, true});
    if (const auto* read = std::get_if<Credentials>(&keys)) {
      const bool is_secret = !read->token.empty() || !read->secret.empty() || sink.url_source.is_set();
      const bool is_private_target = read->url.starts_with("http://127.") ||
                                     read->url.starts_with("http://localhost") ||
                                     read->url.starts_with("http://[::1]");
      if (is_secret && read->url.starts_with("http://") && !is_private_target)
        problems.push_back({name, "the secret is sent unencrypted: use https://", false});
    }
    struct stat status {};
    if (!sink.ca_file.empty() && ::stat(sink.ca_file.c_str(), &status) != 0)
      problems.push_back({name, sink.ca_file + ": No such file or directory", true});
  }
  return problems;
}

void print_json(const ReadRules& read, const std::vector<SinkProblem>& problems) {
  std::string out;
  JsonWriter writer(out);
  writer.begin_object().member("good", read.problems.empty());
  writer.key("problems").array(read.problems, [&](const Problem& each) {
    writer.begin_object()
        .member("file", each.file)
        .member("line", each.line)
        .member("why", each.why)
        .end_object();
  });
  writer.key("sinks").array(problems, [&](const SinkProblem& each) {
    writer.begin_object().member("sink", each.sink).member("why", each.why).member("fatal", each.fatal);
    writer.end_object();
  });
  writer.key("rules").array(read.rules.rules, [&](const Rule& rule) {
    writer.begin_object().member("name", rule.name).member("file", rule.file).member("line", rule.line);
    writer.array_member("on", rule.on).array_member("sinks", rule.sinks);
    writer.member("view", rule.view == View::full ? "full" : "meta");
    writer.member("description", explain(rule, read.rules)).end_object();
  });
  writer.end_object();
  std::cout << out << "\n";
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
  if (const std::string why = make_private_directory(paths.directory); !why.empty()) {
    print_message("cannot create " + safe_text(why));
    return exit_failed;
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
  remove_unfinished_files(paths.directory);
  common::Client client;
  Notifier notifier(rules, options.daemon, client, paths, options.verbose);
  common::Backoff backoff;
  std::string last_message;
  const auto print_once = [&](const std::string& text) {  // failed attempts are reported once
    if (text != last_message) print_message(text);
    last_message = text;
  };
  while (true) {
    // On each attempt, as a restarted daemon may have another address and token.
    auto found = common::find_daemon(options.daemon);
    if (const auto* why = std::get_if<std::string>(&found)) {
      print_once(safe_text(*why));
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
      if (!is_live && notifier.live()) print_once("listening to the daemon");
      is_live = is_live || notifier.live();
    };
    const common::ConnectResult result = client.run_any(addresses, handlers);
    if (result.last().end_reason == common::EndReason::stopped) return exit_ok;
    if (is_open) {
      backoff.reset();
      print_once("lost the daemon (" + safe_text(result.last().text) + "); reconnecting");
    } else {
      print_once(format_connect_error(result, addresses) + "\n  Retrying until it is available.");
    }
    if (!client.pause(backoff.next_ms())) return exit_ok;
  }
}

int check_command(const Options& options) {
  const ReadRules read = load_rules(options.rules);
  const std::vector<SinkProblem> problems =
      read.problems.empty() ? check_sinks(read.rules) : std::vector<SinkProblem>{};
  const bool bad =
      std::any_of(problems.begin(), problems.end(), [](const SinkProblem& each) { return each.fatal; });
  const int exit_code = !read.problems.empty() ? exit_usage : bad ? exit_failed : exit_ok;
  if (options.json) {
    print_json(read, problems);
    return exit_code;
  }
  if (!read.problems.empty()) {
    for (const Problem& each : read.problems) std::cout << safe_text(each.text()) << "\n";
    return exit_code;
  }
  for (const Rule& rule : read.rules.rules) std::cout << explain(rule, read.rules) << "\n";
  if (read.rules.rules.empty()) std::cout << "There are no rules: no notices are sent.\n\n";
  std::cout << "Sinks\n";
  for (const auto& [name, sink] : read.rules.sinks) std::cout << "  " << explain(sink);
  std::cout << "\nEvents older than " << duration_literal(common::Ms(read.rules.max_age_ms))
            << " cause no notices. "
            << (read.rules.wants_text() ? "Session text is requested, as a rule uses it.\n"
                                        : "No session text is requested: only names, times and numbers.\n");
  for (const SinkProblem& each : problems)
    std::cout << (each.fatal ? "WRONG: " : "note: ") << "sink " << each.sink << ": " << safe_text(each.why)
              << "\n";
  return exit_code;
}

int why_command(const Options& options) {
  const StatePaths paths{notifier_directory(options)};
  const std::vector<std::string> lines = BoundedLog(paths.journal()).last(options.count);
  if (lines.empty()) {
    print_message("no decisions yet (" + safe_text(paths.journal()) + "): is earshot-notify running?");
    return exit_failed;
  }
  common::FrameParser parser;
  for (const std::string& line : lines) {
    if (options.json) {
      std::cout << to_display_json(line) << "\n";
      continue;
    }
    const auto fields = parser.parse(line);
    if (!fields) continue;
    std::string text = format_local_clock(fields->integer("at_ms").value_or(0)) + " ";
    std::string outcome(fields->text("decision"));
    outcome.resize(std::max<std::size_t>(outcome.size(), 11), ' ');
    text += outcome + " " + std::string(fields->text("rule"));
    const std::string_view project = fields->text("project");
    if (!project.empty()) text += " · " + std::string(common::last_component(project));
    if (!fields->text("session").empty())
      text += " · " + std::string(common::short_id(fields->text("session")));
    if (!fields->text("title").empty()) text += " “" + std::string(fields->text("title")) + "”";
    if (!fields->text("why").empty()) text += " — " + std::string(fields->text("why"));
    std::cout << safe_text(text) << "\n";
  }
  return exit_ok;
}

}  // namespace earshot::notifier
