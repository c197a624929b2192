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

}  // namespace

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

std::size_t unescape_json(std::string_view content, char* to) {
  char* out = to;
  bool is_ascii = true;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = run_end(content, at, is_ascii);
    std::memcpy(out, content.data() + at, end - at);
    out += end - at;
    at = end;
    if (at == content.size()) break;
    const JsonEscape escape = content[at] == '\\' ? parse_json_escape(content, at) : JsonEscape{};
    if (escape.size > 0)
      out = put_utf8(out, escape.code_point);
    else
      *out++ = content[at];
    at += std::max<std::size_t>(escape.size, 1);
  }
  return static_cast<std::size_t>(out - to);
}

std::string unescape_json(std::string_view content) {
  std::string text(content.size(), '\0');
  text.resize(unescape_json(content, text.data()));
  return text;
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
