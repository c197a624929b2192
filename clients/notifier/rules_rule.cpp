// Reads one [[rule]] table.
#include <re2/re2.h>

#include <algorithm>

#include "base/text.hpp"
#include "common/resumer.hpp"
#include "notifier/rules_reader.hpp"

namespace earshot::notifier {
namespace {

constexpr std::size_t pattern_bytes_max = 1024;   // a longer regular expression is refused
constexpr std::int64_t pattern_memory = 1 << 20;  // a regular expression that needs more memory is refused

// The conditions that a rule may have.
struct ConditionKey {
  std::string_view key;
  Condition::Kind kind;
};
constexpr ConditionKey condition_keys[] = {
    {"status", Condition::Kind::globs},  {"reason", Condition::Kind::globs},
    {"project", Condition::Kind::globs}, {"host", Condition::Kind::globs},
    {"session", Condition::Kind::globs}, {"tool", Condition::Kind::globs},
    {"outcome", Condition::Kind::globs}, {"origin", Condition::Kind::globs},
    {"model", Condition::Kind::globs},   {"duration", Condition::Kind::duration},
    {"cost", Condition::Kind::cost},     {"text", Condition::Kind::text},
    {"fatal", Condition::Kind::flag},
};

constexpr std::string_view states[] = {"working", "waiting", "idle", "ended", "unknown"};
constexpr std::string_view types[] = {
    "status",        "session.started", "session.updated",     "turn.started",  "turn.finished",
    "message.added", "tool.invoked",    "tool.finished",       "todo.updated",  "compaction.started",
    "agent.started", "agent.finished",  "compaction.finished", "task.finished", "queue.changed",
    "usage.updated", "api.failed",      "files.snapshotted",   "line.skipped"};

bool has_wildcard(std::string_view text) { return text.find_first_of("*?") != text.npos; }

// Reports patterns that match none of the known values.
void check_patterns(const RulesReader& reader, std::string_view key, const toml::node& node,
                    const std::vector<std::string>& patterns, std::span<const std::string_view> known) {
  for (const std::string& each : patterns) {
    const bool fits = std::any_of(known.begin(), known.end(),
                                  [&](std::string_view value) { return matches_glob(each, value); });
    if (fits) continue;
    const std::vector<std::string_view> names(known.begin(), known.end());
    reader.add_problem(node.source(), "`" + std::string(key) + "`: there is no \"" + each +
                                          "\"; did you mean \"" + std::string(nearest_word(each, names)) +
                                          "\"?");
  }
}

void read_condition(const RulesReader& reader, const ConditionKey& what, const toml::node& node, Rule& rule) {
  Condition condition;
  condition.key = what.key;
  condition.kind = what.kind;
  if (what.kind == Condition::Kind::globs) {
    auto globs = reader.read_strings(what.key, node);
    if (!globs) return;
    if (what.key == "status") check_patterns(reader, what.key, node, *globs, states);
    for (std::string& glob : *globs) {
      if (what.key == "session") glob = common::session_pattern(glob);
    }
    condition.globs = std::move(*globs);
    if (condition.globs.empty()) return;  // an empty list matches everything
  } else if (what.kind == Condition::Kind::flag) {
    const auto flag = reader.read_bool(what.key, node);
    if (!flag) return;
    condition.flag = *flag;
  } else if (what.kind == Condition::Kind::text) {
    const auto pattern = reader.read_string(what.key, node);
    if (!pattern) return;
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(pattern_memory);
    condition.pattern = *pattern;
    condition.expression = std::make_shared<re2::RE2>(*pattern, options);
    if (pattern->size() > pattern_bytes_max || !condition.expression->ok())
      return reader.add_problem(
          node.source(), "`text` is not a valid regular expression: " +
                             (condition.expression->ok() ? "it is too long" : condition.expression->error()));
  } else {
    const bool is_duration = what.kind == Condition::Kind::duration;
    const auto value = reader.read_string(what.key, node);
    if (!value) return;
    const auto comparison = is_duration ? parse_duration_comparison(*value) : parse_number_comparison(*value);
    if (!comparison)
      return reader.add_problem(node.source(),
                                "`" + std::string(what.key) + "` is a comparison in quotes, such as " +
                                    (is_duration ? "\">30s\"" : "\">2.50\"") + ", not \"" + *value + "\"");
    condition.comparison = *comparison;
  }
  rule.conditions.push_back(std::move(condition));
}

void read_template(const RulesReader& reader, std::string_view key, const toml::node& node, Template& made) {
  const auto value = reader.read_string(key, node);
  if (!value) return;
  auto parsed = Template::parse(*value);
  if (const auto* error = std::get_if<Template::Error>(&parsed))
    return reader.add_problem(node.source(), "`" + std::string(key) + "`: " + error->why);
  made = std::get<Template>(std::move(parsed));
}

// Called when the complete rule is read: each variable of a template must exist, and be allowed in the rule's
// view.
void check_template(const RulesReader& reader, std::string_view key, const toml::table& table,
                    const Rule& rule, const Template& value) {
  for (const std::string& name : value.names()) {
    const Variable* const variable = find_variable(name);
    if (variable == nullptr) {
      std::vector<std::string_view> known;
      for (const Variable& each : variables()) known.push_back(each.name);
      std::string why = "`" + std::string(key) + "` uses {" + name + "}; did you mean {" +
                        std::string(nearest_word(name, known)) + "}? Variables:";
      for (const std::string_view each : known) why += " {" + std::string(each) + "}";
      reader.add_problem(table.get(key)->source(), std::move(why));
    } else if (variable->text && rule.view == View::meta) {
      reader.add_problem(table.get(key)->source(),
                         "`" + std::string(key) + "` uses {" + name +
                             "}, which is session text: add view = \"full\" to send it");
    }
  }
}

struct Key {
  std::string_view name;
  void (*read)(const RulesReader& reader, const toml::node& node, Rule& rule);
};
constexpr Key keys[] = {
    {"on",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (auto on = reader.read_strings("on", node)) {
         for (std::string& each : *on) {
           if (each != "status") each = common::type_pattern(each);
         }
         check_patterns(reader, "on", node, *on, types);
         rule.on = std::move(*on);
       }
     }},
    {"sinks",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (auto sinks = reader.read_strings("sinks", node)) rule.sinks = std::move(*sinks);
     }},
    {"title", [](const RulesReader& reader, const toml::node& node,
                 Rule& rule) { read_template(reader, "title", node, rule.title); }},
    {"body", [](const RulesReader& reader, const toml::node& node,
                Rule& rule) { read_template(reader, "body", node, rule.body); }},
    {"urgency",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto which = reader.read_choice("urgency", node, {"low", "normal", "critical"}))
         rule.urgency = static_cast<Urgency>(*which);
     }},
    {"hold",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto ms = reader.read_duration("hold", node)) rule.hold_ms = ms;
     }},
    {"throttle",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto ms = reader.read_duration("throttle", node)) rule.throttle_ms = *ms;
     }},
    {"throttle_per",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto which = reader.read_choice("throttle_per", node, {"session", "project", "rule"}))
         rule.per = static_cast<Rule::Per>(*which);
     }},
    {"once",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto which = reader.read_choice("once", node, {"event", "turn", "session"}))
         rule.once = static_cast<Rule::Once>(*which);
     }},
    {"quiet",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (auto hours = reader.read_quiet_hours("quiet", node)) rule.quiet = std::move(*hours);
     }},
    {"after_quiet",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto flag = reader.read_bool("after_quiet", node)) rule.after_quiet = *flag;
     }},
    {"view",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto which = reader.read_choice("view", node, {"full", "meta"}))
         rule.view = *which == 0 ? View::full : View::meta;
     }},
    {"subagents",
     [](const RulesReader& reader, const toml::node& node, Rule& rule) {
       if (const auto flag = reader.read_bool("subagents", node)) rule.subagents = *flag;
     }},
};

}  // namespace

std::optional<Rule> read_rule(const RulesReader& reader, const toml::table& table, std::string& name) {
  const std::size_t problems = reader.problems.size();
  Rule rule;
  rule.file = reader.file;
  rule.line = static_cast<int>(table.source().begin.line);
  bool enabled = true;
  for (const auto& [key, node] : table) {
    const auto known = std::find_if(std::begin(keys), std::end(keys),
                                    [&](const Key& each) { return each.name == key.str(); });
    const auto condition = std::find_if(std::begin(condition_keys), std::end(condition_keys),
                                        [&](const ConditionKey& each) { return each.key == key.str(); });
    if (key.str() == "name") {
      if (auto value = reader.read_string("name", node)) rule.name = *value;
    } else if (key.str() == "enabled") {
      enabled = reader.read_bool("enabled", node).value_or(true);
    } else if (known != std::end(keys)) {
      known->read(reader, node, rule);
    } else if (condition != std::end(condition_keys)) {
      read_condition(reader, *condition, node, rule);
    } else {
      std::vector<std::string_view> names{"name", "enabled"};
      for (const Key& each : keys) names.push_back(each.name);
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
  if (rule.on.empty())
    reader.add_problem(table.source(),
                       "a rule needs `on` or `status`: on = \"turn.finished\", or status = \"waiting\"");
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

}  // namespace earshot::notifier
