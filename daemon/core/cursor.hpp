// Cursors, and the keyed hash of all complete lines so far, chained line by line:
//   hash' = XXH3_64bits_withSeed(line with its LF, hash), starting with a secret key of the host.
// The key makes a cursor useless as an oracle for the text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace earshot {

/// Names a prefix of a transcript: all bytes before `offset`, and the first `index` events of the line that
/// ends there. On the wire it is opaque text: `<offset>.<index>.<16 hex digits>`.
struct Cursor {
  std::uint64_t offset = 0;       // where the next unread line begins
  std::uint32_t index = 0;        // 0 only at the beginning or after a line without events
  std::uint64_t prefix_hash = 0;  // of the bytes before `offset`
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// The beginning of every transcript. Its hash is 0 instead of the hash of no bytes, which is the secret key.
constexpr Cursor begin_cursor{};

constexpr std::size_t cursor_bytes_max = 48;  // of its text
std::string to_string(const Cursor& cursor);
void append_cursor(std::string& out, const Cursor& cursor);

/// Nothing unless the text is exactly what to_string writes.
std::optional<Cursor> parse_cursor(std::string_view text);

class PrefixHash {
 public:
  explicit PrefixHash(std::uint64_t key) : value_(key) {}
  std::uint64_t value() const { return value_; }
  /// Adds one complete line with its LF.
  void add_line(std::span<const char> bytes);

 private:
  std::uint64_t value_;
};

/// Hashes one line that arrives in pieces: it is too long to keep, or is read only to verify a prefix.
class LineHash {
 public:
  LineHash();
  ~LineHash();
  LineHash(LineHash&&) noexcept;
  LineHash& operator=(LineHash&&) noexcept;
  void begin(std::uint64_t prefix_hash);
  void add(std::span<const char> bytes);
  std::uint64_t end() const;  // the prefix hash after the line

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Computes the prefix hash from bytes in pieces of any size, without decoding them. Bytes after the last LF
/// do not count yet.
class PrefixHasher {
 public:
  explicit PrefixHasher(std::uint64_t key) : value_(key) {}
  void add(std::span<const char> bytes);
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
  bool is_line_open_ = false;
  LineHash line_hash_;
};

}  // namespace earshot
