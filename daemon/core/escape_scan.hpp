// The part of a JSON line that simdjson's first stage does not look at: escapes, and where lines end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace earshot {

/// What a scan finds besides bad escapes. Offsets are relative to the scanned text.
struct ScannedLines {
  static constexpr std::uint32_t block_bytes = 64;

  std::vector<std::uint32_t> line_ends;         // of each LF
  std::vector<std::uint64_t> backslash_blocks;  // a bit per block: it contains a backslash

  /// Makes room for a text of `bytes` bytes.
  void reset(std::size_t bytes);
  /// False: there is no backslash in the text from `begin` to `end`, inclusive. Exact to a block only.
  bool may_have_backslash(std::uint32_t begin, std::uint32_t end) const {
    const std::uint32_t first = begin / block_bytes, count = end / block_bytes - first + 1;
    if (count > 56) return true;
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const char*>(backslash_blocks.data()) + first / 8, sizeof bits);
    return (bits >> first % 8 & ((std::uint64_t{1} << count) - 1)) != 0;
  }
};

/// True if every escape of the text is one that JSON permits, surrogates in pairs. A backslash outside a
/// string counts as an escape, too: such a text is not JSON anyway. `scan_padding` bytes after the text are
/// readable; their values do not matter.
using EscapeScan = bool (*)(std::string_view text, ScannedLines& found);
constexpr std::size_t scan_padding = 64;

struct NamedEscapeScan {
  std::string_view kernel;  // as simdjson names its own
  EscapeScan scan;
};
/// All that this processor supports, the fastest one first; the last one is portable.
std::span<const NamedEscapeScan> escape_scans();

}  // namespace earshot
