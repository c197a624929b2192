// The bytes of JSON lines: where structural characters and line ends are, and whether strings are well
// formed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace earshot {

/// How many bytes after a scanned text are readable; their values do not matter.
constexpr std::size_t scan_padding = 64;

/// Offsets are relative to the scanned text.
class LineScanner {
 public:
  /// All kernels find the same. `avx2` reads 64 bytes at a time: simdjson's first stage with two things
  /// added, it checks escapes, and it is quick inside strings, of which transcripts mostly consist.
  enum class Kernel { avx2, portable };
  static constexpr std::uint32_t block_bytes = 64;
  static constexpr std::uint32_t sentinels = 4;  // entries after the last one, for the caller

  /// Those that this processor supports, the fastest one first.
  static std::span<const Kernel> kernels();
  static Kernel fastest_kernel() { return kernels().front(); }

  explicit LineScanner(Kernel kernel = fastest_kernel()) : kernel_(kernel) {}

  /// Makes room for texts of up to `bytes` bytes: 5 bytes per byte, touched when they are written. False:
  /// memory is short.
  bool reserve(std::size_t bytes);
  /// Frees that room.
  void release();
  /// Scans whole lines, as long as reserved. False: invalid UTF-8, an open string, a control character in a
  /// string, a bad escape, a backslash outside strings, or nothing but white space.
  bool scan(std::string_view lines);

  /// The offset of each LF.
  const std::vector<std::uint32_t>& line_ends() const { return line_ends_; }
  /// The offset of each structural character and of each scalar's first character.
  std::uint32_t* structurals() const { return structurals_.get(); }
  /// The character at each of these offsets.
  char* characters() const { return characters_.get(); }
  std::uint32_t count() const { return count_; }
  /// False: there is no backslash in the text from `begin` to `end`, inclusive. Exact to a block only.
  bool may_have_backslash(std::uint32_t begin, std::uint32_t end) const {
    const std::uint32_t first = begin / block_bytes, count = end / block_bytes - first + 1;
    if (count > 56) return true;
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const char*>(backslash_blocks_.data()) + first / 8, sizeof bits);
    return (bits >> first % 8 & ((std::uint64_t{1} << count) - 1)) != 0;
  }
  const std::vector<std::uint64_t>& backslash_blocks() const { return backslash_blocks_; }

 private:
  bool scan_avx2(std::string_view lines);
  bool scan_portable(std::string_view lines);
  bool skip_string(std::string_view lines, std::size_t& at);

  Kernel kernel_;
  std::unique_ptr<std::uint32_t[]> structurals_;
  std::unique_ptr<char[]> characters_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> line_ends_;
  std::vector<std::uint64_t> backslash_blocks_;  // a bit per block: it contains a backslash
};

}  // namespace earshot
