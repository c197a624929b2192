#pragma once
#include <simdjson.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace earshot {

constexpr std::size_t nesting_max = 1024;  // levels of a record; a line nested deeper is skipped

// ---- Text that may be anything: tokens

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

inline bool is_json_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

struct JsonEscape {
  std::size_t size = 0;     // bytes of the escape; 0: it is malformed
  char32_t code_point = 0;  // U+FFFD for a lone surrogate
  bool is_lone_surrogate = false;
};
/// The escape that begins with the backslash at `at`. A surrogate pair is one escape.
JsonEscape parse_json_escape(std::string_view text, std::size_t at);

/// The content of a string (without quotes) with its escapes replaced by what they mean; malformed ones are
/// kept.
std::string unescape_json(std::string_view content);
/// The same, written to `to`, which has room for as many bytes as the content has. Returns how many were
/// written.
std::size_t unescape_json(std::string_view content, char* to);

/// The number, `true`, `false` or `null` at `at`; empty if there is none.
std::string_view json_scalar_at(std::string_view text, std::size_t at);

/// A part of a string: a run of plain text, one escape, or bytes that are not UTF-8.
struct JsonStringPiece {
  std::string_view written;  // valid content of a JSON string; U+FFFD where the input is not
  std::string_view decoded;  // UTF-8
  std::size_t offset = 0;    // of the input
  bool is_plain = false;     // `written` and `decoded` are the input
  bool is_repaired = false;  // `written` is not the input
};

/// Calls `on_piece` for the pieces of the string whose opening quote is at `at`, which moves behind the
/// closing quote. False: the string is not closed, or it has a raw control character or a malformed escape.
/// `is_utf8`: the text is known to be valid UTF-8.
template <class OnPiece>
bool scan_json_string(std::string_view text, std::size_t& at, OnPiece&& on_piece, bool is_utf8 = false) {
  constexpr std::string_view fffd = replacement;
  for (++at; at < text.size();) {
    bool ascii = true;
    const std::size_t end = run_end(text, at, ascii);
    std::string_view run = text.substr(at, end - at);
    if (ascii || is_utf8 || simdjson::validate_utf8(run.data(), run.size())) {
      if (!run.empty()) on_piece(JsonStringPiece{run, run, at, true, false});
    } else {
      for (std::size_t used = 0; !run.empty(); run.remove_prefix(used)) {
        std::size_t bad = 0;
        const std::size_t length = utf8_length(run, bad);
        const std::string_view piece = length ? run.substr(0, length) : fffd;
        used = length ? length : bad;
        on_piece(JsonStringPiece{piece, piece, end - run.size(), length > 0, length == 0});
      }
    }
    at = end;
    if (at == text.size()) return false;
    if (text[at] == '"') {
      ++at;
      return true;
    }
    const JsonEscape escape = text[at] == '\\' ? parse_json_escape(text, at) : JsonEscape{};
    if (escape.size == 0) return false;
    std::string decoded;  // at most 4 bytes: never allocated
    append_utf8(decoded, escape.code_point);
    const bool lone = escape.is_lone_surrogate;
    on_piece(JsonStringPiece{lone ? fffd : text.substr(at, escape.size), decoded, at, false, lone});
    at += escape.size;
  }
  return false;
}

// ---- Text that may be anything: values

enum class JsonResult { complete, stopped, too_deep, invalid };

/// Reads one value from `at` on, which moves behind it, without recursion. `Visitor` has
///   void put(char c)             for each of {}[]:,
///   void enter(bool is_object)   after the opening bracket of an object or array that is not empty; void
///   leave() bool string(std::string_view text, std::size_t& at, bool is_key)   as scan_json_string(); false:
///   invalid void scalar(std::string_view written) bool is_done(std::size_t at)   asked before each token;
///   true: stop
template <class Visitor>
JsonResult scan_json_value(std::string_view text, std::size_t& at, std::size_t depth_max, Visitor& visitor) {
  std::vector<bool> open;  // true: an object
  bool wants_value = true;
  const auto skip_space = [&] {
    while (at < text.size() && is_json_space(text[at])) ++at;
  };
  const auto next = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto take = [&](char c) {
    if (next() != c) return false;
    visitor.put(c);
    ++at;
    return true;
  };
  const auto take_key = [&] {
    if (next() != '"' || !visitor.string(text, at, true)) return false;
    skip_space();
    return take(':');
  };
  for (;;) {
    skip_space();
    if (visitor.is_done(at)) return JsonResult::stopped;
    if (wants_value) {
      const char c = next();
      if (c == '{' || c == '[') {
        if (open.size() == depth_max) return JsonResult::too_deep;
        take(c);
        skip_space();
        const bool is_empty = take(c == '{' ? '}' : ']');
        if (!is_empty) {
          open.push_back(c == '{');
          visitor.enter(c == '{');
          if (c == '{' && !take_key()) return JsonResult::invalid;
        }
        wants_value = !is_empty;
        if (!open.empty()) continue;
      } else if (c == '"') {
        if (!visitor.string(text, at, false)) return JsonResult::invalid;
      } else {
        const std::string_view scalar = json_scalar_at(text, at);
        if (scalar.empty()) return JsonResult::invalid;
        visitor.scalar(scalar);
        at += scalar.size();
      }
      wants_value = false;
    }
    if (open.empty()) return JsonResult::complete;
    skip_space();
    if (take(',')) {
      skip_space();
      if (open.back() && !take_key()) return JsonResult::invalid;
      wants_value = true;
    } else if (take(open.back() ? '}' : ']')) {
      open.pop_back();
      visitor.leave();
    } else {
      return JsonResult::invalid;
    }
  }
}

}  // namespace earshot

// ---- simdjson's tree: of repeated keys the last one counts; a value of another type counts as absent, that
// is empty, false or nullopt

namespace earshot::dom {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

inline std::string_view as_text(const element& value) {
  std::string_view found;
  if (value.is_string()) found = value.get_string().value_unsafe();
  return found;
}
inline std::optional<std::string_view> as_optional_text(const element& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get_string().value_unsafe();
}
inline bool as_bool(const element& value) { return value.is_bool() && value.get_bool().value_unsafe(); }

/// A number, rounded to an integer. Absent if it does not fit.
inline std::optional<std::int64_t> as_int(const element& value) {
  if (value.is_int64()) return value.get_int64().value_unsafe();
  double real = 0;
  if (value.is_double())
    real = value.get_double().value_unsafe();
  else
    return std::nullopt;
  if (!(std::fabs(real) < 9e18)) return std::nullopt;
  return std::llround(real);
}
/// Returns the same, but nothing for a negative number.
inline std::optional<std::uint64_t> as_count(const element& value) {
  const auto number = as_int(value);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}
inline std::optional<double> as_double(const element& value) {
  double number = 0;
  if (!value.is_number() || value.get_double().get(number)) return std::nullopt;
  return number;
}

inline std::optional<element> member(const element& value, std::string_view key) {
  std::optional<element> found;
  object fields;
  if (value.get_object().get(fields)) return found;
  for (const auto field : fields)
    if (field.key == key) found = field.value;
  return found;
}
inline std::string_view text_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found ? as_text(*found) : std::string_view{};
}
inline bool bool_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found && as_bool(*found);
}
inline std::optional<std::int64_t> int_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found ? as_int(*found) : std::nullopt;
}
inline std::optional<std::uint64_t> count_of(const element& value, std::string_view key) {
  const auto found = member(value, key);
  return found ? as_count(*found) : std::nullopt;
}

}  // namespace earshot::dom
