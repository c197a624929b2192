// The part of a request's target behind the question mark, taken apart. Total: whatever the text is.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::serve {

struct Query {
  static constexpr std::size_t pairs_max = 512;  // more are an error

  std::vector<std::pair<std::string, std::string>> pairs;  // decoded, in order; a key may come again
  std::string error;                                       // for people; empty: all could be read

  /// Of two values the last one; `fallback` when there is none.
  std::string_view one(std::string_view key, std::string_view fallback = {}) const;
  std::vector<std::string_view> all(std::string_view key) const;
  bool has(std::string_view key) const;

  /// `true`, `1`, or nothing but the key; `false` or `0`. Anything else is told in `error`.
  bool flag(std::string_view key, bool fallback);
  /// A whole number of these bounds. Anything else is told in `error`.
  std::size_t number(std::string_view key, std::size_t fallback, std::size_t min, std::size_t max);
  /// A key that is none of these is told in `error`.
  void only(std::span<const std::string_view> known);
};

/// `a=b&c=d%20e`: as forms are encoded (`+` is a space). What is badly encoded, no UTF-8 or NUL is an error.
Query parse_query(std::string_view text);

}  // namespace earshot::serve
