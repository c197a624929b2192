// The bytes of JSON lines, 64 at a time: where structural characters and line ends are, and whether strings
// are well formed. simdjson's first stage with two things added: it checks escapes, and it is quick inside
// strings, of which transcripts mostly consist.
#pragma once
#include <cstddef>
#include <cstdint>

namespace earshot {

/// Bytes after a scanned text that are readable; their values do not matter.
constexpr std::size_t scan_padding = 64;

}  // namespace earshot

#if EARSHOT_LINE_WALK
#include <simdjson.h>

#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace earshot {

/// Offsets are relative to the scanned text.
class LineScanner {
 public:
  /// One for each of simdjson's kernels that has a faster equal here; the last one is simdjson's own.
  enum class Kernel { avx512, avx2, simdjson };
  static constexpr std::uint32_t block_bytes = 64;
  static constexpr std::uint32_t sentinels = 4;  // entries after the last one, for the caller

  /// All that this processor supports, the fastest one first.
  static std::span<const Kernel> kernels();
  /// The one that matches simdjson's choice for this processor.
  static Kernel matching_kernel();

  explicit LineScanner(Kernel kernel = matching_kernel()) : kernel_(kernel) {}

  /// Makes room for texts of up to `bytes` bytes: 5 bytes per byte, touched when they are written. False:
  /// memory is short.
  bool reserve(std::size_t bytes);
  /// Scans whole lines, as long as reserved. False: invalid UTF-8, an open string, a control character in a
  /// string, a bad escape, or nothing but white space. A backslash outside a string counts as an escape, too:
  /// such a text is not JSON anyway.
  bool scan(std::string_view lines);

  /// Of each LF.
  const std::vector<std::uint32_t>& line_ends() const { return line_ends_; }
  /// Of each structural character and of each scalar's first character.
  std::uint32_t* structurals() const { return structurals_; }
  /// The character at each of them.
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

  /// simdjson's parser, whose kernel decodes strings; null before reserve().
  simdjson::internal::dom_parser_implementation* simdjson_parser() const { return simdjson_.get(); }

 private:
  bool scan_avx512(std::string_view lines);
  bool scan_avx2(std::string_view lines);
  bool scan_simdjson(std::string_view lines);

  Kernel kernel_;
  std::unique_ptr<simdjson::internal::dom_parser_implementation> simdjson_;
  std::unique_ptr<std::uint32_t[]> own_structurals_;  // not used with simdjson's kernel
  std::uint32_t* structurals_ = nullptr;
  std::unique_ptr<char[]> characters_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> line_ends_;
  std::vector<std::uint64_t> backslash_blocks_;  // a bit per block: it contains a backslash
};

}  // namespace earshot
#endif
