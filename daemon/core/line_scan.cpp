#include "core/line_scan.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/json_scan.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace earshot {
namespace {

constexpr std::size_t word_bytes = 64 * LineScanner::block_bytes;  // of text per word of the bit map

#if defined(__x86_64__)

// Distance of the prefetch. A prefetch beyond the end of the text is harmless.
constexpr std::size_t prefetch_bytes = 2048;

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

// Checks the `\u` escapes of a text, which must be given in order.
class UnicodeEscapes {
 public:
  explicit UnicodeEscapes(std::string_view text) : text_(text) {}
  // Those of the block at `at`, by the bits of their letter `u`.
  bool accept(std::size_t at, std::uint64_t letters_u) {
    for (; letters_u != 0; letters_u &= letters_u - 1) {
      const std::size_t backslash = at + static_cast<std::size_t>(__builtin_ctzll(letters_u)) - 1;
      if (backslash < end_) continue;  // the second half of a pair
      const JsonEscape escape = parse_json_escape(text_, backslash);
      if (escape.size == 0 || escape.is_lone_surrogate) return false;
      end_ = backslash + escape.size;
    }
    return true;
  }

 private:
  std::string_view text_;
  std::size_t end_ = 0;  // of the last escape
};

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
                                                           std::uint64_t control, std::uint64_t backslash,
                                                           std::uint64_t operators, std::uint64_t space) {
    const std::uint64_t string = to_quotes ^ in_string_;  // with the opening quote, without the closing one
    in_string_ = static_cast<std::uint64_t>(static_cast<std::int64_t>(string) >> 63);
    bad_ |= (control & string) | (backslash & ~string);
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

// What a character outside strings is.
enum class Outside : std::uint8_t { scalar, space, structural };
constexpr auto outside_strings = [] {
  std::array<Outside, 256> all{};
  for (const unsigned char c : {' ', '\t', '\r', '\n'}) all[c] = Outside::space;
  for (const unsigned char c : {'{', '}', '[', ']', ':', ','}) all[c] = Outside::structural;
  return all;
}();

std::vector<LineScanner::Kernel> supported_kernels() {
  std::vector<LineScanner::Kernel> kernels;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("pclmul") &&
      __builtin_cpu_supports("popcnt"))
    kernels.push_back(LineScanner::Kernel::avx2);
#endif
  kernels.push_back(LineScanner::Kernel::portable);
  return kernels;
}

}  // namespace

std::span<const LineScanner::Kernel> LineScanner::kernels() {
  static const std::vector<Kernel> kernels = supported_kernels();
  return kernels;
}

bool LineScanner::reserve(std::size_t bytes) {
  // A block's entries are written many at a time.
  const std::size_t entries = bytes + block_bytes + sentinels;
  structurals_.reset(new (std::nothrow) std::uint32_t[entries]);
  characters_.reset(new (std::nothrow) char[entries]);
  return structurals_ && characters_;
}

void LineScanner::release() {
  structurals_.reset();
  characters_.reset();
  line_ends_ = {};
  backslash_blocks_ = {};
}

bool LineScanner::scan(std::string_view lines) {
  line_ends_.clear();
  // may_have_backslash() reads eight bytes from any of them.
  backslash_blocks_.assign(lines.size() / word_bytes + 3, 0);
  count_ = 0;
#if defined(__x86_64__)
  if (kernel_ == Kernel::avx2) return scan_avx2(lines);
#endif
  return scan_portable(lines);
}

bool LineScanner::scan_portable(std::string_view lines) {
  if (!simdjson::validate_utf8(lines.data(), lines.size())) return false;
  bool is_in_scalar = false;
  for (std::size_t at = 0; at < lines.size();) {
    const char c = lines[at];
    const Outside kind = outside_strings[static_cast<unsigned char>(c)];
    if (kind == Outside::structural || (kind == Outside::scalar && !is_in_scalar)) {
      structurals_[count_] = static_cast<std::uint32_t>(at);
      characters_[count_++] = c;
    }
    is_in_scalar = kind == Outside::scalar && c != '"';
    if (c == '\\') return false;
    if (c == '\n') line_ends_.push_back(static_cast<std::uint32_t>(at));
    if (c != '"')
      ++at;
    else if (!skip_string(lines, at))
      return false;
  }
  return count_ > 0;
}

// Moves from the opening quote behind the closing one, and notes backslashes. False: the string is not
// closed, or it has a control character or a bad escape.
bool LineScanner::skip_string(std::string_view lines, std::size_t& at) {
  bool is_ascii = true;
  while ((at = run_end(lines, at + 1, is_ascii)) < lines.size()) {
    if (lines[at] == '"') return ++at, true;
    const JsonEscape escape = lines[at] == '\\' ? parse_json_escape(lines, at) : JsonEscape{};
    if (escape.size == 0 || escape.is_lone_surrogate) return false;
    for (const std::size_t last = at + escape.size - 1;; ++at) {
      const std::size_t block = at / block_bytes;
      backslash_blocks_[block / 64] |= std::uint64_t{lines[at] == '\\'} << block % 64;
      if (at == last) break;
    }
  }
  return false;
}

#if defined(__x86_64__)

__attribute__((target("avx2,bmi,pclmul,popcnt"))) bool LineScanner::scan_avx2(std::string_view lines) {
  const auto* const text = reinterpret_cast<const std::uint8_t*>(lines.data());
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
  UnicodeEscapes unicode(lines);
  Utf8Runs runs(lines);
  std::uint32_t* to = structurals_.get();
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
        if (letters_u != 0) state.refuse(!unicode.accept(at, letters_u));
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
      std::uint64_t found = state.structurals(quote, to_quotes, control, backslash, operator_, space);
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
  count_ = static_cast<std::uint32_t>(to - structurals_.get());
  return state.is_valid() && !state.is_inside_string() && count_ > 0 && runs.finish(bytes);
}

#endif

}  // namespace earshot
