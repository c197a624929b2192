#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace earshot {

/// 64 bits that stand for every whole line so far: mark' = XXH3_64bits_withSeed(line with its LF, mark),
/// beginning with a secret key of the host, so that a cursor that leaves the machine is no oracle for the
/// text.
class PrefixHash {
 public:
  explicit PrefixHash(std::uint64_t key) : value_(key) {}
  std::uint64_t value() const { return value_; }
  /// One whole line with its LF.
  void add_line(std::span<const char> bytes);

 private:
  std::uint64_t value_;
};

/// The mark of a line that arrives in pieces and is not kept: too long to keep, or read only to verify a
/// prefix.
class LineHash {
 public:
  LineHash();
  ~LineHash();
  LineHash(LineHash&&) noexcept;
  LineHash& operator=(LineHash&&) noexcept;
  void begin(std::uint64_t mark);
  void add(std::span<const char> bytes);
  std::uint64_t end() const;  // the mark after the line

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The mark of a prefix, from its bytes in pieces of any size; nothing is decoded. Whole lines only: bytes
/// after the last LF do not count yet.
class PrefixHasher {
 public:
  explicit PrefixHasher(std::uint64_t key) : mark_(key) {}
  void add(std::span<const char> bytes);
  std::uint64_t value() const { return mark_; }

 private:
  std::uint64_t mark_;
  bool open_ = false;
  LineHash hash_;
};

}  // namespace earshot
