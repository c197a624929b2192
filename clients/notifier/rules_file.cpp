#include "notifier/rules_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "base/text.hpp"
#include "notifier/rules_reader.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t file_bytes_max = 1 << 20;
constexpr std::int64_t max_age_ms_max = 24LL * 3600 * 1000;

struct ParsedFile {
  std::vector<Rule> rules;
  std::map<std::string, Sink, std::less<>> sinks;
  std::set<std::string, std::less<>> names;  // of rules, disabled ones included
  Defaults defaults;
  bool with_built_in = true;
  std::optional<std::int64_t> max_age_ms;
};

void read_rule_list(const RulesReader& reader, const toml::node& node, ParsedFile& parsed) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || (!array->empty() && !array->is_array_of_tables()))
    return reader.add_type_error("rule", node, "a list of tables, [[rule]]");
  for (const toml::node& item : *array) {
    std::string name;
    auto rule = read_rule(reader, *item.as_table(), name);
    if (!name.empty() && !parsed.names.insert(name).second)
      reader.add_problem(item.source(), "there are two rules named " + name);
    if (rule) parsed.rules.push_back(std::move(*rule));
  }
  if (array->size() > Rules::rules_max)
    reader.add_problem(node.source(), "more than " + std::to_string(Rules::rules_max) + " rules");
}

void read_sink_tables(const RulesReader& reader, const toml::node& node, ParsedFile& parsed) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return reader.add_type_error("sink", node, "a group of tables, [sink.NAME]");
  for (const auto& [name, item] : *table) {
    if (item.as_table() == nullptr) {
      reader.add_type_error(name.str(), item, "a table, [sink.NAME]");
      continue;
    }
    if (auto sink = read_sink(reader, name.str(), *item.as_table()))
      parsed.sinks.emplace(std::string(name.str()), std::move(*sink));
  }
  if (table->size() > Rules::sinks_max)
    reader.add_problem(node.source(), "more than " + std::to_string(Rules::sinks_max) + " sinks");
}

ParsedFile parse_file(const RulesReader& reader, std::string_view text) {
  ParsedFile parsed;
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    reader.add_problem(error.source(), std::string(error.description()));
    return parsed;
  }
  for (const auto& [key, node] : table) {
    if (key.str() == "rule") {
      read_rule_list(reader, node, parsed);
    } else if (key.str() == "sink") {
      read_sink_tables(reader, node, parsed);
    } else if (key.str() == "sinks") {
      if (auto sinks = reader.read_strings("sinks", node)) parsed.defaults.sinks = std::move(*sinks);
    } else if (key.str() == "quiet") {
      if (auto hours = reader.read_quiet_hours("quiet", node)) parsed.defaults.quiet = std::move(*hours);
    } else if (key.str() == "defaults") {
      parsed.with_built_in = reader.read_bool("defaults", node).value_or(true);
    } else if (key.str() == "max_age") {
      parsed.max_age_ms = reader.read_duration("max_age", node);
      if (parsed.max_age_ms && (*parsed.max_age_ms < 1000 || *parsed.max_age_ms > max_age_ms_max))
        reader.add_problem(node.source(), "`max_age` must be from 1s to 1d");
    } else {
      reader.add_unknown_key(key, {"rule", "sink", "sinks", "quiet", "defaults", "max_age"});
    }
  }
  return parsed;
}

Sink built_in_sink(std::string name, SinkKind kind) {
  Sink sink;
  sink.name = std::move(name);
  sink.kind = kind;
  return sink;
}

// Fills in the file's defaults and reports unknown sinks.
void apply_defaults(const RulesReader& reader, const Defaults& defaults, Rules& rules) {
  for (Rule& rule : rules.rules) {
    if (rule.sinks.empty()) rule.sinks = defaults.sinks;
    if (rule.quiet.empty()) rule.quiet = defaults.quiet;
    for (const std::string& name : rule.sinks) {
      if (rules.sink(name) != nullptr) continue;
      std::vector<std::string_view> known;
      for (const auto& [each, sink] : rules.sinks) known.push_back(each);
      reader.problems.push_back({reader.file, rule.file.empty() ? 0 : rule.line,
                                 "rule " + rule.name + ": there is no sink \"" + name +
                                     "\"; did you mean \"" + std::string(nearest_word(name, known)) +
                                     "\"? Sinks are tables, [sink." + name + "]"});
    }
  }
}

}  // namespace

std::string Problem::text() const {
  return (file.empty() ? std::string("built in") : file) + (line > 0 ? ":" + std::to_string(line) : "") +
         ": " + why;
}

ReadRules read_rules(std::string_view text, const std::string& file, const std::string& home) {
  ReadRules read;
  const RulesReader reader{file, home, read.problems};
  ParsedFile parsed = parse_file(reader, text);
  read.rules.sinks = std::move(parsed.sinks);
  read.rules.sinks.emplace("desktop", built_in_sink("desktop", SinkKind::desktop));
  read.rules.sinks.emplace("bell", built_in_sink("bell", SinkKind::bell));
  if (parsed.max_age_ms) read.rules.max_age_ms = *parsed.max_age_ms;
  if (parsed.with_built_in) {
    const RulesReader built_in{{}, home, read.problems};
    for (Rule& rule : parse_file(built_in, default_rules_text).rules) {
      if (!parsed.names.contains(rule.name)) read.rules.rules.push_back(std::move(rule));
    }
  }
  for (Rule& rule : parsed.rules) read.rules.rules.push_back(std::move(rule));
  apply_defaults(reader, parsed.defaults, read.rules);
  std::stable_sort(read.problems.begin(), read.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.line < b.line; });
  return read;
}

std::string default_rules_file() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  const std::string directory =
      config != nullptr && config[0] == '/' ? config : std::string(home == nullptr ? "" : home) + "/.config";
  return directory + "/earshot/notify.toml";
}

ReadRules load_rules(const std::string& requested) {
  const std::string file = requested.empty() ? default_rules_file() : requested;
  const char* const home = std::getenv("HOME");
  struct stat status {};
  if (requested.empty() && ::stat(file.c_str(), &status) != 0 && errno == ENOENT)
    return read_rules({}, file, home == nullptr ? "" : home);
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  const bool is_file = ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  if (is_file && static_cast<std::size_t>(status.st_size) <= file_bytes_max && stream) text << stream.rdbuf();
  if (!is_file || !stream || static_cast<std::size_t>(status.st_size) > file_bytes_max) {
    ReadRules read;
    const std::string why = errno != 0 && !is_file ? std::strerror(errno)
                            : is_file && stream    ? "is longer than 1 MiB"
                                                   : "cannot be read";
    read.problems.push_back({file, 0, why});
    return read;
  }
  return read_rules(text.str(), file, home == nullptr ? "" : home);
}

}  // namespace earshot::notifier
