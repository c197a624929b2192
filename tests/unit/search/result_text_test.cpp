#include "search/result_text.hpp"

#include <catch2/catch.hpp>

using namespace earshot;
using search::make_snippet;
using Matches = std::vector<std::pair<std::size_t, std::size_t>>;

TEST_CASE("matches are positions and sizes in code points") {
  const auto snippet = make_snippet("\xC3\xA9 \x01l\xC3\xA0\x02 <b>\n\x01so\x02");
  CHECK(snippet.text == "\xC3\xA9 l\xC3\xA0 <b> so");
  CHECK(snippet.matches == Matches{{2, 2}, {9, 2}});
  CHECK_FALSE(snippet.cut_before);
  CHECK_FALSE(snippet.cut_after);
}

TEST_CASE("a long text is cut around its first match, between characters") {
  std::string text;
  for (int n = 0; n < 1000; ++n) text += "\xE2\x82\xAC";
  const auto snippet = make_snippet(text + "\x01hit\x02" + text);
  CHECK(snippet.text.size() == (search::Snippet::characters_max - 3) * 3 + 3);
  CHECK(snippet.matches == Matches{{60, 3}});
  CHECK(snippet.cut_before);
  CHECK(snippet.cut_after);
}

TEST_CASE("a match that is longer than the snippet ends with it, and a list of matches is limited") {
  const auto one = make_snippet("\x01" + std::string(500, 'a') + "\x02 b");
  CHECK(one.matches == Matches{{0, search::Snippet::characters_max}});
  std::string many;
  for (int n = 0; n < 100; ++n) many += "\x01x\x02 ";
  CHECK(make_snippet(many).matches.size() == search::Snippet::matches_max);
  CHECK(make_snippet("\x01open").matches == Matches{{0, 4}});
  CHECK(make_snippet("no match").matches.empty());
}
