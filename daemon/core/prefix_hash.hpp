// The keyed hash of all complete lines so far, chained line by line:
//   hash' = XXH3_64bits_withSeed(line with its LF, hash), starting with a secret key of the host.
// The key makes a cursor useless as an oracle for the text.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace earshot {

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
