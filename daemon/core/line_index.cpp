#include "core/line_index.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace earshot {
namespace {

using Verdict = LineIndex::Verdict;

// The walk stops at an LF and looks at most three entries ahead.
static_assert(LineScanner::sentinels > 3);

enum : std::uint8_t { ends_scalar = 1, is_digit = 2 };
constexpr auto classes = [] {
  std::array<std::uint8_t, 256> all{};
  for (const unsigned char c : {',', '}', ']', ' ', '\t', '\n', '\r'}) all[c] = ends_scalar;
  for (unsigned char c = '0'; c <= '9'; ++c) all[c] = is_digit;
  return all;
}();

bool has(std::uint8_t c, std::uint8_t which) { return (classes[c] & which) != 0; }

const std::uint8_t* skip_digits(const std::uint8_t* at) {
  while (has(*at, is_digit)) ++at;
  return at;
}

Verdict check_number(const std::uint8_t* at) {
  constexpr std::ptrdiff_t mantissa_max = 100, exponent_digits_max = 2;  // far below 1e308
  at += *at == '-';
  const std::uint8_t* const first = at;
  at = skip_digits(at);
  const auto digits = at - first;
  if (digits == 0 || (*first == '0' && digits > 1)) return Verdict::refused;
  if (has(*at, ends_scalar)) return digits <= LineIndex::digits_max ? Verdict::accepted : Verdict::in_doubt;
  if (*at == '.') {
    if (!has(*++at, is_digit)) return Verdict::refused;
    at = skip_digits(at);
  }
  const auto mantissa = at - first;
  std::ptrdiff_t exponent_digits = 0;
  if ((*at | 0x20) == 'e') {
    ++at;
    at += *at == '+' || *at == '-';
    const std::uint8_t* const exponent = at;
    at = skip_digits(at);
    exponent_digits = at - exponent;
    if (exponent_digits == 0) return Verdict::refused;
  }
  if (!has(*at, ends_scalar)) return Verdict::refused;
  return mantissa <= mantissa_max && exponent_digits <= exponent_digits_max ? Verdict::accepted
                                                                            : Verdict::in_doubt;
}

// A value that is no string, object or array.
Verdict check_scalar(const std::uint8_t* at) {
  const auto is_word = [at](const char* text, std::size_t bytes) {
    return std::memcmp(at, text, bytes) == 0 && has(at[bytes], ends_scalar) ? Verdict::accepted
                                                                            : Verdict::refused;
  };
  switch (*at) {
    case 't':
      return is_word("true", 4);
    case 'f':
      return is_word("false", 5);
    case 'n':
      return is_word("null", 4);
    default:
      return check_number(at);
  }
}

}  // namespace

bool LineIndex::reserve(std::size_t bytes) {
  if (bytes <= capacity_) return true;
  if (bytes > line_bytes_max) return false;
  const std::size_t wanted = std::max(bytes, bytes <= chunk_bytes_max ? chunk_bytes_max : line_bytes_kept);
  capacity_ = 0;
  close_.reset(new (std::nothrow) std::uint32_t[wanted + LineScanner::sentinels]);
  if (!close_ || !scanner_.reserve(wanted)) return false;
  capacity_ = wanted;
  return true;
}

void LineIndex::release_long() {
  if (capacity_ <= chunk_bytes_max || (capacity_ <= line_bytes_kept && count_max_ <= chunk_bytes_max)) return;
  capacity_ = count_max_ = 0;
  scanner_.release();
  close_.reset();
}

bool LineIndex::read(std::string_view lines) {
  assert(lines.ends_with('\n'));
  if (!reserve(lines.size())) return false;
  text_ = reinterpret_cast<const std::uint8_t*>(lines.data());
  next_ = 0;
  if (!scanner_.scan(lines)) return false;
  at_ = scanner_.structurals();
  characters_ = scanner_.characters();
  count_ = scanner_.count();
  count_max_ = std::max(count_max_, count_);
  for (std::uint32_t n = 0; n < LineScanner::sentinels; ++n) {
    at_[count_ + n] = static_cast<std::uint32_t>(lines.size()) - 1;
    characters_[count_ + n] = '\n';
  }
  return true;
}

Verdict LineIndex::walk_line(std::uint32_t line_end, std::uint32_t& root, const WalkRules& rules) {
  root = next_;
  const Verdict verdict = walk(next_, line_end, rules);
  if (verdict != Verdict::accepted) {
    next_ = root;
    skip_line(line_end);
  }
  return verdict;
}

void LineIndex::skip_line(std::uint32_t line_end) {
  while (next_ < count_ && at_[next_] < line_end) ++next_;
}

// The states of simdjson's second stage, without its output. A walk that leaves its line is refused at the
// next bracket at the latest; as every line that is walked begins with one, the work stays linear.
Verdict LineIndex::walk(std::uint32_t& next, std::uint32_t line_end, const WalkRules& rules) {
  const std::uint8_t* const text = text_;
  const std::uint32_t* const at = at_;
  const char* const c = characters_;
  std::uint32_t* const close = close_.get();
  const auto depth_max = static_cast<std::uint32_t>(std::min(rules.depth_max, open_.size() + 1) - 1);
  std::uint32_t i = next, depth = 0;
  const auto is_bad = [&](Verdict verdict) {
    return verdict == Verdict::refused || (verdict == Verdict::in_doubt && !rules.any_number);
  };
  const auto stop = [&](Verdict verdict) { return at[i] > line_end ? Verdict::refused : verdict; };
  if (at[i] >= line_end || c[i] != '{') return Verdict::in_doubt;

begin_object:
  if (c[i + 1] == '}') {
    close[i] = i + 1;
    i += 2;
    goto end_value;
  }
  if (depth == depth_max || at[i] > line_end) return Verdict::refused;
  open_[depth++] = i << 1;
  ++i;

key:
  // Most members are strings with another member behind them.
  while (std::memcmp(c + i, "\":\",", 4) == 0) i += 4;
  if (c[i] != '"' || c[i + 1] != ':') return Verdict::refused;
  i += 2;
  switch (c[i]) {
    case '"':
      break;
    case '{':
      goto begin_object;
    case '[':
      goto begin_array;
    default:
      if (const Verdict verdict = check_scalar(text + at[i]); is_bad(verdict)) return stop(verdict);
  }
  ++i;

end_member:
  if (c[i] == ',') {
    ++i;
    goto key;
  }
  if (c[i] != '}') return Verdict::refused;
  close[open_[--depth] >> 1] = i;
  ++i;

end_value:
  if (depth == 0) goto end;
  if (open_[depth - 1] & 1) goto end_item;
  goto end_member;

begin_array:
  if (c[i + 1] == ']') {
    close[i] = i + 1;
    i += 2;
    goto end_value;
  }
  if (depth == depth_max || at[i] > line_end) return Verdict::refused;
  open_[depth++] = i << 1 | 1;
  ++i;

item:
  switch (c[i]) {
    case '"':
      break;
    case '{':
      goto begin_object;
    case '[':
      goto begin_array;
    default:
      if (const Verdict verdict = check_scalar(text + at[i]); is_bad(verdict)) return stop(verdict);
  }
  ++i;

end_item:
  if (c[i] == ',') {
    ++i;
    goto item;
  }
  if (c[i] != ']') return Verdict::refused;
  close[open_[--depth] >> 1] = i;
  ++i;
  goto end_value;

end:
  if (at[i - 1] > line_end || at[i] < line_end) return Verdict::refused;
  next = i;
  return Verdict::accepted;
}

std::string_view LineIndex::decode(std::string_view content) const {
  if (decoded_left_ < content.size()) {
    decoded_left_ = std::max(content.size(), decoded_bytes_kept);
    decoded_.push_back(std::make_unique_for_overwrite<char[]>(decoded_left_));
    decoded_next_ = decoded_.back().get();
    if (decoded_.size() == 1) decoded_first_bytes_ = decoded_left_;
  }
  const std::string_view text(decoded_next_, unescape_json(content, decoded_next_));
  decoded_next_ += text.size();
  decoded_left_ -= text.size();
  return text;
}

void LineIndex::forget_decoded() {
  if (decoded_.empty()) return;
  if (decoded_first_bytes_ > decoded_bytes_kept) {
    decoded_.clear();
    decoded_left_ = 0;
    return;
  }
  decoded_.resize(1);
  decoded_next_ = decoded_.front().get();
  decoded_left_ = decoded_first_bytes_;
}

}  // namespace earshot
