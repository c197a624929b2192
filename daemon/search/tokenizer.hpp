// The tokenizer of the index: FTS5's `unicode61`, except that each Chinese, Japanese and Korean character is
// a token of its own. These languages have no blanks between words (Korean has them between phrases): a word
// is found as the phrase of its characters, also inside a longer run. Words of two characters are the most
// frequent ones, which FTS5's `trigram` cannot find.
#pragma once
#include <string_view>

struct sqlite3;

namespace earshot::search {

constexpr std::string_view tokenizer_name = "cjk";

/// For this connection: without it the index can be neither read nor written. Throws DatabaseError.
void register_tokenizer(sqlite3* db);

/// Han, kana, Hangul and Bopomofo; not their punctuation.
bool is_cjk(char32_t character);
/// Whether the last character of the text is one.
bool ends_with_cjk(std::string_view text);

}  // namespace earshot::search
