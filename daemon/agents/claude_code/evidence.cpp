#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "agents/claude_code/program.hpp"

namespace earshot::claude_code {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr std::string_view json_suffix = ".json";

std::string text_of(const object& from, std::string_view key) {
  std::string_view text;
  if (from[key].get(text) != simdjson::SUCCESS) return {};
  return std::string(text);
}

std::int64_t number_of(const object& from, std::string_view key) {
  element value;
  if (from[key].get(value) != simdjson::SUCCESS) return 0;
  if (std::int64_t integer = 0; value.get(integer) == simdjson::SUCCESS) return integer;
  double real = 0;  // some versions write fractions of a millisecond
  if (value.get(real) == simdjson::SUCCESS && std::abs(real) < 9e15) return static_cast<std::int64_t>(real);
  return 0;
}

/// A string in some versions, a number in others.
std::string text_or_number(const object& from, std::string_view key) {
  if (std::string text = text_of(from, key); !text.empty()) return text;
  std::int64_t number = 0;
  return from[key].get(number) == simdjson::SUCCESS ? std::to_string(number) : std::string();
}

/// The number in `<n>.json`.
template <class Number>
std::optional<Number> number_in_name(std::string_view name) {
  if (!name.ends_with(json_suffix)) return std::nullopt;
  name.remove_suffix(json_suffix.size());
  Number number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> registry_pid(std::string_view file_name) {
  const auto pid = number_in_name<std::int64_t>(file_name);
  return pid && *pid > 0 ? pid : std::nullopt;
}

struct StateRule {
  std::string_view value, state, reason{}, detail{};
};
constexpr std::array states = {
    StateRule{"busy", "working"},
    StateRule{"idle", "idle"},
    StateRule{"shell", "idle", "background"},
    StateRule{"waiting", "waiting"},
};
// Since 2.1.251. `dialog open` is what the user opened.
constexpr std::array waits = {
    StateRule{"permission prompt", "waiting", "permission"},
    StateRule{"sandbox request", "waiting", "permission", "network"},
    StateRule{"worker request", "waiting", "permission", "teammate"},
    StateRule{"goal proposal", "waiting", "permission", "goal"},
    StateRule{"input needed", "waiting", "question"},
    StateRule{"dialog open", "waiting", "dialog"},
};
// Names that the program made up.
constexpr std::array made_up_names = {"derived", "collision"};

const StateRule* find_state(const auto& rules, std::string_view value) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const StateRule& rule) { return rule.value == value; });
  return found == rules.end() ? nullptr : &*found;
}

void set_state(RegistryEntry& entry, std::string_view status, std::string_view waiting_for) {
  const StateRule* rule = find_state(states, status);
  if (!rule) return;
  if (rule->state == "waiting")
    if (const StateRule* wait = find_state(waits, waiting_for)) rule = wait;
  entry.state = rule->state;
  entry.reason = rule->reason;
  entry.detail = rule->detail;
}

Todo todo_of_file(const object& from, std::string_view content_key) {
  Todo todo;
  todo.id = text_or_number(from, "id");
  todo.content = text_or_number(from, content_key);
  todo.status = text_or_number(from, "status");
  todo.active_form = text_or_number(from, "activeForm");
  todo.priority = text_or_number(from, "priority");
  if (todo.status.empty()) todo.status = "pending";
  return todo;
}

}  // namespace

bool ClaudeCode::is_registry_file(std::string_view file_name) const {
  return registry_pid(file_name).has_value();
}

bool ClaudeCode::keeps_registry(std::string_view version) const {
  constexpr std::array first = {2, 1, 202};
  std::array<int, 3> parts{};
  for (int& part : parts) {
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), part);
    if (error != std::errc()) return false;
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (version.starts_with('.')) version.remove_prefix(1);
  }
  return parts >= first;
}

std::optional<RegistryEntry> ClaudeCode::parse_registry_file(std::string_view file_name,
                                                             std::string_view text) const {
  if (text.size() > registry_bytes_max) return std::nullopt;
  simdjson::dom::parser parser;
  object from;
  if (parser.parse(text.data(), text.size()).get(from) != simdjson::SUCCESS) return std::nullopt;
  RegistryEntry entry;
  entry.pid = number_of(from, "pid");
  if (entry.pid <= 0) entry.pid = registry_pid(file_name).value_or(0);
  if (from["spare"].get(entry.is_spare) != simdjson::SUCCESS) entry.is_spare = false;
  if (!entry.is_spare) entry.session = text_of(from, "sessionId");
  entry.cwd = text_of(from, "cwd");
  if (std::find(made_up_names.begin(), made_up_names.end(), text_of(from, "nameSource")) ==
      made_up_names.end())
    entry.name = text_of(from, "name");
  entry.version = text_of(from, "version");
  entry.process_start = text_of(from, "procStart");
  if (entry.process_start.empty())
    if (const std::int64_t start = number_of(from, "procStart"); start > 0)
      entry.process_start = std::to_string(start);
  entry.pid_domain = text_of(from, "pidDomain");
  set_state(entry, text_of(from, "status"), text_of(from, "waitingFor"));
  for (const char* time : {"statusUpdatedAt", "updatedAt", "startedAt"})
    if (entry.updated_ms == 0) entry.updated_ms = number_of(from, time);
  return entry;
}

SubagentMeta ClaudeCode::parse_subagent_meta(std::string_view text) const {
  SubagentMeta meta;
  simdjson::dom::parser parser;
  object from;
  if (parser.parse(text.data(), text.size()).get(from)) return meta;
  meta.agent_type = text_of(from, "agentType");
  meta.description = text_of(from, "description");
  meta.call = text_of(from, "toolUseId");
  meta.parent_agent = text_of(from, "parentAgentId");
  if (std::int64_t depth = 0; !from["spawnDepth"].get(depth))
    meta.depth = static_cast<int>(std::clamp<std::int64_t>(depth, 0, 1000));
  return meta;
}

std::optional<std::vector<Todo>> ClaudeCode::parse_todo_list(std::string_view text) const {
  simdjson::dom::parser parser;
  array from;
  if (text.size() > todo_bytes_max || parser.parse(text.data(), text.size()).get(from) != simdjson::SUCCESS)
    return std::nullopt;
  std::vector<Todo> todos;
  for (const element each : from) {
    object todo;
    if (todos.size() == todos_max) break;
    if (each.get(todo) == simdjson::SUCCESS) todos.push_back(todo_of_file(todo, "content"));
  }
  return todos;
}

std::optional<std::uint64_t> ClaudeCode::todo_number(std::string_view file_name) const {
  return number_in_name<std::uint64_t>(file_name);
}

std::optional<Todo> ClaudeCode::parse_todo(std::string_view text) const {
  simdjson::dom::parser parser;
  object from;
  if (text.size() > todo_bytes_max || parser.parse(text.data(), text.size()).get(from) != simdjson::SUCCESS)
    return std::nullopt;
  Todo todo = todo_of_file(from, "subject");
  if (todo.content.empty()) return std::nullopt;
  return todo;
}

}  // namespace earshot::claude_code
