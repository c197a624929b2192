#include "notifier/rules_reader.hpp"

#include <algorithm>
#include <sstream>

#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::notifier {

void RulesReader::add_problem(const toml::source_region& at, std::string why) const {
  problems.push_back({file, static_cast<int>(at.begin.line), std::move(why)});
}

void RulesReader::add_type_error(std::string_view key, const toml::node& node,
                                 std::string_view expected) const {
  std::ostringstream type;
  type << node.type();
  const bool vowel = type.str() == "integer" || type.str() == "array";
  add_problem(node.source(), "`" + std::string(key) + "` is " + std::string(expected) + ", not " +
                                 (vowel ? "an " : "a ") + type.str());
}

void RulesReader::add_unknown_key(const toml::key& key, const std::vector<std::string_view>& known) const {
  std::string why = "unknown key `" + std::string(key.str()) + "`; did you mean `" +
                    std::string(nearest_word(key.str(), known)) + "`? Keys:";
  for (const std::string_view each : known) why += (why.ends_with(':') ? " " : ", ") + std::string(each);
  add_problem(key.source(), std::move(why));
}

std::optional<std::string> RulesReader::read_string(std::string_view key, const toml::node& node) const {
  auto text = node.value_exact<std::string>();
  if (!text) add_type_error(key, node, "a string");
  return text;
}

std::optional<bool> RulesReader::read_bool(std::string_view key, const toml::node& node) const {
  const auto flag = node.value_exact<bool>();
  if (!flag) add_type_error(key, node, "true or false");
  return flag;
}

std::optional<std::vector<std::string>> RulesReader::read_strings(std::string_view key,
                                                                  const toml::node& node) const {
  constexpr std::string_view expected = "a string or an array of strings";
  if (auto one = node.value_exact<std::string>()) return std::vector{*one};
  const toml::array* const array = node.as_array();
  if (array == nullptr) {
    add_type_error(key, node, expected);
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const toml::node& item : *array) {
    auto text = item.value_exact<std::string>();
    if (!text) {
      add_type_error(key, item, expected);
      return std::nullopt;
    }
    texts.push_back(std::move(*text));
  }
  return texts;
}

std::optional<std::int64_t> RulesReader::read_duration(std::string_view key, const toml::node& node) const {
  constexpr std::string_view expected =
      "a duration in quotes, such as \"500ms\", \"30s\", \"5m\" or \"1h30m\"";
  const auto value = node.value_exact<std::string>();
  if (!value) {
    add_type_error(key, node, expected);
    return std::nullopt;
  }
  const auto duration = parse_duration(*value, rule_duration_max);
  if (!duration) {
    add_problem(node.source(),
                "`" + std::string(key) + "` is " + std::string(expected) + ", not \"" + *value + "\"");
    return std::nullopt;
  }
  return duration->count();
}

std::optional<std::vector<QuietHours>> RulesReader::read_quiet_hours(std::string_view key,
                                                                     const toml::node& node) const {
  const auto value = read_strings(key, node);
  if (!value) return std::nullopt;
  std::vector<QuietHours> hours;
  for (const std::string& each : *value) {
    const auto parsed = parse_quiet_hours(each);
    if (!parsed) {
      add_problem(
          node.source(),
          "`" + std::string(key) +
              "` is a time range such as \"22:00-07:00\", \"sat,sun\" or \"mon-fri 12:00-13:00\", not \"" +
              each + "\"");
      return std::nullopt;
    }
    hours.push_back(*parsed);
  }
  return hours;
}

std::optional<std::size_t> RulesReader::read_choice(std::string_view key, const toml::node& node,
                                                    const std::vector<std::string_view>& choices) const {
  const auto value = read_string(key, node);
  if (!value) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), *value);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  std::string why = "`" + std::string(key) + "` is ";
  for (std::size_t i = 0; i < choices.size(); ++i)
    why += (i == 0                    ? ""
            : i + 1 == choices.size() ? " or "
                                      : ", ") +
           std::string("\"") + std::string(choices[i]) + "\"";
  add_problem(node.source(), why + ", not \"" + *value + "\"");
  return std::nullopt;
}

std::string RulesReader::expand_home(const std::string& value) const {
  return value.starts_with("~/") ? home + value.substr(1) : value;
}

}  // namespace earshot::notifier
