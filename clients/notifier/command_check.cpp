// `earshot-notify check`: validates and explains the rules.
#include <sys/stat.h>

#include <iostream>

#include "base/quantities.hpp"
#include "base/json_writer.hpp"
#include "common/diagnostics.hpp"
#include "common/format.hpp"
#include "notifier/commands.hpp"
#include "notifier/payload.hpp"
#include "notifier/rules_file.hpp"

namespace earshot::notifier {
namespace {

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
    for (const Problem& each : read.problems) std::cout << common::safe_text(each.text()) << "\n";
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
    std::cout << (each.fatal ? "WRONG: " : "note: ") << "sink " << each.sink << ": "
              << common::safe_text(each.why) << "\n";
  return exit_code;
}

}  // namespace earshot::notifier
