#include "notifier/rules_reader.hpp"

#include <algorithm>
#include <sstream>

#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::notifier {
namespace {

std::string quoted_key(const Item& item) { return "`" + std::string(item.key) + "`"; }

}  // namespace

void RulesReader::add_problem(const toml::source_region& at, std::string why) const {
  problems.push_back({file, static_cast<int>(at.begin.line), std::move(why)});
}

void RulesReader::add_type_error(const Item& item, std::string_view expected) const {
  std::ostringstream type;
  type << item.node.type();
  const bool vowel = type.str() == "integer" || type.str() == "array";
  add_problem(item, quoted_key(item) + " is " + std::string(expected) + ", not " + (vowel ? "an " : "a ") +
                        type.str());
}

void RulesReader::add_unknown_key(const toml::key& key, Names known) const {
  std::string why = "unknown key `" + std::string(key.str()) + "`; did you mean `" +
                    std::string(nearest_word(key.str(), {known.begin(), known.end()})) + "`? Keys:";
  for (const std::string_view each : known) why += (why.ends_with(':') ? " " : ", ") + std::string(each);
  add_problem(key.source(), std::move(why));
}

std::optional<std::string> RulesReader::read_string(const Item& item) const {
  auto text = item.node.value_exact<std::string>();
  if (!text) add_type_error(item, "a string");
  return text;
}

std::optional<bool> RulesReader::read_bool(const Item& item) const {
  const auto flag = item.node.value_exact<bool>();
  if (!flag) add_type_error(item, "true or false");
  return flag;
}

std::optional<std::vector<std::string>> RulesReader::read_strings(const Item& item) const {
  if (auto one = item.node.value_exact<std::string>()) return std::vector{*one};
  const toml::array* const array = item.node.as_array();
  std::vector<std::string> texts;
  for (std::size_t i = 0; array != nullptr && i < array->size(); ++i) {
    if (auto text = (*array)[i].value_exact<std::string>()) texts.push_back(std::move(*text));
  }
  if (array != nullptr && texts.size() == array->size()) return texts;
  add_type_error(item, "a string or an array of strings");
  return std::nullopt;
}

std::optional<std::int64_t> RulesReader::read_duration(const Item& item) const {
  constexpr std::string_view expected =
      "a duration in quotes, such as \"500ms\", \"30s\", \"5m\" or \"1h30m\"";
  const auto value = item.node.value_exact<std::string>();
  const auto duration = value ? parse_duration(*value, rule_duration_max) : std::nullopt;
  if (duration) return duration->count();
  if (!value) {
    add_type_error(item, expected);
  } else {
    add_problem(item, quoted_key(item) + " is " + std::string(expected) + ", not \"" + *value + "\"");
  }
  return std::nullopt;
}

std::optional<std::vector<QuietHours>> RulesReader::read_quiet_hours(const Item& item) const {
  const auto value = read_strings(item);
  if (!value) return std::nullopt;
  std::vector<QuietHours> hours;
  for (const std::string& each : *value) {
    if (const auto parsed = parse_quiet_hours(each)) {
      hours.push_back(*parsed);
      continue;
    }
    add_problem(
        item, quoted_key(item) +
                  " is a time range such as \"22:00-07:00\", \"sat,sun\" or \"mon-fri 12:00-13:00\", not \"" +
                  each + "\"");
    return std::nullopt;
  }
  return hours;
}

std::optional<std::size_t> RulesReader::read_choice(const Item& item, Names choices) const {
  const auto value = read_string(item);
  if (!value) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), *value);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  std::string why = quoted_key(item) + " is ";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) why += i + 1 == choices.size() ? " or " : ", ";
    why += "\"" + std::string(choices[i]) + "\"";
  }
  add_problem(item, why + ", not \"" + *value + "\"");
  return std::nullopt;
}

std::optional<std::string> RulesReader::read_path(const Item& item) const {
  const auto value = read_string(item);
  return value ? std::optional(expand_home(*value)) : std::nullopt;
}

std::string RulesReader::expand_home(const std::string& path) const {
  return path.starts_with("~/") ? home + path.substr(1) : path;
}

}  // namespace earshot::notifier
