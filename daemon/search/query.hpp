// The text of a search → an expression of SQLite's FTS5. Pure. Every text is either a valid expression or an
// error for users: no character of it is an operator of FTS5.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace earshot::search {

constexpr std::size_t query_bytes_max = 512;  // a longer one is an error
constexpr std::size_t query_terms_max = 16;   // more are an error
/// A shorter word matches the word itself only: as a beginning it would match most of the index.
constexpr std::size_t prefix_characters_min = 2;

struct ParsedQuery {
  std::string expression;  // for MATCH; empty: see `error`
  std::string error;       // for users
};

/// Words are ANDed, and each also matches as the beginning of a word. `"…"` is a phrase; a `-` in front
/// excludes. Punctuation separates words: `foo_bar.cpp` is a phrase of three. Upper and lower case and
/// diacritics are equal. Each Chinese, Japanese or Korean character is a word, so that a run of them is a
/// phrase.
ParsedQuery parse_query(std::string_view text);

}  // namespace earshot::search
