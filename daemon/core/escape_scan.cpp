#include "core/escape_scan.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace earshot {
namespace {

constexpr std::size_t word_bytes = 64 * ScannedLines::block_bytes;  // of text per word of the bit map

int hex_digit(std::uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int letter = c | 0x20;
  return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

// The code unit of four hexadecimal digits; -1 if they are not there.
int code_unit(const std::uint8_t* digits) {
  int unit = 0;
  for (int n = 0; n < 4; ++n) {
    const int digit = hex_digit(digits[n]);
    if (digit < 0) return -1;
    unit = unit << 4 | digit;
  }
  return unit;
}

// Checks the `\u` escapes of a text, which must be given in order.
class UnicodeEscapes {
 public:
  bool accept(const std::uint8_t* letter_u) {
    if (letter_u == low_surrogate_) return true;
    const int unit = code_unit(letter_u + 1);
    if (unit < 0) return false;
    if (unit < 0xD800 || unit > 0xDFFF) return true;
    if (unit >= 0xDC00 || letter_u[5] != '\\' || letter_u[6] != 'u') return false;
    const int low = code_unit(letter_u + 7);
    low_surrogate_ = letter_u + 6;
    return low >= 0xDC00 && low <= 0xDFFF;
  }

 private:
  const std::uint8_t* low_surrogate_ = nullptr;  // its `u`, if the escape before was a high surrogate
};

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

bool scan_portable(std::string_view given, ScannedLines& found) {
  found.reset(given.size());
  const std::uint8_t* const text = bytes_of(given);
  const std::uint8_t* const end = text + given.size();
  const auto find = [end](const std::uint8_t* from, char c) {
    const void* at = from < end ? std::memchr(from, c, static_cast<std::size_t>(end - from)) : nullptr;
    return static_cast<const std::uint8_t*>(at);
  };
  for (const std::uint8_t* at = find(text, '\n'); at; at = find(at + 1, '\n'))
    found.line_ends.push_back(static_cast<std::uint32_t>(at - text));
  UnicodeEscapes unicode;
  for (const std::uint8_t* at = find(text, '\\'); at; at = find(at + 2, '\\')) {
    for (const std::uint8_t* one = at; one < end && one < at + 2 && *one == '\\'; ++one) {
      const std::size_t block = static_cast<std::size_t>(one - text) / ScannedLines::block_bytes;
      found.backslash_blocks[block / 64] |= std::uint64_t{1} << block % 64;
    }
    const bool valid = at[1] == 'u' ? unicode.accept(at + 1) : at[1] && std::strchr("\"\\/bfnrt", at[1]);
    if (!valid) return false;
  }
  return true;
}

#if defined(__x86_64__)

// Which bytes may follow a backslash: the bit of the byte's high nibble (2, 5, 6 or 7) must be set for its
// low nibble.
constexpr char by_low_nibble[16] = {0, 0, 1 | 4 | 8, 0, 8, 8, 4, 0, 0, 0, 0, 0, 2, 0, 4, 1};
constexpr char by_high_nibble[16] = {0, 0, 1, 0, 0, 2, 4, 8};

struct BlockMasks {  // a bit per byte
  std::uint64_t backslash, may_follow, letter_u;
};

// Carries what one block of 64 bytes leaves to the next.
class BlockScan {
 public:
  explicit BlockScan(std::vector<std::uint32_t>& line_ends) : line_ends_(line_ends) {}

  bool is_valid() const { return bad_ == 0; }
  bool next_is_escaped() const { return next_is_escaped_; }

  __attribute__((always_inline)) void add_line_ends(std::size_t at, std::size_t left, std::uint64_t lf) {
    for (; lf != 0; lf &= lf - 1) {
      const auto n = static_cast<std::size_t>(__builtin_ctzll(lf));
      if (n < left) line_ends_.push_back(static_cast<std::uint32_t>(at + n));
    }
  }

  // 1 if the block contains a backslash, else 0.
  __attribute__((always_inline)) std::uint64_t add_escapes(const std::uint8_t* at, std::size_t left,
                                                           BlockMasks masks) {
    constexpr std::uint64_t odd = 0xAAAA'AAAA'AAAA'AAAA;
    if (left < 64) masks.backslash &= (std::uint64_t{1} << left) - 1;
    // A branch, seldom taken: as arithmetic each block would wait for the one before.
    std::uint64_t first = 0;
    if (__builtin_expect(next_is_escaped_, false)) {
      first = 1;
      __asm__ volatile("" : "+r"(first));
    }
    const std::uint64_t begins = masks.backslash & ~first;
    const std::uint64_t ends = (((begins << 1) | odd) - begins) ^ odd;
    const std::uint64_t escaped = ends ^ (masks.backslash | first);
    next_is_escaped_ = (ends & masks.backslash) >> 63 != 0;
    bad_ |= escaped & ~masks.may_follow;
    for (std::uint64_t units = escaped & masks.letter_u; units != 0; units &= units - 1)
      bad_ |= !unicode_.accept(at + __builtin_ctzll(units));
    return masks.backslash != 0;
  }

 private:
  std::vector<std::uint32_t>& line_ends_;
  UnicodeEscapes unicode_;
  bool next_is_escaped_ = false;
  std::uint64_t bad_ = 0;
};

__attribute__((target("avx2,bmi"))) bool scan_avx2(std::string_view given, ScannedLines& found) {
  found.reset(given.size());
  const std::uint8_t* const text = bytes_of(given);
  const std::size_t bytes = given.size();
  const __m256i low =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by_low_nibble)));
  const __m256i high =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(by_high_nibble)));
  const __m256i fifteen = _mm256_set1_epi8(15), backslash = _mm256_set1_epi8('\\');
  const __m256i letter = _mm256_set1_epi8('u'), feed = _mm256_set1_epi8('\n');
  BlockScan scan(found.line_ends);
  std::uint64_t* blocks = found.backslash_blocks.data();
  for (std::size_t at = 0; at < bytes && scan.is_valid(); ++blocks) {
    std::uint64_t word = 0;
    for (unsigned block = 0; block < 64 && at < bytes; ++block, at += 64) {
      const __m256i half[2] = {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at)),
                               _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at + 32))};
      const auto mask = [](__m256i first, __m256i second) __attribute__((target("avx2,bmi"), always_inline)) {
        return static_cast<std::uint32_t>(_mm256_movemask_epi8(first)) |
               std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(second))} << 32;
      };
      const std::uint64_t lf = mask(_mm256_cmpeq_epi8(half[0], feed), _mm256_cmpeq_epi8(half[1], feed));
      const std::uint64_t escapes =
          mask(_mm256_cmpeq_epi8(half[0], backslash), _mm256_cmpeq_epi8(half[1], backslash));
      if (lf != 0) scan.add_line_ends(at, bytes - at, lf);
      if (escapes == 0 && !scan.next_is_escaped()) continue;
      __m256i unknown[2];
      for (int n = 0; n < 2; ++n) {
        const __m256i nibble = _mm256_and_si256(_mm256_srli_epi16(half[n], 4), fifteen);
        const __m256i both =
            _mm256_and_si256(_mm256_shuffle_epi8(low, half[n]), _mm256_shuffle_epi8(high, nibble));
        unknown[n] = _mm256_cmpeq_epi8(both, _mm256_setzero_si256());
      }
      const std::uint64_t units =
          mask(_mm256_cmpeq_epi8(half[0], letter), _mm256_cmpeq_epi8(half[1], letter));
      word |= scan.add_escapes(text + at, bytes - at, {escapes, ~mask(unknown[0], unknown[1]), units})
              << block;
    }
    *blocks = word;
  }
  return scan.is_valid();
}

__attribute__((target("avx512f,avx512bw,bmi"))) bool scan_avx512(std::string_view given,
                                                                 ScannedLines& found) {
  found.reset(given.size());
  const std::uint8_t* const text = bytes_of(given);
  const std::size_t bytes = given.size();
  constexpr __mmask16 all = 0xFFFF;  // the forms without a mask warn of uninitialised variables
  const __m512i low =
      _mm512_maskz_broadcast_i32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(by_low_nibble)));
  const __m512i high =
      _mm512_maskz_broadcast_i32x4(all, _mm_loadu_si128(reinterpret_cast<const __m128i*>(by_high_nibble)));
  BlockScan scan(found.line_ends);
  std::uint64_t* blocks = found.backslash_blocks.data();
  for (std::size_t at = 0; at < bytes && scan.is_valid(); ++blocks) {
    std::uint64_t word = 0;
    for (unsigned block = 0; block < 64 && at < bytes; ++block, at += 64) {
      const __m512i some = _mm512_loadu_si512(text + at);
      const std::uint64_t escapes = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('\\'));
      const std::uint64_t lf = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('\n'));
      if (lf != 0) scan.add_line_ends(at, bytes - at, lf);
      if (escapes == 0 && !scan.next_is_escaped()) continue;
      const __m512i nibble = _mm512_and_si512(_mm512_srli_epi16(some, 4), _mm512_set1_epi8(15));
      const std::uint64_t may_follow =
          _mm512_test_epi8_mask(_mm512_shuffle_epi8(low, some), _mm512_shuffle_epi8(high, nibble));
      const std::uint64_t units = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('u'));
      word |= scan.add_escapes(text + at, bytes - at, {escapes, may_follow, units}) << block;
    }
    *blocks = word;
  }
  return scan.is_valid();
}

#endif

std::vector<NamedEscapeScan> supported_scans() {
  std::vector<NamedEscapeScan> scans;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw")) scans.push_back({"icelake", scan_avx512});
  if (__builtin_cpu_supports("avx2")) scans.push_back({"haswell", scan_avx2});
#endif
  scans.push_back({"portable", scan_portable});
  return scans;
}

}  // namespace

void ScannedLines::reset(std::size_t bytes) {
  line_ends.clear();
  // may_have_backslash() reads eight bytes from any of them.
  backslash_blocks.assign(bytes / word_bytes + 3, 0);
}

std::span<const NamedEscapeScan> escape_scans() {
  static const std::vector<NamedEscapeScan> scans = supported_scans();
  return scans;
}

}  // namespace earshot
