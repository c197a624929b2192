#include "base/text.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

namespace earshot {

std::size_t utf8_length(std::string_view text, std::size_t& bad) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  const unsigned lead = byte(0);
  bad = 1;
  if (text.empty()) return bad = 0;
  if (lead < 0x80) return 1;
  std::size_t length = 0;
  unsigned low = 0x80, high = 0xBF;  // the range of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) length = 2;
  if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;  // surrogates are not characters
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  }
  if (length == 0 || byte(1) < low || byte(1) > high) return 0;
  for (bad = 2; bad < length; ++bad)
    if (byte(bad) < 0x80 || byte(bad) > 0xBF) return 0;
  return length;
}

char* put_utf8(char* out, char32_t c) {
  const auto put = [&](char32_t value) { *out++ = static_cast<char>(value); };
  if (c < 0x80) return put(c), out;
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 63));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 63));
    put(0x80 | (c >> 6 & 63));
  }
  put(0x80 | (c & 63));
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  char bytes[4];
  out.append(bytes, put_utf8(bytes, c));
}

std::size_t find_last(std::string_view text, char byte) {
#ifdef __GLIBC__  // rfind() looks at one byte at a time
  const void* const found = text.empty() ? nullptr : ::memrchr(text.data(), byte, text.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : text.npos;
#else
  return text.rfind(byte);
#endif
}

std::string_view cut_utf8(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  // A character has at most three continuation bytes. Text with more of them in a row is not UTF-8 and may be
  // cut anywhere.
  for (int back = 0; back < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; ++back)
    --end;
  return text.substr(0, end);
}

std::string quote_for_shell(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:@%,";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string_view trim(std::string_view text, std::string_view blanks) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return text.substr(0, 0);
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

namespace {

std::size_t next_character(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

/// The end of the text that the part of a pattern, which has no `*`, matches from `at` on; npos: it does not.
std::size_t match_part(std::string_view part, std::string_view text, std::size_t at) {
  for (const char c : part) {
    if (at >= text.size() || (c != '?' && c != text[at])) return text.npos;
    at = c == '?' ? next_character(text, at) : at + 1;
  }
  return at;
}

/// The end of the first match at a character from `at` on, or of the one that ends with the text; npos: there
/// is none. Without a `?` in linear time.
std::size_t find_part(std::string_view part, std::string_view text, std::size_t at, bool at_end) {
  if (part.find('?') == part.npos) {
    if (at_end) return text.size() - at >= part.size() && text.ends_with(part) ? text.size() : text.npos;
    const void* const found = ::memmem(text.data() + at, text.size() - at, part.data(), part.size());
    return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) + part.size()
                 : text.npos;
  }
  for (; at < text.size(); at = next_character(text, at)) {
    const std::size_t end = match_part(part, text, at);
    if (end != text.npos && (!at_end || end == text.size())) return end;
  }
  return text.npos;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t star = pattern.find('*');
  std::size_t at = match_part(pattern.substr(0, star), text, 0);
  if (star == pattern.npos) return at == text.size();
  while (at != text.npos) {
    pattern.remove_prefix(star + 1);
    star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    const bool is_last = star == pattern.npos;
    if (is_last && part.empty()) return true;
    if (!part.empty()) at = find_part(part, text, at, is_last);
    if (is_last) break;
  }
  return at != text.npos;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);  // distances of a's beginning to each beginning of b
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known) {
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

std::string_view suggest_word(std::string_view word, const std::vector<std::string_view>& known) {
  const std::string_view best = nearest_word(word, known);
  const std::size_t distance_max = std::max<std::size_t>(2, word.size() / 3);
  const std::size_t distance = edit_distance(word, best);
  return distance <= distance_max && distance < word.size() ? best : std::string_view{};
}

}  // namespace earshot
