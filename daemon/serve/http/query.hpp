// The query of a request: `a=b&c=d`. Never throws.
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

  std::vector<std::pair<std::string, std::string>> pairs;  // decoded, in order; keys may repeat
  std::string error;                                       // for users; empty: valid

  /// The last value of the key, or `fallback`.
  std::string_view one(std::string_view key, std::string_view fallback = {}) const;
  std::vector<std::string_view> all(std::string_view key) const;
  bool has(std::string_view key) const;

  /// `true`, `1` or no value; `false` or `0`. Anything else sets `error`.
  bool flag(std::string_view key, bool fallback);
  /// An integer in these bounds. Anything else sets `error`.
  std::size_t number(std::string_view key, std::size_t fallback, std::size_t min, std::size_t max);
  /// `view=meta`; another view than `full` or `meta` sets `error`.
  bool is_meta_view();
  /// Any other key sets `error`.
  void only(std::span<const std::string_view> known);
};

/// Decodes a form-encoded query (`+` is a space). Invalid percent-encoding, invalid UTF-8 and NUL are errors.
Query parse_query(std::string_view text);

}  // namespace earshot::serve
