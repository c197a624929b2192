#include "serve/http/query.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.hpp"

namespace earshot::serve {
namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return {};
      const int high = digit_of(text[i + 1]), low = digit_of(text[i + 2]);
      if (high < 0 || low < 0) return {};
      out += static_cast<char>(16 * high + low);
      i += 2;
    }
  }
  return out;
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t bad = 0;
    const std::size_t length = utf8_length(bytes, bad);
    if (length == 0 || bytes.front() == '\0') return false;
    bytes.remove_prefix(length);
  }
  return true;
}

}  // namespace

std::string_view Query::one(std::string_view key, std::string_view fallback) const {
  for (auto it = pairs.rbegin(); it != pairs.rend(); ++it) {
    if (it->first == key) return it->second;
  }
  return fallback;
}

std::vector<std::string_view> Query::all(std::string_view key) const {
  std::vector<std::string_view> values;
  for (const auto& [name, value] : pairs) {
    if (name == key) values.push_back(value);
  }
  return values;
}

bool Query::has(std::string_view key) const {
  return std::any_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return pair.first == key; });
}

bool Query::flag(std::string_view key, bool fallback) {
  if (!has(key)) return fallback;
  const std::string_view word = one(key);
  if (word == "true" || word == "1" || word.empty()) return true;
  if (word == "false" || word == "0") return false;
  if (error.empty()) error = "`" + std::string(key) + "` is true or false";
  return fallback;
}

std::size_t Query::number(std::string_view key, std::size_t fallback, std::size_t min, std::size_t max) {
  if (!has(key)) return fallback;
  const std::string_view word = one(key);
  std::size_t value = 0;
  const auto [end, ec] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (ec == std::errc() && end == word.data() + word.size() && value >= min && value <= max) return value;
  if (error.empty())
    error =
        "`" + std::string(key) + "` is a number from " + std::to_string(min) + " to " + std::to_string(max);
  return fallback;
}

bool Query::is_meta_view() {
  const std::string_view view = one("view", "full");
  if (error.empty() && view != "full" && view != "meta") error = "`view` is full or meta";
  return view == "meta";
}

void Query::only(std::span<const std::string_view> known) {
  for (const auto& [name, value] : pairs) {
    if (!error.empty() || std::find(known.begin(), known.end(), name) != known.end()) continue;
    error = "unknown key `" + name + "`; known keys:";
    for (const std::string_view one : known) error.append(" ").append(one);
  }
}

Query parse_query(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    if (query.pairs.size() == Query::pairs_max) {
      query.error = "more than " + std::to_string(Query::pairs_max) + " keys";
      return query;
    }
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto key = decode(pair.substr(0, equals));
    auto value = decode(equals < pair.size() ? pair.substr(equals + 1) : std::string_view());
    if (!key || !value || !is_text(*key) || !is_text(*value)) {
      query.error = "the query must be percent-encoded UTF-8";
      return query;
    }
    query.pairs.emplace_back(std::move(*key), std::move(*value));
  }
  return query;
}

}  // namespace earshot::serve
