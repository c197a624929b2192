// A document's text with its matches → the part that a result shows. Pure.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::search {

/// Around a match in the text of highlight(). Documents do not contain them.
constexpr char match_begin = '\x01', match_end = '\x02';

struct Snippet {
  static constexpr std::size_t characters_max = 240;  // code points
  static constexpr std::size_t matches_max = 32;      // further ones are not listed

  std::string text;                                          // one line
  std::vector<std::pair<std::size_t, std::size_t>> matches;  // first code point and number of code points
  bool cut_before = false, cut_after = false;                // the document continues there
};

/// The surroundings of the first match.
Snippet make_snippet(std::string_view highlighted);

}  // namespace earshot::search
