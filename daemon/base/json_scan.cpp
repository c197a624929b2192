#include "base/json_scan.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace earshot {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Four hexadecimal digits at `at`; -1 if they are not there.
long hex4(std::string_view text, std::size_t at) {
  if (at + 4 > text.size()) return -1;
  unsigned code = 0;
  const char* const begin = text.data() + at;
  const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
  return error == std::errc{} && end == begin + 4 ? static_cast<long>(code) : -1;
}

// What each letter after a backslash means; 0: nothing.
constexpr auto escape_meanings = [] {
  std::array<unsigned char, 256> meanings{};
  constexpr std::string_view letters = "\"\\/bfnrt", meant = "\"\\/\b\f\n\r\t";
  for (std::size_t n = 0; n < letters.size(); ++n)
    meanings[static_cast<unsigned char>(letters[n])] = static_cast<unsigned char>(meant[n]);
  return meanings;
}();

// Steps through valid JSON without checking it.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  char next() {
    while (at_ < text_.size() && is_json_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  /// Takes a string and returns its content.
  std::string_view string() {
    const std::size_t begin = ++at_;
    for (std::size_t end = text_.find('"', begin); end != text_.npos; end = text_.find('"', end + 1)) {
      std::size_t backslashes = 0;
      while (end - backslashes > begin && text_[end - backslashes - 1] == '\\') ++backslashes;
      if (backslashes % 2 != 0) continue;
      at_ = end + 1;
      return text_.substr(begin, end - begin);
    }
    at_ = text_.size();
    return text_.substr(begin);
  }
  /// Takes a value and returns its text.
  std::string_view value() {
    next();
    const std::size_t begin = at_;
    std::size_t depth = 0;
    do {
      switch (next()) {
        case '"':
          string();
          break;
        case '{':
        case '[':
          ++depth, ++at_;
          break;
        case '}':
        case ']':
          --depth, ++at_;
          break;
        case ',':
        case ':':
          ++at_;
          break;
        default:
          at_ = std::min(text_.find_first_of(" \t\r\n,]}", at_), text_.size());
      }
    } while (depth > 0 && at_ < text_.size());
    return text_.substr(begin, at_ - begin);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view find_member(std::string_view object, std::string_view key) {
  Walker walker(object);
  std::string_view found;
  if (!walker.take('{')) return found;
  while (walker.next() == '"') {
    const std::string_view name = walker.string();
    walker.take(':');
    const std::string_view value = walker.value();
    const bool is_escaped = name.find('\\') != name.npos;
    if (is_escaped ? unescape_json(name) == key : name == key) found = value;
    if (!walker.take(',')) break;
  }
  return found;
}

std::string_view find_element(std::string_view array, std::size_t index) {
  Walker walker(array);
  if (!walker.take('[') || walker.next() == ']') return {};
  for (std::size_t i = 0;; ++i) {
    const std::string_view value = walker.value();
    if (i == index) return value;
    if (!walker.take(',')) return {};
  }
}

JsonEscape parse_json_escape(std::string_view text, std::size_t at) {
  const char letter = at + 1 < text.size() ? text[at + 1] : '\0';
  if (letter != 'u') {
    const unsigned char meaning = escape_meanings[static_cast<unsigned char>(letter)];
    return meaning ? JsonEscape{2, meaning, false} : JsonEscape{};
  }
  const long code = hex4(text, at + 2);
  if (code < 0) return {};
  if (code < 0xD800 || code > 0xDFFF) return {6, static_cast<char32_t>(code), false};
  const long low = code <= 0xDBFF && text.compare(at + 6, 2, "\\u") == 0 ? hex4(text, at + 8) : -1;
  if (low < 0xDC00 || low > 0xDFFF) return {6, 0xFFFD, true};
  return {12, static_cast<char32_t>(0x10000 + (code - 0xD800) * 0x400 + (low - 0xDC00)), false};
}

std::string unescape_json(std::string_view content) {
  std::string text;
  text.reserve(content.size());
  for (std::size_t at = 0;;) {
    const std::size_t backslash = std::min(content.find('\\', at), content.size());
    text.append(content, at, backslash - at);
    at = backslash;
    if (at == content.size()) return text;
    const JsonEscape escape = parse_json_escape(content, at);
    if (escape.size > 0)
      append_utf8(text, escape.code_point);
    else
      text += content[at];
    at += std::max<std::size_t>(escape.size, 1);
  }
}

std::string_view json_scalar_at(std::string_view text, std::size_t at) {
  for (const std::string_view word : {"true", "false", "null"})
    if (text.compare(at, word.size(), word) == 0) return text.substr(at, word.size());
  const std::size_t begin = at;
  const auto next = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto take_digits = [&] {
    const std::size_t first = at;
    while (is_digit(next())) ++at;
    return at > first;
  };
  if (next() == '-') ++at;
  if (next() == '0') {
    ++at;
  } else if (!take_digits()) {
    return {};
  }
  if (next() == '.' && (++at, !take_digits())) return {};
  if (next() == 'e' || next() == 'E') {
    ++at;
    if (next() == '+' || next() == '-') ++at;
    if (!take_digits()) return {};
  }
  return text.substr(begin, at - begin);
}

}  // namespace earshot
