#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot {

/// Names a prefix of a transcript: every byte before `offset`, and of the line that ends there its first
/// `index` events. `prefix_hash` is the keyed hash of those bytes (prefix_hash.hpp). On the wire it is opaque
/// text:
/// `<offset>.<index>.<16 hex digits>`.
struct Cursor {
  std::uint64_t offset = 0;  // where the next unread line begins
  std::uint32_t index = 0;   // how many events of the line before it are included; 0 only at the very
                             // beginning or after a silent line
  std::uint64_t prefix_hash = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// The beginning of every transcript. Its hash is 0, so that the key does not show.
constexpr Cursor begin_cursor{};

constexpr std::size_t cursor_bytes_max = 48;  // of its text
std::string to_string(const Cursor& cursor);
void append_cursor(std::string& out, const Cursor& cursor);  // the same

/// Nothing when the text is not exactly what to_string writes.
std::optional<Cursor> parse_cursor(std::string_view text);

}  // namespace earshot
