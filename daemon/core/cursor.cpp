#include "core/cursor.hpp"

#include <charconv>

namespace earshot {

std::string to_string(const Cursor& cursor) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = std::to_string(cursor.offset);
  text += '.';
  text += std::to_string(cursor.index);
  text += '.';
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(cursor.mark >> shift) & 15];
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
      !number(cursor.mark, 16, '\0') || to_string(cursor) != text)
    return std::nullopt;
  return cursor;
}

}  // namespace earshot
