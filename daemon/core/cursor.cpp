#include "core/cursor.hpp"

#define XXH_STATIC_LINKING_ONLY  // the state's size
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // AVX2 or AVX-512 at run time: twice as fast as SSE2 on long lines
#else
#include <xxhash.h>
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <charconv>
#include <cstring>

#include "base/hex.hpp"

namespace earshot {
namespace {

// After each call of libxxhash, whose AVX kernels return without vzeroupper: Intel processors then stall for
// about 100 ns at the next SSE instruction and again at the next AVX instruction.
#if defined(__x86_64__)
__attribute__((target("avx"))) void zero_upper_halves() { _mm256_zeroupper(); }
void end_avx_use() {
  if (__builtin_cpu_supports("avx")) zero_upper_halves();
}
#else
void end_avx_use() {}
#endif

}  // namespace

void PrefixHash::add_line(std::span<const char> bytes) {
  value_ = XXH3_64bits_withSeed(bytes.data(), bytes.size(), value_);
  end_avx_use();
}

struct LineHash::State {
  XXH3_state_t xxh;
};

LineHash::LineHash() = default;
LineHash::~LineHash() = default;
LineHash::LineHash(LineHash&&) noexcept = default;
LineHash& LineHash::operator=(LineHash&&) noexcept = default;

void LineHash::begin(std::uint64_t prefix_hash) {
  if (!state_) state_ = std::make_unique<State>();
  XXH3_64bits_reset_withSeed(&state_->xxh, prefix_hash);
}

void LineHash::add(std::span<const char> bytes) {
  XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size());
  end_avx_use();
}

std::uint64_t LineHash::end() const {
  const std::uint64_t hash = XXH3_64bits_digest(&state_->xxh);
  end_avx_use();
  return hash;
}

void PrefixHasher::add(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const auto* lf = static_cast<const char*>(std::memchr(bytes.data(), '\n', bytes.size()));
    const auto piece = lf ? bytes.first(static_cast<std::size_t>(lf - bytes.data()) + 1) : bytes;
    bytes = bytes.subspan(piece.size());
    if (lf && !is_line_open_) {
      PrefixHash hash(value_);
      hash.add_line(piece);
      value_ = hash.value();
      continue;
    }
    if (!is_line_open_) line_hash_.begin(value_);
    line_hash_.add(piece);
    is_line_open_ = !lf;
    if (lf) value_ = line_hash_.end();
  }
}

namespace {

std::string_view write_cursor(char (&text)[cursor_bytes_max], const Cursor& cursor) {
  char* at = std::to_chars(text, text + 20, cursor.offset).ptr;
  *at++ = '.';
  at = std::to_chars(at, at + 10, cursor.index).ptr;
  *at++ = '.';
  at = write_hex(at, cursor.prefix_hash);
  return {text, static_cast<std::size_t>(at - text)};
}

}  // namespace

void append_cursor(std::string& out, const Cursor& cursor) {
  char text[cursor_bytes_max];
  out += write_cursor(text, cursor);
}

std::string to_string(const Cursor& cursor) {
  std::string text;
  append_cursor(text, cursor);
  return text;
}

std::optional<Cursor> parse_cursor(std::string_view text) {
  Cursor cursor;
  char written[cursor_bytes_max];
  const char* at = text.data();
  const char* end = at + text.size();
  const auto number = [&](auto& value, int base, char stop) {
    const auto [next, error] = std::from_chars(at, end, value, base);
    if (error != std::errc{} || (stop ? next == end || *next != stop : next != end)) return false;
    at = stop ? next + 1 : next;
    return true;
  };
  if (!number(cursor.offset, 10, '.') || !number(cursor.index, 10, '.') || end - at != 16 ||
      !number(cursor.prefix_hash, 16, '\0') || write_cursor(written, cursor) != text)
    return std::nullopt;
  return cursor;
}

}  // namespace earshot
