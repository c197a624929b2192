#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot {

/// Names a prefix of a transcript: all bytes before `offset`, and the first `index` events of the line that
/// ends there. On the wire it is opaque text: `<offset>.<index>.<16 hex digits>`.
struct Cursor {
  std::uint64_t offset = 0;       // where the next unread line begins
  std::uint32_t index = 0;        // 0 only at the beginning or after a line without events
  std::uint64_t prefix_hash = 0;  // of the bytes before `offset` (prefix_hash.hpp)
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// The beginning of every transcript. Its hash is 0 instead of the hash of no bytes, which is the secret key.
constexpr Cursor begin_cursor{};

constexpr std::size_t cursor_bytes_max = 48;  // of its text
std::string to_string(const Cursor& cursor);
void append_cursor(std::string& out, const Cursor& cursor);

/// Nothing unless the text is exactly what to_string writes.
std::optional<Cursor> parse_cursor(std::string_view text);

}  // namespace earshot
