#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace earshot {

/// The number of bytes to insert, delete or replace to turn one word into the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of `known` with the smallest edit distance to `word`; empty if there are none.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

/// The same if it is near enough to be a misspelling: at most two bytes, or a third of the word, differ, and
/// not all of it. Otherwise empty.
std::string_view suggest_word(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace earshot
