#include "base/suggest.hpp"

#include <catch2/catch.hpp>

using namespace earshot;

TEST_CASE("edit distance counts insertions, deletions and replacements") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("titel", "title") == 2);
}

TEST_CASE("the nearest word has the smallest edit distance") {
  CHECK(nearest_word("titel", {"body", "title", "tool"}) == "title");
  CHECK(nearest_word("x", {}).empty());
}

TEST_CASE("only a likely misspelling is suggested") {
  CHECK(suggest_word("statsu", {"tail", "status", "show"}) == "status");
  CHECK(suggest_word("completion", {"complete", "completions"}) == "completions");
  CHECK(suggest_word("weather", {"tail", "status", "show"}).empty());
  CHECK(suggest_word("x", {"ls"}).empty());
  CHECK(suggest_word("x", {}).empty());
}
