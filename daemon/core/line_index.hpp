// JSON lines without a tree: a scan indexes the structural characters of a chunk of lines (line_scan.hpp),
// and one walk over the index per line checks the grammar and records where each bracket closes. The index
// and those records are the tree: a value is a number in the index, strings stay in the text until they are
// read (line_value.hpp).
//
// Lines are independent although they are indexed together. An LF inside a string is a raw control character,
// for which the index of the whole chunk fails; then each line is indexed alone. If it does not fail, the
// number of unescaped quotes before each LF is even, a backslash escapes at most the LF, and UTF-8 sequences
// and scalars end at the LF: the chunk's index is the concatenation of its lines' indexes.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/json_scan.hpp"
#include "core/line_scan.hpp"

namespace earshot {

struct WalkRules {
  std::size_t depth_max = nesting_max;  // as simdjson counts: an empty object or array is no level
  bool any_number = false;              // none is in doubt
};

/// The index of one chunk at a time. Per byte of the largest chunk, 9 bytes are reserved; only those of
/// structural characters are touched: about a tenth for transcripts, all for a text of brackets.
class LineIndex {
 public:
  explicit LineIndex(LineScanner::Kernel kernel = LineScanner::fastest_kernel()) : scanner_(kernel) {}

  static constexpr std::size_t chunk_bytes_max = 256 << 10;    // a longer line has larger buffers
  static constexpr std::size_t line_bytes_kept = 1 << 20;      // so have lines that follow
  static constexpr std::size_t line_bytes_max = 1u << 31;      // a longer line cannot be indexed
  static constexpr std::size_t decoded_bytes_kept = 64 << 10;  // of a record's decoded strings
  static constexpr std::uint32_t digits_max = 18;              // any integer with so many fits 64 bits

  enum class Verdict {
    accepted,  // the DOM accepts the line too, with the same values
    refused,   // the DOM refuses it
    in_doubt,  // no object, or a number close to a limit: only the DOM decides
  };

  /// Indexes whole lines, each with its LF. `scan_padding` bytes after them are readable; their values do not
  /// matter. False: one of them has invalid UTF-8, an open string, a control character in a string or a bad
  /// escape, all are blank, or memory is short.
  bool read(std::string_view lines);

  /// Checks the line at the current position, whose LF is at `line_end`, and moves behind it. If it is
  /// accepted, its value has the number `root`.
  Verdict walk_line(std::uint32_t line_end, std::uint32_t& root, const WalkRules& rules = {});
  /// Moves back to a line, by the entry that it begins with.
  void move_to(std::uint32_t root) { next_ = root; }
  /// Moves behind the line without a check.
  void skip_line(std::uint32_t line_end);
  bool is_blank_line(std::uint32_t line_end) const { return at_[next_] >= line_end; }

  /// Frees the buffers of a line longer than a chunk, unless they are no longer than `line_bytes_kept` and
  /// were touched no more than a chunk can touch them.
  void release_long();

  const std::vector<std::uint32_t>& line_ends() const { return scanner_.line_ends(); }

  // For values of the last accepted line.
  const char* text() const { return reinterpret_cast<const char*>(text_); }
  std::uint32_t at(std::uint32_t number) const { return at_[number]; }        // offset in the text
  char character(std::uint32_t number) const { return characters_[number]; }  // the one at that offset
  std::uint32_t close_of(std::uint32_t number) const { return close_[number]; }
  const std::uint32_t* offsets() const { return at_; }          // by number
  const char* characters() const { return characters_; }        // by number
  const std::uint32_t* closes() const { return close_.get(); }  // by the number of an opening bracket
  bool may_have_backslash(std::uint32_t begin, std::uint32_t end) const {
    return scanner_.may_have_backslash(begin, end);
  }
  /// The content of a string with its escapes replaced; valid until forget_decoded().
  std::string_view decode(std::string_view content) const;
  void forget_decoded();

 private:
  bool reserve(std::size_t bytes);
  Verdict walk(std::uint32_t& next, std::uint32_t line_end, const WalkRules& rules);

  LineScanner scanner_;
  std::size_t capacity_ = 0;
  const std::uint8_t* text_ = nullptr;
  std::uint32_t* at_ = nullptr;  // offsets of structural characters and of each scalar's first character
  char* characters_ = nullptr;   // the one at each of these offsets
  std::uint32_t count_ = 0, count_max_ = 0, next_ = 0;
  std::unique_ptr<std::uint32_t[]> close_;           // by the number of an opening bracket
  std::array<std::uint32_t, nesting_max + 1> open_;  // twice the bracket's number, plus 1 for an array

  // Decoded strings of the current record; a block is never resized.
  mutable std::vector<std::unique_ptr<char[]>> decoded_;
  mutable char* decoded_next_ = nullptr;
  mutable std::size_t decoded_left_ = 0, decoded_first_bytes_ = 0;
};

}  // namespace earshot
