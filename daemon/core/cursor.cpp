#include "core/cursor.hpp"

#include <charconv>

#include "base/hex.hpp"

namespace earshot {

void append_cursor(std::string& out, const Cursor& cursor) {
  char text[cursor_bytes_max];
  char* at = std::to_chars(text, text + 20, cursor.offset).ptr;
  *at++ = '.';
  at = std::to_chars(at, at + 10, cursor.index).ptr;
  *at++ = '.';
  for (int shift = 60; shift >= 0; shift -= 4) *at++ = hex_digits[(cursor.prefix_hash >> shift) & 15];
  out.append(text, at);
}

std::string to_string(const Cursor& cursor) {
  std::string text;
  append_cursor(text, cursor);
  return text;
}

std::optional<Cursor> parse_cursor(std::string_view text) {
  Cursor cursor;
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&](auto& value, int base, char stop) {
    const auto [next, error] = std::from_chars(at, end, value, base);
    if (error != std::errc{} || (stop ? next == end || *next != stop : next != end)) return false;
    at = stop ? next + 1 : next;
    return true;
  };
  if (!number(cursor.offset, 10, '.') || !number(cursor.index, 10, '.') || end - at != 16 ||
      !number(cursor.prefix_hash, 16, '\0') || to_string(cursor) != text)
    return std::nullopt;
  return cursor;
}

}  // namespace earshot
