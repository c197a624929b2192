#include "notifier/rules_file.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "common/resumer.hpp"
#include "notifier/rules_reader.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t file_bytes_max = 1 << 20;
constexpr std::int64_t max_age_ms_max = 24LL * 3600 * 1000;
constexpr std::int64_t timeout_ms_min = 100, timeout_ms_max = 60'000;
constexpr std::size_t command_arguments_max = 64;
constexpr std::size_t name_bytes_max = 64;        // of a sink
constexpr std::size_t pattern_bytes_max = 1024;   // a longer regular expression is refused
constexpr std::int64_t pattern_memory = 1 << 20;  // a regular expression that needs more memory is refused

template <class Field, class Value>
void set(Field& field, std::optional<Value> value) {
  if (value) field = static_cast<Field>(std::move(*value));
}

// --- [sink.NAME] ---

struct SinkKey {
  std::string_view name;
  std::initializer_list<SinkKind> kinds;
  std::string& (*field)(Sink& sink);  // null: see read_sink()
  bool is_path = false;
  bool fits(SinkKind kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }
};

const std::vector<SinkKey>& sink_keys() {
  using K = SinkKind;
  static constexpr auto web = {K::json, K::slack, K::discord, K::teams, K::ntfy, K::gotify};
  static constexpr auto with_token = {K::json, K::ntfy, K::gotify};
  static constexpr auto with_secret = {K::json}, with_tty = {K::bell}, with_command = {K::command};
  static constexpr auto with_timeout = {K::json, K::slack,  K::discord, K::teams,
                                        K::ntfy, K::gotify, K::command};
  static const std::vector<SinkKey> keys{
      {"url", web, [](Sink& sink) -> std::string& { return sink.url; }},
      {"url_file", web, [](Sink& sink) -> std::string& { return sink.url_source.file; }, true},
      {"url_env", web, [](Sink& sink) -> std::string& { return sink.url_source.variable; }},
      {"token_file", with_token, [](Sink& sink) -> std::string& { return sink.token.file; }, true},
      {"token_env", with_token, [](Sink& sink) -> std::string& { return sink.token.variable; }},
      {"secret_file", with_secret, [](Sink& sink) -> std::string& { return sink.secret.file; }, true},
      {"secret_env", with_secret, [](Sink& sink) -> std::string& { return sink.secret.variable; }},
      {"ca_file", web, [](Sink& sink) -> std::string& { return sink.ca_file; }, true},
      {"command", with_command, nullptr},
      {"tty", with_tty, [](Sink& sink) -> std::string& { return sink.tty; }},
      {"timeout", with_timeout, nullptr},
  };
  return keys;
}

void read_command(const RulesReader& reader, const Item& item, Sink& sink) {
  if (item.node.as_array() == nullptr)
    return reader.add_type_error(item, "an array, the program and its arguments (there is no shell)");
  if (auto value = reader.read_strings(item)) sink.command = *value;
  if (sink.command.size() > command_arguments_max)
    reader.add_problem(item, "`command` has more than 64 arguments");
  if (!sink.command.empty()) sink.command.front() = reader.expand_home(sink.command.front());
}

void read_timeout(const RulesReader& reader, const Item& item, Sink& sink) {
  const auto ms = reader.read_duration(item);
  if (!ms) return;
  sink.timeout_ms = *ms;
  if (*ms < timeout_ms_min || *ms > timeout_ms_max)
    reader.add_problem(item, "`timeout` must be from 100ms to 1m");
}

// Checks required and conflicting keys.
void check_sink(const RulesReader& reader, const toml::table& table, const Sink& sink) {
  const auto add_problem = [&](const std::string& why) {
    reader.add_problem(table.source(), "sink " + sink.name + ": " + why);
  };
  if (sink.uses_http()) {
    const int sources = (sink.url.empty() ? 0 : 1) + (sink.url_source.file.empty() ? 0 : 1) +
                        (sink.url_source.variable.empty() ? 0 : 1);
    if (sources != 1) add_problem("set exactly one of `url`, `url_file` and `url_env`");
    if (!sink.url.empty() && !sink.url.starts_with("https://") && !sink.url.starts_with("http://"))
      add_problem("`url` must begin with https:// or http://");
    if (sink.url.find('@') != sink.url.npos &&
        sink.url.find('@') < std::min(sink.url.find('/', 8), sink.url.size()))
      add_problem(
          "`url` contains a user name or a password: move the URL to `url_file`, or use `token_file`");
  }
  if (!sink.token.file.empty() && !sink.token.variable.empty())
    add_problem("set only one of `token_file` and `token_env`");
  if (!sink.secret.file.empty() && !sink.secret.variable.empty())
    add_problem("set only one of `secret_file` and `secret_env`");
  if (sink.kind == SinkKind::gotify && !sink.token.is_set())
    add_problem("gotify needs `token_file` or `token_env`");
  if (sink.kind == SinkKind::command && sink.command.empty())
    add_problem("`command` is missing: [\"program\", \"argument\"]");
}

std::optional<Sink> read_sink(const RulesReader& reader, std::string_view name, const toml::table& table) {
  const std::size_t problems = reader.problems.size();
  Sink sink;
  sink.name = name;
  sink.line = static_cast<int>(table.source().begin.line);
  constexpr std::string_view name_characters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  if (name.empty() || name.size() > name_bytes_max || name.find_first_not_of(name_characters) != name.npos) {
    reader.add_problem(table.source(), "a sink's name consists of letters, digits, - and _, at most 64");
    return std::nullopt;
  }
  const toml::node* const kind = table.get("kind");
  if (kind == nullptr) {
    reader.add_problem(
        table.source(),
        "sink " + sink.name +
            " has no `kind`: desktop, json, slack, discord, teams, ntfy, gotify, command or bell");
    return std::nullopt;
  }
  const auto which = reader.read_choice({"kind", *kind}, sink_kind_names);
  if (!which) return std::nullopt;
  sink.kind = static_cast<SinkKind>(*which);
  for (const auto& [key, node] : table) {
    const Item item{key.str(), node};
    if (item.key == "kind") continue;
    const auto known = std::find_if(sink_keys().begin(), sink_keys().end(), [&](const SinkKey& each) {
      return each.name == item.key && each.fits(sink.kind);
    });
    if (known == sink_keys().end()) {
      std::vector<std::string_view> names{"kind"};
      for (const SinkKey& each : sink_keys()) {
        if (each.fits(sink.kind)) names.push_back(each.name);
      }
      reader.add_unknown_key(key, names);
    } else if (known->field != nullptr) {
      set(known->field(sink), known->is_path ? reader.read_path(item) : reader.read_string(item));
    } else if (item.key == "command") {
      read_command(reader, item, sink);
    } else {
      read_timeout(reader, item, sink);
    }
  }
  check_sink(reader, table, sink);
  if (reader.problems.size() > problems) return std::nullopt;
  return sink;
}

// --- [[rule]] ---

// The conditions that a rule may have.
struct ConditionKey {
  std::string_view key;
  Condition::Kind kind;
};
constexpr ConditionKey condition_keys[] = {
    {"status", Condition::Kind::globs},  {"reason", Condition::Kind::globs},
    {"project", Condition::Kind::globs}, {"host", Condition::Kind::globs},
    {"program", Condition::Kind::globs}, {"used", Condition::Kind::percent},
    {"session", Condition::Kind::globs}, {"tool", Condition::Kind::globs},
    {"outcome", Condition::Kind::globs}, {"origin", Condition::Kind::globs},
    {"model", Condition::Kind::globs},   {"duration", Condition::Kind::duration},
    {"cost", Condition::Kind::cost},     {"text", Condition::Kind::text},
    {"fatal", Condition::Kind::flag},    {"context", Condition::Kind::context},
};

constexpr std::string_view states[] = {"working", "waiting", "idle", "ended", "unknown"};
constexpr std::string_view types[] = {"status",
                                      "done",
                                      "session.started",
                                      "session.updated",
                                      "turn.started",
                                      "turn.finished",
                                      "message.added",
                                      "tool.invoked",
                                      "tool.finished",
                                      "todo.updated",
                                      "compaction.started",
                                      "agent.started",
                                      "agent.finished",
                                      "compaction.finished",
                                      "task.finished",
                                      "queue.changed",
                                      "usage.updated",
                                      "api.failed",
                                      "limits.updated",
                                      "files.snapshotted",
                                      "line.skipped"};

// Reports patterns that match none of the known values.
void check_patterns(const RulesReader& reader, const Item& item, const std::vector<std::string>& patterns,
                    RulesReader::Names known) {
  for (const std::string& each : patterns) {
    const bool fits = std::any_of(known.begin(), known.end(),
                                  [&](std::string_view value) { return matches_glob(each, value); });
    if (fits) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    reader.add_problem(item, "`" + std::string(item.key) + "`: there is no \"" + each +
                                 "\"; did you mean \"" + std::string(nearest_word(each, names)) + "\"?");
  }
}

void read_condition(const RulesReader& reader, const ConditionKey& what, const Item& item, Rule& rule) {
  Condition condition;
  condition.key = what.key;
  condition.kind = what.kind;
  if (what.kind == Condition::Kind::globs) {
    auto globs = reader.read_strings(item);
    if (!globs) return;
    if (what.key == "status") check_patterns(reader, item, *globs, states);
    for (std::string& glob : *globs) {
      if (what.key == "session") glob = common::session_pattern(glob);
    }
    condition.globs = std::move(*globs);
    if (condition.globs.empty()) return;  // an empty list matches everything
  } else if (what.kind == Condition::Kind::flag) {
    const auto flag = reader.read_bool(item);
    if (!flag) return;
    condition.flag = *flag;
  } else if (what.kind == Condition::Kind::text) {
    const auto pattern = reader.read_string(item);
    if (!pattern) return;
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(pattern_memory);
    condition.pattern = *pattern;
    condition.expression = std::make_shared<re2::RE2>(*pattern, options);
    if (pattern->size() > pattern_bytes_max || !condition.expression->ok())
      return reader.add_problem(
          item, "`text` is not a valid regular expression: " +
                    (condition.expression->ok() ? "it is too long" : condition.expression->error()));
  } else {
    const auto value = reader.read_string(item);
    if (!value) return;
    struct Reading {
      std::optional<Comparison> (*parse)(std::string_view text);
      const char* example;
    };
    const Reading reading =
        what.kind == Condition::Kind::duration  ? Reading{parse_duration_comparison, ">30s"}
        : what.kind == Condition::Kind::cost    ? Reading{parse_number_comparison, ">2.50"}
        : what.kind == Condition::Kind::context ? Reading{parse_percent_comparison, ">80%"}
                                                : Reading{parse_percent_comparison, ">=90"};
    const auto comparison = reading.parse(*value);
    if (!comparison)
      return reader.add_problem(item, "`" + std::string(what.key) +
                                          "` is a comparison in quotes, such as \"" + reading.example +
                                          "\", not \"" + *value + "\"");
    condition.comparison = *comparison;
  }
  rule.conditions.push_back(std::move(condition));
}

void read_template(const RulesReader& reader, const Item& item, Template& made) {
  const auto value = reader.read_string(item);
  if (!value) return;
  auto parsed = Template::parse(*value);
  if (const auto* error = std::get_if<Template::Error>(&parsed))
    return reader.add_problem(item, "`" + std::string(item.key) + "`: " + error->why);
  made = std::get<Template>(std::move(parsed));
}

// Called when the complete rule is read: each variable of a template must exist, and be allowed in the rule's
// view. The built-in rules are for both views: in the meta view their text variables are unknown.
void check_template(const RulesReader& reader, std::string_view key, const toml::table& table,
                    const Rule& rule, const Template& value) {
  const auto add_problem = [&](std::string why) {
    reader.add_problem(table.get(key)->source(), "`" + std::string(key) + "` uses " + std::move(why));
  };
  for (const std::string& name : value.names()) {
    const bool is_text = contains(text_variables, name);
    if (is_text && rule.view == View::meta && !reader.file.empty())
      add_problem("{" + name + "}, which is session text: add view = \"full\" to send it");
    if (is_text || contains(meta_variables, name)) continue;
    std::vector<std::string_view> known(std::begin(meta_variables), std::end(meta_variables));
    known.insert(known.end(), std::begin(text_variables), std::end(text_variables));
    std::string why =
        "{" + name + "}; did you mean {" + std::string(nearest_word(name, known)) + "}? Variables:";
    for (const std::string_view each : known) why += " {" + std::string(each) + "}";
    add_problem(std::move(why));
  }
}

void read_types(const RulesReader& reader, const Item& item, Rule& rule) {
  auto on = reader.read_strings(item);
  if (!on) return;
  for (std::string& each : *on) {
    if (each != "status" && each != "done") each = common::type_pattern(each);
  }
  check_patterns(reader, item, *on, types);
  rule.on = std::move(*on);
}

// { after = "2m", sinks = ["phone"] }, or a list of such tables.
void read_escalations(const RulesReader& reader, const Item& item, Rule& rule) {
  constexpr std::string_view expected =
      "a table, { after = \"2m\", sinks = [\"phone\"] }, or a list of tables";
  std::vector<const toml::table*> tables;
  if (const toml::array* const array = item.node.as_array()) {
    for (const toml::node& each : *array) tables.push_back(each.as_table());
  } else {
    tables.push_back(item.node.as_table());
  }
  if (std::find(tables.begin(), tables.end(), nullptr) != tables.end())
    return reader.add_type_error(item, expected);
  if (tables.size() > Rule::escalations_max)
    return reader.add_problem(item,
                              "`escalate` has more than " + std::to_string(Rule::escalations_max) + " steps");
  for (const toml::table* const table : tables) {
    Escalation step;
    constexpr std::string_view known[] = {"after", "sinks"};
    for (const auto& [key, node] : *table) {
      const Item inner{key.str(), node};
      if (inner.key == "after") {
        set(step.after_ms, reader.read_duration(inner));
      } else if (inner.key == "sinks") {
        set(step.sinks, reader.read_strings(inner));
      } else {
        reader.add_unknown_key(key, known);
      }
    }
    if (!table->contains("after") || !table->contains("sinks") ||
        (step.sinks.empty() && table->get("sinks")->is_array()))
      reader.add_problem(item,
                         "`escalate` needs `after` and `sinks`: { after = \"2m\", sinks = [\"phone\"] }");
    rule.escalations.push_back(std::move(step));
  }
  std::stable_sort(rule.escalations.begin(), rule.escalations.end(),
                   [](const Escalation& a, const Escalation& b) { return a.after_ms < b.after_ms; });
}

struct RuleKey {
  std::string_view name;
  void (*read)(const RulesReader& reader, const Item& item, Rule& rule);
};
constexpr std::string_view scopes[] = {"session", "project", "rule"};  // as in Rule::Per
constexpr std::string_view repeats[] = {"event", "turn", "session"};   // as in Rule::Once
constexpr std::string_view views[] = {"full", "meta"};                 // as in View
using Reader = const RulesReader;
constexpr RuleKey rule_keys[] = {
    {"on", read_types},
    {"sinks", [](Reader& r, const Item& item, Rule& rule) { set(rule.sinks, r.read_strings(item)); }},
    {"title", [](Reader& r, const Item& item, Rule& rule) { read_template(r, item, rule.title); }},
    {"body", [](Reader& r, const Item& item, Rule& rule) { read_template(r, item, rule.body); }},
    {"urgency",
     [](Reader& r, const Item& item, Rule& rule) { set(rule.urgency, r.read_choice(item, urgency_names)); }},
    {"hold", [](Reader& r, const Item& item, Rule& rule) { set(rule.hold_ms, r.read_duration(item)); }},
    {"throttle",
     [](Reader& r, const Item& item, Rule& rule) { set(rule.throttle_ms, r.read_duration(item)); }},
    {"throttle_per",
     [](Reader& r, const Item& item, Rule& rule) { set(rule.per, r.read_choice(item, scopes)); }},
    {"once", [](Reader& r, const Item& item, Rule& rule) { set(rule.once, r.read_choice(item, repeats)); }},
    {"quiet", [](Reader& r, const Item& item, Rule& rule) { set(rule.quiet, r.read_quiet_hours(item)); }},
    {"after_quiet",
     [](Reader& r, const Item& item, Rule& rule) { set(rule.after_quiet, r.read_bool(item)); }},
    {"view", [](Reader& r, const Item& item, Rule& rule) { set(rule.view, r.read_choice(item, views)); }},
    {"escalate", read_escalations},
    {"headless", [](Reader& r, const Item& item, Rule& rule) { set(rule.headless, r.read_bool(item)); }},
    {"subagents", [](Reader& r, const Item& item, Rule& rule) { set(rule.subagents, r.read_bool(item)); }},
};

// Nothing if the rule has problems or is disabled (`enabled = false`). Sets `name` in each case.
std::optional<Rule> read_rule(const RulesReader& reader, const toml::table& table, View view,
                              std::string& name) {
  const std::size_t problems = reader.problems.size();
  Rule rule;
  rule.view = view;
  rule.file = reader.file;
  rule.line = static_cast<int>(table.source().begin.line);
  bool enabled = true;
  for (const auto& [key, node] : table) {
    const Item item{key.str(), node};
    const auto known = std::find_if(std::begin(rule_keys), std::end(rule_keys),
                                    [&](const RuleKey& each) { return each.name == item.key; });
    const auto condition = std::find_if(std::begin(condition_keys), std::end(condition_keys),
                                        [&](const ConditionKey& each) { return each.key == item.key; });
    if (item.key == "name") {
      set(rule.name, reader.read_string(item));
    } else if (item.key == "enabled") {
      set(enabled, reader.read_bool(item));
    } else if (known != std::end(rule_keys)) {
      known->read(reader, item, rule);
    } else if (condition != std::end(condition_keys)) {
      read_condition(reader, *condition, item, rule);
    } else {
      std::vector<std::string_view> names{"name", "enabled"};
      for (const RuleKey& each : rule_keys) names.push_back(each.name);
      for (const ConditionKey& each : condition_keys) names.push_back(each.key);
      reader.add_unknown_key(key, names);
    }
  }
  // In the order of the table of conditions, not of the TOML keys.
  const auto position = [](const Condition& condition) {
    return std::find_if(std::begin(condition_keys), std::end(condition_keys),
                        [&](const ConditionKey& each) { return each.key == condition.key; });
  };
  std::sort(rule.conditions.begin(), rule.conditions.end(),
            [&](const Condition& a, const Condition& b) { return position(a) < position(b); });
  name = rule.name;
  if (rule.name.empty()) reader.add_problem(table.source(), "a rule needs a `name`");
  if (!enabled) return std::nullopt;
  const bool asks_status = table.contains("status") || table.contains("reason");
  if (rule.on.empty() && asks_status) rule.on = {"status"};
  if (rule.on.empty() && rule.context_condition() != nullptr) rule.on = {"usage.updated"};
  if (rule.context_condition() != nullptr && rule.once != Rule::Once::event)
    reader.add_problem(table.source(), "`context` means once per session and compaction: omit `once`");
  if (rule.on.empty())
    reader.add_problem(table.source(),
                       "a rule needs `on` or `status`: on = \"done\", or status = \"waiting\"");
  const bool names_status = std::find(rule.on.begin(), rule.on.end(), "status") != rule.on.end();
  if (names_status && rule.on.size() > 1)
    reader.add_problem(table.source(), "`on` is either \"status\" or event types: write two rules");
  if (asks_status && !names_status && !rule.on.empty())
    reader.add_problem(table.source(), "`status` and `reason` need on = \"status\"; events do not have them");
  if (rule.title.text().empty()) rule.title = std::get<Template>(Template::parse("{name}: {type}"));
  check_template(reader, "title", table, rule, rule.title);
  check_template(reader, "body", table, rule, rule.body);
  if (reader.problems.size() > problems) return std::nullopt;
  return rule;
}

// --- the file ---

struct ParsedFile {
  std::vector<Rule> rules;
  std::map<std::string, Sink, std::less<>> sinks;
  std::set<std::string, std::less<>> names;  // of rules, disabled ones included
  std::vector<std::string> sinks_by_default{"desktop"};
  std::vector<QuietHours> quiet_by_default;
  bool with_built_in = true;
  View view = View::meta;  // of rules without `view`
  std::optional<std::int64_t> max_age_ms;
};

void read_rule_list(const RulesReader& reader, const toml::node& node, ParsedFile& parsed) {
  const toml::array* const array = node.as_array();
  if (array == nullptr || (!array->empty() && !array->is_array_of_tables()))
    return reader.add_type_error({"rule", node}, "a list of tables, [[rule]]");
  for (const toml::node& item : *array) {
    std::string name;
    auto rule = read_rule(reader, *item.as_table(), parsed.view, name);
    if (!name.empty() && !parsed.names.insert(name).second)
      reader.add_problem(item.source(), "there are two rules named " + name);
    if (rule) parsed.rules.push_back(std::move(*rule));
  }
  if (array->size() > Rules::rules_max)
    reader.add_problem(node.source(), "more than " + std::to_string(Rules::rules_max) + " rules");
}

void read_sink_tables(const RulesReader& reader, const toml::node& node, ParsedFile& parsed) {
  const toml::table* const table = node.as_table();
  if (table == nullptr) return reader.add_type_error({"sink", node}, "a group of tables, [sink.NAME]");
  for (const auto& [name, item] : *table) {
    if (item.as_table() == nullptr) {
      reader.add_type_error({name.str(), item}, "a table, [sink.NAME]");
      continue;
    }
    if (auto sink = read_sink(reader, name.str(), *item.as_table()))
      parsed.sinks.emplace(std::string(name.str()), std::move(*sink));
  }
  if (table->size() > Rules::sinks_max)
    reader.add_problem(node.source(), "more than " + std::to_string(Rules::sinks_max) + " sinks");
}

ParsedFile parse_file(const RulesReader& reader, std::string_view text, View view = View::meta) {
  ParsedFile parsed;
  parsed.view = view;
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    reader.add_problem(error.source(), std::string(error.description()));
    return parsed;
  }
  constexpr std::string_view known[] = {"rule", "sink", "sinks", "quiet", "defaults", "max_age", "view"};
  if (const toml::node* const node = table.get("view"))  // before the rules
    set(parsed.view, reader.read_choice({"view", *node}, views));
  for (const auto& [key, node] : table) {
    const Item item{key.str(), node};
    if (item.key == "rule") {
      read_rule_list(reader, node, parsed);
    } else if (item.key == "sink") {
      read_sink_tables(reader, node, parsed);
    } else if (item.key == "sinks") {
      set(parsed.sinks_by_default, reader.read_strings(item));
    } else if (item.key == "quiet") {
      set(parsed.quiet_by_default, reader.read_quiet_hours(item));
    } else if (item.key == "defaults") {
      set(parsed.with_built_in, reader.read_bool(item));
    } else if (item.key == "max_age") {
      parsed.max_age_ms = reader.read_duration(item);
      if (parsed.max_age_ms && (*parsed.max_age_ms < 1000 || *parsed.max_age_ms > max_age_ms_max))
        reader.add_problem(item, "`max_age` must be from 1s to 1d");
    } else if (item.key != "view") {
      reader.add_unknown_key(key, known);
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

// Each step of an escalation reaches sinks that do not have the notice yet: a receiver would take a second
// one for a repetition.
void check_escalations(const RulesReader& reader, const Rule& rule) {
  std::set<std::string, std::less<>> notified(rule.sinks.begin(), rule.sinks.end());
  const auto add_problem = [&](const std::string& why) {
    reader.problems.push_back({reader.file, rule.line, "rule " + rule.name + ": `escalate` " + why});
  };
  for (const Escalation& step : rule.escalations) {
    if (step.after_ms == 0) add_problem("has no time: name the sinks in `sinks`, or set `after`");
    for (const std::string& name : step.sinks) {
      if (!notified.insert(name).second) add_problem("names the sink " + name + " a second time");
    }
  }
}

// Fills in the file's defaults and reports unknown sinks.
void apply_defaults(const RulesReader& reader, const ParsedFile& parsed, Rules& rules) {
  for (Rule& rule : rules.rules) {
    if (rule.sinks.empty()) rule.sinks = parsed.sinks_by_default;
    if (rule.quiet.empty()) rule.quiet = parsed.quiet_by_default;
    std::vector<std::string> names = rule.sinks;
    for (const Escalation& each : rule.escalations)
      names.insert(names.end(), each.sinks.begin(), each.sinks.end());
    for (const std::string& name : names) {
      if (rules.sink(name) != nullptr) continue;
      std::vector<std::string_view> known;
      for (const auto& [each, sink] : rules.sinks) known.push_back(each);
      reader.problems.push_back({reader.file, rule.file.empty() ? 0 : rule.line,
                                 "rule " + rule.name + ": there is no sink \"" + name +
                                     "\"; did you mean \"" + std::string(nearest_word(name, known)) +
                                     "\"? Sinks are tables, [sink." + name + "]"});
    }
    check_escalations(reader, rule);
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
    for (Rule& rule : parse_file(built_in, default_rules_text, parsed.view).rules) {
      if (!parsed.names.contains(rule.name)) read.rules.rules.push_back(std::move(rule));
    }
  }
  for (Rule& rule : parsed.rules) read.rules.rules.push_back(std::move(rule));
  apply_defaults(reader, parsed, read.rules);
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
  const std::string path = requested.empty() ? default_rules_file() : requested;
  const char* const home = std::getenv("HOME");
  const SmallFile file = read_small_file(path, file_bytes_max, Symlinks::follow);
  if (file.ok() || (requested.empty() && file.is_missing()))
    return read_rules(file.text, path, home == nullptr ? "" : home);
  ReadRules read;
  read.problems.push_back({path, 0, file.error_text()});
  return read;
}

}  // namespace earshot::notifier
