// `earshot-notify check`: validates and explains the rules.
#include <sys/stat.h>

#include <iostream>

#include "common/diagnostics.hpp"
#include "notifier/commands.hpp"
#include "notifier/json.hpp"
#include "notifier/payload.hpp"
#include "notifier/rules_file.hpp"

namespace earshot::notifier {
namespace {

struct Found {
  std::string sink, why;
  bool fatal;  // the sink is unusable
};

// Checks sinks without sending anything.
std::vector<Found> look_at(const Rules& rules) {
  std::vector<Found> found;
  for (const auto& [name, sink] : rules.sinks) {
    const bool used = std::any_of(rules.rules.begin(), rules.rules.end(), [&](const Rule& rule) {
      return std::find(rule.sinks.begin(), rule.sinks.end(), name) != rule.sinks.end();
    });
    if (!used) {
      if (sink.line > 0) found.push_back({name, "no rule uses it", false});
      continue;
    }
    const auto keys = read_keys(sink);
    if (const auto* trouble = std::get_if<SecretTrouble>(&keys)) found.push_back({name, trouble->why, true});
    if (const auto* read = std::get_if<Keys>(&keys)) {
      const bool is_secret = !read->token.empty() || !read->secret.empty() || sink.url_at.given();
      const bool is_near = read->url.starts_with("http://127.") ||
                           read->url.starts_with("http://localhost") || read->url.starts_with("http://[::1]");
      if (is_secret && read->url.starts_with("http://") && !is_near)
        found.push_back({name, "the secret is sent unencrypted: use https://", false});
    }
    struct stat status {};
    if (!sink.ca_file.empty() && ::stat(sink.ca_file.c_str(), &status) != 0)
      found.push_back({name, sink.ca_file + ": No such file or directory", true});
  }
  return found;
}

void print_json(const ReadRules& read, const std::vector<Found>& found) {
  std::string out;
  Object object(out);
  object.add("good", read.problems.empty());
  append_array(object.begin("problems"), read.problems, [](std::string& to, const Problem& each) {
    Object(to).add("file", each.file).add("line", each.line).add("why", each.why).close();
  });
  append_array(object.begin("sinks"), found, [](std::string& to, const Found& each) {
    Object(to).add("sink", each.sink).add("why", each.why).add("fatal", each.fatal).close();
  });
  append_array(object.begin("rules"), read.rules.rules, [&](std::string& to, const Rule& rule) {
    Object each(to);
    each.add("name", rule.name)
        .add("file", rule.file)
        .add("line", rule.line)
        .add("on", rule.on)
        .add("sinks", rule.sinks);
    each.add("view", rule.view == View::full ? "full" : "meta").add("says", explain(rule, read.rules));
    each.close();
  });
  object.close();
  std::cout << out << "\n";
}

}  // namespace

int check_command(const Options& options) {
  const ReadRules read = load_rules(options.rules);
  const std::vector<Found> found = read.problems.empty() ? look_at(read.rules) : std::vector<Found>{};
  const bool bad = std::any_of(found.begin(), found.end(), [](const Found& each) { return each.fatal; });
  const int exit_code = !read.problems.empty() ? exit_usage : bad ? exit_failed : exit_ok;
  if (options.json) {
    print_json(read, found);
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
  std::cout << "\nEvents older than " << say_duration(read.rules.max_age_ms) << " cause no notices. "
            << (read.rules.wants_text() ? "Session text is requested, as a rule uses it.\n"
                                        : "No session text is requested: only names, times and numbers.\n");
  for (const Found& each : found)
    std::cout << (each.fatal ? "WRONG: " : "note: ") << "sink " << each.sink << ": "
              << common::safe_text(each.why) << "\n";
  return exit_code;
}

}  // namespace earshot::notifier
