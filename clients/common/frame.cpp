#include "common/frame.hpp"

#include <string>

namespace earshot::common {
namespace {

constexpr std::size_t safe_number_bytes = 15;  // a number this short fits a 64-bit integer

bool in_number(char c) {
  return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
}

// simdjson's DOM rejects a document that contains a number outside of the ranges of double and 64-bit
// integers, and a tool's input may contain one: such numbers become strings.
std::string quote_large_numbers(std::string_view json) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size();) {
    const char c = json[i];
    if (in_string) {
      in_string = c != '"';
      const std::size_t size = c == '\\' && i + 1 < json.size() ? 2 : 1;
      out.append(json.substr(i, size));
      i += size;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      std::size_t end = i;
      while (end < json.size() && in_number(json[end])) ++end;
      const std::string_view number = json.substr(i, end - i);
      const bool large = number.size() > safe_number_bytes || number.find_first_of("eE") != number.npos;
      if (large) out += '"';
      out.append(number);
      if (large) out += '"';
      i = end;
    } else {
      in_string = c == '"';
      out += c;
      ++i;
    }
  }
  return out;
}

}  // namespace

std::optional<simdjson::dom::element> Fields::get(std::string_view key) const {
  simdjson::dom::element element;
  if (!present_ || object_.at_key(key).get(element) != simdjson::SUCCESS) return std::nullopt;
  return element;
}

std::string_view Fields::text(std::string_view key) const {
  const auto element = get(key);
  std::string_view text;
  return element && element->get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::optional<std::int64_t> Fields::integer(std::string_view key) const {
  const auto element = get(key);
  std::int64_t value = 0;
  if (!element || element->get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::uint64_t Fields::count(std::string_view key) const {
  const auto value = integer(key);
  return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

bool Fields::flag(std::string_view key) const {
  const auto element = get(key);
  bool value = false;
  return element && element->get(value) == simdjson::SUCCESS && value;
}

Fields Fields::object(std::string_view key) const {
  const auto element = get(key);
  simdjson::dom::object object;
  return element && element->get(object) == simdjson::SUCCESS ? Fields(object) : Fields();
}

std::vector<Fields> Fields::objects(std::string_view key) const {
  std::vector<Fields> out;
  const auto element = get(key);
  simdjson::dom::array array;
  if (!element || element->get(array) != simdjson::SUCCESS) return out;
  for (const simdjson::dom::element item : array) {
    simdjson::dom::object object;
    if (item.get(object) == simdjson::SUCCESS) out.emplace_back(object);
  }
  return out;
}

std::vector<std::string_view> Fields::texts(std::string_view key) const {
  std::vector<std::string_view> out;
  const auto element = get(key);
  simdjson::dom::array array;
  if (!element || element->get(array) != simdjson::SUCCESS) return out;
  for (const simdjson::dom::element item : array) {
    std::string_view text;
    if (item.get(text) == simdjson::SUCCESS) out.push_back(text);
  }
  return out;
}

std::size_t Fields::array_size(std::string_view key) const {
  const auto element = get(key);
  simdjson::dom::array array;
  return element && element->get(array) == simdjson::SUCCESS ? array.size() : 0;
}

std::optional<Fields> FrameParser::parse(std::string_view json) {
  simdjson::dom::object object;
  if (parser_.parse(json.data(), json.size()).get(object) == simdjson::SUCCESS) return Fields(object);
  repaired_ = quote_large_numbers(json);
  if (parser_.parse(repaired_).get(object) == simdjson::SUCCESS) return Fields(object);
  return std::nullopt;
}

}  // namespace earshot::common
