#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace earshot {

/// The position, from `at` on, of the first byte that ends a plain run inside a JSON string: a control
/// character, a quote or a backslash. Compares 16 or 8 bytes at once, as reading and writing strings spend
/// their time here. `ascii` becomes false if bytes beyond ASCII may be before that position.
inline std::size_t run_end(std::string_view text, std::size_t at, bool& ascii) {
  constexpr std::uint64_t ones = 0x0101010101010101, highs = 0x8080808080808080;
  // Marks bytes below `limit`; exact up to the first of them.
  const auto below = [](std::uint64_t word, std::uint64_t limit) {
    return (word - ones * limit) & ~word & highs;
  };
  std::uint64_t seen = 0;
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), control = _mm_set1_epi8(0x1F);
  for (; at + sizeof(__m128i) <= text.size(); at += sizeof(__m128i)) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const __m128i ends =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                     _mm_cmpeq_epi8(_mm_min_epu8(bytes, control), bytes));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(ends));
    const auto beyond = static_cast<unsigned>(_mm_movemask_epi8(bytes));
    if (found != 0) {
      const int before = __builtin_ctz(found);
      ascii = seen == 0 && (beyond & ((1u << before) - 1)) == 0;
      return at + static_cast<std::size_t>(before);
    }
    seen |= beyond ? highs : 0;
  }
#endif
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((below(word ^ ones * '"', 1) | below(word ^ ones * '\\', 1) | below(word, 0x20)) != 0) break;
    seen |= word;
  }
  for (; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c == '"' || c == '\\') break;
    seen |= c;
  }
  ascii = (seen & highs) == 0;
  return at;
}

}  // namespace earshot
