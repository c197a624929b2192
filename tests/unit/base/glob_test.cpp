#include "base/glob.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace earshot;

TEST_CASE("only the star and the question mark are special") {
  struct Row {
    std::string_view pattern, text;
    bool match;
  };
  const Row rows[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "anything/at all", true},
      {"turn.*", "turn.started", true},
      {"turn.*", "turnXstarted", false},
      {"turn.*", "turns", false},
      {"turn.*", "a turn.started", false},
      {"/home/u/api*", "/home/u/api", true},
      {"/home/u/api*", "/home/u/api/deep/below", true},
      {"*/api", "/home/u/api", true},
      {"*/api", "/home/u/api2", false},
      {"a*b*c", "a-b-b-c", true},
      {"a*b*c", "a-b-b-cd", false},
      {"a*b*c", "aXbYbZ", false},
      {"a**c", "ac", true},
      {"?", "", false},
      {"?", "a", true},
      {"?", "ab", false},
      {"?", "ü", true},
      {"a?c", "a€c", true},
      {"??", "€", false},
      {"*ü", "aü", true},
      {"[ab]", "a", false},
      {"[ab]", "[ab]", true},
      {"a\\*", "a*", false},
      {"A", "a", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pattern, row.text);
    REQUIRE(matches_glob(row.pattern, row.text) == row.match);
  }
}

TEST_CASE("the worst pattern costs pattern times text") {
  std::string pattern;
  while (pattern.size() < 254) pattern += "a*";
  pattern += "b";
  const std::string text(4096, 'a');  // an exponential matcher would not return
  REQUIRE_FALSE(matches_glob(pattern, text));
  REQUIRE(matches_glob(pattern, text + "b"));
}
