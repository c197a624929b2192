#include "notifier/rules_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "notifier/rules_reader.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t file_bytes_max = 1 << 20;
constexpr std::int64_t max_age_ms_max = 24LL * 3600 * 1000;

struct Whole {
  std::vector<Rule> rules;
  std::map<std::string, Sink, std::less<>> sinks;
  std::set<std::string, std::less<>> named;  // of rules, disabled ones included
  Defaults usual;
  bool defaults = true;
  std::optional<std::int64_t> max_age_ms;
};

void read_rules_of(const Reader& reader, const toml::node& node, Whole& whole) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || (!array->empty() && !array->is_array_of_tables()))
    return reader.wrong_type("rule", node, "a list of tables, [[rule]]");
  for (const toml::node& item : *array) {
    std::string name;
    auto rule = read_rule(reader, *item.as_table(), name);
    if (!name.empty() && !whole.named.insert(name).second)
      reader.wrong(item.source(), "there are two rules named " + name);
    if (rule) whole.rules.push_back(std::move(*rule));
  }
  if (array->size() > Rules::rules_max)
    reader.wrong(node.source(), "more than " + std::to_string(Rules::rules_max) + " rules");
}

void read_sinks_of(const Reader& reader, const toml::node& node, Whole& whole) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return reader.wrong_type("sink", node, "a group of tables, [sink.NAME]");
  for (const auto& [name, item] : *table) {
    if (item.as_table() == nullptr) {
      reader.wrong_type(name.str(), item, "a table, [sink.NAME]");
      continue;
    }
    if (auto sink = read_sink(reader, name.str(), *item.as_table()))
      whole.sinks.emplace(std::string(name.str()), std::move(*sink));
  }
  if (table->size() > Rules::sinks_max)
    reader.wrong(node.source(), "more than " + std::to_string(Rules::sinks_max) + " sinks");
}

Whole read_whole(const Reader& reader, std::string_view text) {
  Whole whole;
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    reader.wrong(error.source(), std::string(error.description()));
    return whole;
  }
  for (const auto& [key, node] : table) {
    if (key.str() == "rule") {
      read_rules_of(reader, node, whole);
    } else if (key.str() == "sink") {
      read_sinks_of(reader, node, whole);
    } else if (key.str() == "sinks") {
      if (auto sinks = reader.texts("sinks", node)) whole.usual.sinks = std::move(*sinks);
    } else if (key.str() == "quiet") {
      if (auto hours = reader.quiet("quiet", node)) whole.usual.quiet = std::move(*hours);
    } else if (key.str() == "defaults") {
      whole.defaults = reader.flag("defaults", node).value_or(true);
    } else if (key.str() == "max_age") {
      whole.max_age_ms = reader.duration("max_age", node);
      if (whole.max_age_ms && (*whole.max_age_ms < 1000 || *whole.max_age_ms > max_age_ms_max))
        reader.wrong(node.source(), "`max_age` must be from 1s to 1d");
    } else {
      reader.unknown(key, {"rule", "sink", "sinks", "quiet", "defaults", "max_age"});
    }
  }
  return whole;
}

Sink plain(std::string name, SinkKind kind) {
  Sink sink;
  sink.name = std::move(name);
  sink.kind = kind;
  return sink;
}

// Fills in the file's defaults and reports unknown sinks.
void settle(const Reader& reader, const Defaults& usual, Rules& rules) {
  for (Rule& rule : rules.rules) {
    if (rule.sinks.empty()) rule.sinks = usual.sinks;
    if (rule.quiet.empty()) rule.quiet = usual.quiet;
    for (const std::string& name : rule.sinks) {
      if (rules.sink(name) != nullptr) continue;
      std::vector<std::string_view> known;
      for (const auto& [each, sink] : rules.sinks) known.push_back(each);
      reader.problems.push_back({reader.file, rule.file.empty() ? 0 : rule.line,
                                 "rule " + rule.name + ": there is no sink \"" + name +
                                     "\"; did you mean \"" + std::string(most_like(name, known)) +
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
  const Reader reader{file, home, read.problems};
  Whole whole = read_whole(reader, text);
  read.rules.sinks = std::move(whole.sinks);
  read.rules.sinks.emplace("desktop", plain("desktop", SinkKind::desktop));
  read.rules.sinks.emplace("bell", plain("bell", SinkKind::bell));
  if (whole.max_age_ms) read.rules.max_age_ms = *whole.max_age_ms;
  if (whole.defaults) {
    const Reader built_in{{}, home, read.problems};
    for (Rule& rule : read_whole(built_in, default_rules_text).rules) {
      if (!whole.named.contains(rule.name)) read.rules.rules.push_back(std::move(rule));
    }
  }
  for (Rule& rule : whole.rules) read.rules.rules.push_back(std::move(rule));
  settle(reader, whole.usual, read.rules);
  std::stable_sort(read.problems.begin(), read.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.line < b.line; });
  return read;
}

std::string default_rules_file() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  const std::string place =
      config != nullptr && config[0] == '/' ? config : std::string(home == nullptr ? "" : home) + "/.config";
  return place + "/earshot/notify.toml";
}

ReadRules load_rules(const std::string& asked) {
  const std::string file = asked.empty() ? default_rules_file() : asked;
  const char* const home = std::getenv("HOME");
  struct stat status {};
  if (asked.empty() && ::stat(file.c_str(), &status) != 0 && errno == ENOENT)
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
