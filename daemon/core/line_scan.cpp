#include "core/line_scan.hpp"

#if EARSHOT_LINE_WALK
#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace earshot {
namespace {

constexpr std::size_t word_bytes = 64 * LineScanner::block_bytes;  // of text per word of the bit map
// Distance of the prefetch. A prefetch beyond the end of the text is harmless.
[[maybe_unused]] constexpr std::size_t prefetch_bytes = 2048;

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
  // Those of a block, by the bits of their letter `u`.
  bool accept(const std::uint8_t* block, std::uint64_t letters_u) {
    bool all = true;
    for (; letters_u != 0; letters_u &= letters_u - 1) all &= accept(block + __builtin_ctzll(letters_u));
    return all;
  }
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

#if defined(__x86_64__)

std::uintptr_t address_of(const std::uint8_t* byte) { return reinterpret_cast<std::uintptr_t>(byte); }

// Which bytes may follow a backslash: the bit of the byte's high nibble (2, 5, 6 or 7) must be set for its
// low nibble.
alignas(16) constexpr char escape_by_low_nibble[16] = {0, 0, 1 | 4 | 8, 0, 8, 8, 4, 0,
                                                       0, 0, 0,         0, 2, 0, 4, 1};
alignas(16) constexpr char escape_by_high_nibble[16] = {0, 0, 1, 0, 0, 2, 4, 8};
// White space equals its low nibble's entry; an operator does with bit 5 set, as do two control characters,
// which are no JSON either way.
alignas(16) constexpr char space_by_low_nibble[16] = {' ', 100,  100,  100, 17,  100,  113, 2,
                                                      100, '\t', '\n', 112, 100, '\r', 100, 100};
alignas(16) constexpr char operator_by_low_nibble[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ':', '{', ',', '}'};

__m128i table(const char* entries) { return _mm_load_si128(reinterpret_cast<const __m128i*>(entries)); }

constexpr auto block_positions = [] {
  std::array<std::uint8_t, LineScanner::block_bytes> all{};
  for (std::uint8_t n = 0; n < all.size(); ++n) all[n] = n;
  return all;
}();

// 16 offsets: `base` and a position each. (No lambda may capture a vector of 64 bytes: where AddressSanitizer
// keeps variables, GCC 12 aligns them to 32.)
__attribute__((target("avx512f"), always_inline)) inline void write_offsets(std::uint32_t* to,
                                                                            __m128i sixteen, __m512i base) {
  _mm512_storeu_si512(to, _mm512_add_epi32(_mm512_maskz_cvtepu8_epi32(0xFFFF, sixteen), base));
}

// What one block leaves to the next, for registers: nothing takes its address. Masks have a bit per byte.
class BlockState {
 public:
  bool is_valid() const { return bad_ == 0; }
  bool is_inside_string() const { return in_string_ != 0; }
  bool next_is_escaped() const { return next_is_escaped_; }
  void refuse(std::uint64_t bytes) { bad_ |= bytes; }

  // The bytes that follow a backslash of an escape.
  __attribute__((always_inline)) std::uint64_t escaped(std::uint64_t backslash, std::uint64_t may_follow) {
    constexpr std::uint64_t odd = 0xAAAA'AAAA'AAAA'AAAA;
    // A branch, seldom taken: as arithmetic each block would wait for the one before.
    std::uint64_t first = 0;
    if (__builtin_expect(next_is_escaped_, false)) {
      first = 1;
      __asm__ volatile("" : "+r"(first));
    }
    const std::uint64_t begins = backslash & ~first;
    const std::uint64_t ends = (((begins << 1) | odd) - begins) ^ odd;
    const std::uint64_t escaped = ends ^ (backslash | first);
    next_is_escaped_ = (ends & backslash) >> 63 != 0;
    bad_ |= escaped & ~may_follow;
    return escaped;
  }

  // The structural characters and the first ones of scalars. `to_quotes`: the sum, without carry, of `quote`
  // up to each bit.
  __attribute__((always_inline)) std::uint64_t structurals(std::uint64_t quote, std::uint64_t to_quotes,
                                                           std::uint64_t control, std::uint64_t operators,
                                                           std::uint64_t space) {
    const std::uint64_t string = to_quotes ^ in_string_;  // with the opening quote, without the closing one
    in_string_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(string) >> 63);
    bad_ |= control & string;
    const std::uint64_t scalar = ~(operators | space), unquoted = scalar & ~quote;
    const std::uint64_t begins = scalar & ~(unquoted << 1 | last_is_scalar_);
    last_is_scalar_ = unquoted >> 63;
    return (operators | begins) & ~(string ^ quote);
  }

 private:
  std::uint64_t in_string_ = 0;       // all ones: the block begins inside a string
  std::uint64_t last_is_scalar_ = 0;  // of the last byte outside strings
  std::uint64_t bad_ = 0;
  bool next_is_escaped_ = false;
};

// UTF-8 is validated by simdjson where there is any: in runs of words that contain it. An ASCII byte begins
// and ends each run, so no sequence is cut.
class Utf8Runs {
 public:
  explicit Utf8Runs(std::string_view text) : text_(text) {}
  bool add_word(std::size_t begin, bool is_ascii) {
    if (!is_ascii) {
      begin_ = std::min(begin_, begin);
      return true;
    }
    return begin_ == none || finish(begin);
  }
  bool finish(std::size_t end) {
    if (begin_ == none) return true;
    const std::size_t begin = std::exchange(begin_, none);
    return simdjson::validate_utf8(text_.data() + begin, end - begin);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::string_view text_;
  std::size_t begin_ = none;
};

// The last block, with blanks behind the text.
struct LastBlock {
  explicit LastBlock(std::string_view text) {
    std::memset(bytes, ' ', sizeof bytes);
    const std::size_t left = text.size() % sizeof bytes;
    if (left > 0) std::memcpy(bytes, text.data() + text.size() - left, left);
  }
  std::uint8_t bytes[LineScanner::block_bytes];
};

#endif

// The escapes and line ends of a text: the portable part of what simdjson's first stage does not look at.
bool scan_escapes(std::string_view given, std::vector<std::uint32_t>& line_ends,
                  std::vector<std::uint64_t>& backslash_blocks) {
  const std::uint8_t* const text = bytes_of(given);
  const std::uint8_t* const end = text + given.size();
  const auto find = [end](const std::uint8_t* from, char c) {
    const void* at = from < end ? std::memchr(from, c, static_cast<std::size_t>(end - from)) : nullptr;
    return static_cast<const std::uint8_t*>(at);
  };
  for (const std::uint8_t* at = find(text, '\n'); at; at = find(at + 1, '\n'))
    line_ends.push_back(static_cast<std::uint32_t>(at - text));
  UnicodeEscapes unicode;
  for (const std::uint8_t* at = find(text, '\\'); at; at = find(at + 2, '\\')) {
    for (const std::uint8_t* one = at; one < end && one < at + 2 && *one == '\\'; ++one) {
      const std::size_t block = static_cast<std::size_t>(one - text) / LineScanner::block_bytes;
      backslash_blocks[block / 64] |= std::uint64_t{1} << block % 64;
    }
    const bool valid = at[1] == 'u' ? unicode.accept(at + 1) : at[1] && std::strchr("\"\\/bfnrt", at[1]);
    if (!valid) return false;
  }
  return true;
}

std::vector<LineScanner::Kernel> supported_kernels() {
  std::vector<LineScanner::Kernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2"))
    kernels.push_back(LineScanner::Kernel::avx512);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("pclmul"))
    kernels.push_back(LineScanner::Kernel::avx2);
#endif
  kernels.push_back(LineScanner::Kernel::simdjson);
  return kernels;
}

}  // namespace

std::span<const LineScanner::Kernel> LineScanner::kernels() {
  static const std::vector<Kernel> kernels = supported_kernels();
  return kernels;
}

LineScanner::Kernel LineScanner::matching_kernel() {
  const std::string name = simdjson::get_active_implementation()->name();
  const Kernel wanted = name == "icelake"   ? Kernel::avx512
                        : name == "haswell" ? Kernel::avx2
                                            : Kernel::simdjson;
  const auto all = kernels();
  return std::find(all.begin(), all.end(), wanted) == all.end() ? Kernel::simdjson : wanted;
}

bool LineScanner::reserve(std::size_t bytes) {
  structurals_ = nullptr;
  // A block's entries are written many at a time.
  const std::size_t entries = bytes + block_bytes + sentinels;
  characters_.reset(new (std::nothrow) char[entries]);
  if (!characters_) return false;
  const bool is_own = kernel_ != Kernel::simdjson;
  if (!simdjson_ || !is_own) {
    const std::size_t capacity = is_own ? block_bytes : bytes;
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(capacity, 1, simdjson_))
      return false;
  }
  if (is_own) {
    own_structurals_.reset(new (std::nothrow) std::uint32_t[entries]);
    structurals_ = own_structurals_.get();
  } else {
    structurals_ = simdjson_->structural_indexes.get();
  }
  return structurals_ != nullptr;
}

bool LineScanner::scan(std::string_view lines) {
  line_ends_.clear();
  // may_have_backslash() reads eight bytes from any of them.
  backslash_blocks_.assign(lines.size() / word_bytes + 3, 0);
  count_ = 0;
  switch (kernel_) {
#if defined(__x86_64__)
    case Kernel::avx512:
      return scan_avx512(lines);
    case Kernel::avx2:
      return scan_avx2(lines);
#endif
    default:
      return scan_simdjson(lines);
  }
}

bool LineScanner::scan_simdjson(std::string_view lines) {
  if (simdjson_->stage1(bytes_of(lines), lines.size(), simdjson::stage1_mode::regular)) return false;
  count_ = simdjson_->n_structural_indexes;
  for (std::uint32_t n = 0; n < count_; ++n) characters_[n] = lines[structurals_[n]];
  return scan_escapes(lines, line_ends_, backslash_blocks_);
}

#if defined(__x86_64__)

__attribute__((target("avx512f,avx512bw,avx512vbmi2,bmi,pclmul,popcnt"))) bool LineScanner::scan_avx512(
    std::string_view lines) {
  const std::uint8_t* const text = bytes_of(lines);
  const std::size_t bytes = lines.size(), whole = bytes - bytes % block_bytes;
  const LastBlock last(lines);
  constexpr __mmask16 all = 0xFFFF;  // the forms without a mask warn of uninitialised variables
  const __m512i escape_low = _mm512_maskz_broadcast_i32x4(all, table(escape_by_low_nibble));
  const __m512i escape_high = _mm512_maskz_broadcast_i32x4(all, table(escape_by_high_nibble));
  const __m512i spaces = _mm512_maskz_broadcast_i32x4(all, table(space_by_low_nibble));
  const __m512i operators = _mm512_maskz_broadcast_i32x4(all, table(operator_by_low_nibble));
  const __m512i every = _mm512_loadu_si512(block_positions.data());
  BlockState state;
  UnicodeEscapes unicode;
  Utf8Runs runs(lines);
  std::uint32_t* to = structurals_;
  char* characters = characters_.get();
  bool in_run = false;
  std::uint64_t* blocks = backslash_blocks_.data();
  for (std::size_t begin = 0; begin < bytes && state.is_valid(); begin += word_bytes, ++blocks) {
    std::uint64_t with_backslash = 0;
    __m512i any = _mm512_setzero_si512();  // of the word's blocks
    // Its whole blocks, and then the last one of the text. The position is counted from `origin`, where it is
    // needed: that is for few blocks inside strings.
    const std::uint8_t *from = text + begin, *end = text + std::min(begin + word_bytes, whole);
    std::uintptr_t origin = address_of(text);
    bool has_last = whole < bytes && begin + word_bytes > whole;
    while (true) {
      if (from == end) {
        if (!std::exchange(has_last, false)) break;
        from = last.bytes, end = from + block_bytes, origin = address_of(from) - whole;
      }
      const auto at = static_cast<std::uint32_t>(address_of(from) - origin);
      const __m512i some = _mm512_loadu_si512(from);
      _mm_prefetch(reinterpret_cast<const char*>(from) + prefetch_bytes, _MM_HINT_T0);
      from += block_bytes;
      std::uint64_t quote = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('"'));
      const std::uint64_t backslash = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('\\'));
      const std::uint64_t control = _mm512_cmplt_epu8_mask(some, _mm512_set1_epi8(' '));
      any = _mm512_or_si512(any, some);
      if (in_run && (quote | backslash | control) == 0) continue;
      if (backslash != 0 || state.next_is_escaped()) {
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(some, 4), _mm512_set1_epi8(15));
        const std::uint64_t may_follow = _mm512_test_epi8_mask(_mm512_shuffle_epi8(escape_low, some),
                                                               _mm512_shuffle_epi8(escape_high, high));
        const std::uint64_t escaped = state.escaped(backslash, may_follow);
        quote &= ~escaped;
        const std::uint64_t letters_u = escaped & _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('u'));
        if (letters_u != 0) state.refuse(!unicode.accept(text + at, letters_u));
        with_backslash |= std::uint64_t{backslash != 0} << at / block_bytes % 64;
        if (in_run && quote == 0) {
          state.refuse(control);
          in_run = !state.next_is_escaped();
          continue;
        }
      }
      const auto to_quotes = static_cast<std::uint64_t>(_mm_cvtsi128_si64(
          _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<std::int64_t>(quote)), _mm_set1_epi8(-1), 0)));
      const std::uint64_t space = _mm512_cmpeq_epi8_mask(some, _mm512_shuffle_epi8(spaces, some));
      const std::uint64_t operator_ = _mm512_cmpeq_epi8_mask(_mm512_or_si512(some, _mm512_set1_epi8(32)),
                                                             _mm512_shuffle_epi8(operators, some));
      const std::uint64_t found = state.structurals(quote, to_quotes, control, operator_, space);
      in_run = quote == 0 && state.is_inside_string() && !state.next_is_escaped();
      if (control != 0) {
        std::uint64_t lf = _mm512_cmpeq_epi8_mask(some, _mm512_set1_epi8('\n'));
        for (; lf != 0; lf &= lf - 1)
          line_ends_.push_back(at + static_cast<std::uint32_t>(__builtin_ctzll(lf)));
      }
      const __m512i positions = _mm512_maskz_compress_epi8(found, every);
      const __m512i base = _mm512_set1_epi32(static_cast<int>(at));
      const auto entries = static_cast<unsigned>(__builtin_popcountll(found));
      write_offsets(to, _mm512_maskz_extracti32x4_epi32(0xF, positions, 0), base);
      if (entries > 16) {
        write_offsets(to + 16, _mm512_maskz_extracti32x4_epi32(0xF, positions, 1), base);
        if (entries > 32) {
          write_offsets(to + 32, _mm512_maskz_extracti32x4_epi32(0xF, positions, 2), base);
          write_offsets(to + 48, _mm512_maskz_extracti32x4_epi32(0xF, positions, 3), base);
        }
      }
      _mm512_storeu_si512(characters, _mm512_maskz_compress_epi8(found, some));
      to += entries;
      characters += entries;
    }
    *blocks = with_backslash;
    if (!runs.add_word(begin, _mm512_movepi8_mask(any) == 0)) return false;
  }
  count_ = static_cast<std::uint32_t>(to - structurals_);
  return state.is_valid() && !state.is_inside_string() && count_ > 0 && runs.finish(bytes);
}

__attribute__((target("avx2,bmi,pclmul,popcnt"))) bool LineScanner::scan_avx2(std::string_view lines) {
  const std::uint8_t* const text = bytes_of(lines);
  const std::size_t bytes = lines.size(), whole = bytes - bytes % block_bytes;
  const LastBlock last(lines);
  const __m256i escape_low = _mm256_broadcastsi128_si256(table(escape_by_low_nibble));
  const __m256i escape_high = _mm256_broadcastsi128_si256(table(escape_by_high_nibble));
  const __m256i spaces = _mm256_broadcastsi128_si256(table(space_by_low_nibble));
  const __m256i operators = _mm256_broadcastsi128_si256(table(operator_by_low_nibble));
  const auto mask = [](__m256i first, __m256i second) __attribute__((target("avx2"), always_inline)) {
    return static_cast<std::uint32_t>(_mm256_movemask_epi8(first)) |
           std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(second))} << 32;
  };
  BlockState state;
  UnicodeEscapes unicode;
  Utf8Runs runs(lines);
  std::uint32_t* to = structurals_;
  char* characters = characters_.get();
  std::uint64_t* blocks = backslash_blocks_.data();
  for (std::size_t at = 0; at < bytes && state.is_valid(); ++blocks) {
    const std::size_t begin = at;
    std::uint64_t with_backslash = 0;
    __m256i any = _mm256_setzero_si256();  // of the word's blocks
    for (unsigned block = 0; block < 64 && at < bytes; ++block, at += block_bytes) {
      _mm_prefetch(reinterpret_cast<const char*>(text) + at + prefetch_bytes, _MM_HINT_T0);
      const auto* const from = reinterpret_cast<const __m256i*>(at < whole ? text + at : last.bytes);
      const __m256i a = _mm256_loadu_si256(from), b = _mm256_loadu_si256(from + 1);
      const auto equal = [&](char c) __attribute__((target("avx2"), always_inline)) {
        const __m256i each = _mm256_set1_epi8(c);
        return mask(_mm256_cmpeq_epi8(a, each), _mm256_cmpeq_epi8(b, each));
      };
      const __m256i quotes = _mm256_set1_epi8('"'), slashes = _mm256_set1_epi8('\\');
      const __m256i blank = _mm256_set1_epi8(' '), last_control = _mm256_set1_epi8(' ' - 1);
      const __m256i control_a = _mm256_cmpeq_epi8(_mm256_min_epu8(a, last_control), a);
      const __m256i control_b = _mm256_cmpeq_epi8(_mm256_min_epu8(b, last_control), b);
      const __m256i special_a = _mm256_or_si256(
          _mm256_or_si256(_mm256_cmpeq_epi8(a, quotes), _mm256_cmpeq_epi8(a, slashes)), control_a);
      const __m256i special_b = _mm256_or_si256(
          _mm256_or_si256(_mm256_cmpeq_epi8(b, quotes), _mm256_cmpeq_epi8(b, slashes)), control_b);
      const __m256i special = _mm256_or_si256(special_a, special_b);
      any = _mm256_or_si256(any, _mm256_or_si256(a, b));
      const bool is_inside = state.is_inside_string() && !state.next_is_escaped();
      if (is_inside && _mm256_testz_si256(special, special)) continue;
      std::uint64_t quote = equal('"');
      const std::uint64_t backslash = equal('\\');
      const std::uint64_t control = mask(control_a, control_b);
      if (backslash != 0 || state.next_is_escaped()) {
        const auto cannot_follow = [&](__m256i half) __attribute__((target("avx2"), always_inline)) {
          const __m256i high = _mm256_and_si256(_mm256_srli_epi16(half, 4), _mm256_set1_epi8(15));
          return _mm256_cmpeq_epi8(
              _mm256_and_si256(_mm256_shuffle_epi8(escape_low, half), _mm256_shuffle_epi8(escape_high, high)),
              _mm256_setzero_si256());
        };
        const std::uint64_t escaped = state.escaped(backslash, ~mask(cannot_follow(a), cannot_follow(b)));
        quote &= ~escaped;
        const std::uint64_t letters_u = escaped & equal('u');
        if (letters_u != 0) state.refuse(!unicode.accept(text + at, letters_u));
        with_backslash |= std::uint64_t{backslash != 0} << block;
      }
      if (quote == 0 && state.is_inside_string()) {
        state.refuse(control);
        continue;
      }
      const auto to_quotes = static_cast<std::uint64_t>(_mm_cvtsi128_si64(
          _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<std::int64_t>(quote)), _mm_set1_epi8(-1), 0)));
      const std::uint64_t space = mask(_mm256_cmpeq_epi8(a, _mm256_shuffle_epi8(spaces, a)),
                                       _mm256_cmpeq_epi8(b, _mm256_shuffle_epi8(spaces, b)));
      const std::uint64_t operator_ =
          mask(_mm256_cmpeq_epi8(_mm256_or_si256(a, blank), _mm256_shuffle_epi8(operators, a)),
               _mm256_cmpeq_epi8(_mm256_or_si256(b, blank), _mm256_shuffle_epi8(operators, b)));
      std::uint64_t found = state.structurals(quote, to_quotes, control, operator_, space);
      const auto base = static_cast<std::uint32_t>(at);
      const auto next = [base](std::uint64_t & bits) __attribute__((target("bmi"), always_inline)) {
        const auto n = static_cast<std::uint32_t>(_tzcnt_u64(bits));  // 64 if none is left
        bits &= bits - 1;
        return base + n;
      };
      if (control != 0)
        for (std::uint64_t lf = equal('\n'); lf != 0;) line_ends_.push_back(next(lf));
      const auto entries = static_cast<unsigned>(__builtin_popcountll(found));
      // Eight at a time, some of them to be overwritten.
      for (unsigned n = 0; n < entries; n += 8)
        for (unsigned k = 0; k < 8; ++k) {
          to[n + k] = next(found);
          characters[n + k] = static_cast<char>(text[to[n + k]]);
        }
      to += entries;
      characters += entries;
    }
    *blocks = with_backslash;
    if (!runs.add_word(begin, _mm256_movemask_epi8(any) == 0)) return false;
  }
  count_ = static_cast<std::uint32_t>(to - structurals_);
  return state.is_valid() && !state.is_inside_string() && count_ > 0 && runs.finish(bytes);
}

#endif

}  // namespace earshot
#endif
