#include "notifier/rules_reader.hpp"

#include <algorithm>
#include <sstream>

namespace earshot::notifier {

void Reader::wrong(const toml::source_region& at, std::string why) const {
  problems.push_back({file, static_cast<int>(at.begin.line), std::move(why)});
}

void Reader::wrong_type(std::string_view key, const toml::node& node, std::string_view wanted) const {
  std::ostringstream type;
  type << node.type();
  const bool vowel = type.str() == "integer" || type.str() == "array";
  wrong(node.source(), "`" + std::string(key) + "` is " + std::string(wanted) + ", not " +
                           (vowel ? "an " : "a ") + type.str());
}

void Reader::unknown(const toml::key& key, const std::vector<std::string_view>& known) const {
  std::string why = "unknown key `" + std::string(key.str()) + "`; did you mean `" +
                    std::string(most_like(key.str(), known)) + "`? Keys:";
  for (const std::string_view each : known) why += (why.ends_with(':') ? " " : ", ") + std::string(each);
  wrong(key.source(), std::move(why));
}

std::optional<std::string> Reader::text(std::string_view key, const toml::node& node) const {
  auto text = node.value_exact<std::string>();
  if (!text) wrong_type(key, node, "a string");
  return text;
}

std::optional<bool> Reader::flag(std::string_view key, const toml::node& node) const {
  const auto flag = node.value_exact<bool>();
  if (!flag) wrong_type(key, node, "true or false");
  return flag;
}

std::optional<std::vector<std::string>> Reader::texts(std::string_view key, const toml::node& node) const {
  constexpr std::string_view wanted = "a string or an array of strings";
  if (auto one = node.value_exact<std::string>()) return std::vector{*one};
  const toml::array* const array = node.as_array();
  if (array == nullptr) {
    wrong_type(key, node, wanted);
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (const toml::node& item : *array) {
    auto text = item.value_exact<std::string>();
    if (!text) {
      wrong_type(key, item, wanted);
      return std::nullopt;
    }
    texts.push_back(std::move(*text));
  }
  return texts;
}

std::optional<std::int64_t> Reader::duration(std::string_view key, const toml::node& node) const {
  constexpr std::string_view wanted =
      "a duration in quotes, such as \"500ms\", \"30s\", \"5m\" or \"1h30m\"";
  const auto said = node.value_exact<std::string>();
  if (!said) {
    wrong_type(key, node, wanted);
    return std::nullopt;
  }
  const auto ms = parse_duration(*said);
  if (!ms)
    wrong(node.source(), "`" + std::string(key) + "` is " + std::string(wanted) + ", not \"" + *said + "\"");
  return ms;
}

std::optional<std::vector<QuietHours>> Reader::quiet(std::string_view key, const toml::node& node) const {
  const auto said = texts(key, node);
  if (!said) return std::nullopt;
  std::vector<QuietHours> hours;
  for (const std::string& each : *said) {
    const auto parsed = parse_quiet_hours(each);
    if (!parsed) {
      wrong(node.source(),
            "`" + std::string(key) +
                "` is a time range such as \"22:00-07:00\", \"sat,sun\" or \"mon-fri 12:00-13:00\", not \"" + each +
                "\"");
      return std::nullopt;
    }
    hours.push_back(*parsed);
  }
  return hours;
}

std::optional<std::size_t> Reader::choice(std::string_view key, const toml::node& node,
                                          const std::vector<std::string_view>& words) const {
  const auto said = text(key, node);
  if (!said) return std::nullopt;
  const auto found = std::find(words.begin(), words.end(), *said);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string why = "`" + std::string(key) + "` is ";
  for (std::size_t i = 0; i < words.size(); ++i)
    why += (i == 0                  ? ""
            : i + 1 == words.size() ? " or "
                                    : ", ") +
           std::string("\"") + std::string(words[i]) + "\"";
  wrong(node.source(), why + ", not \"" + *said + "\"");
  return std::nullopt;
}

std::string Reader::path(const std::string& said) const {
  return said.starts_with("~/") ? home + said.substr(1) : said;
}

}  // namespace earshot::notifier
