#include "serve/http/query.hpp"

#include <catch2/catch.hpp>

using namespace earshot::serve;

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("a query is taken apart and decoded") {
  REQUIRE(parse_query("").pairs.empty());
  REQUIRE(parse_query("a=b").pairs == Pairs{{"a", "b"}});
  REQUIRE(parse_query("a=1&b=2&a=3").pairs == Pairs{{"a", "1"}, {"b", "2"}, {"a", "3"}});
  REQUIRE(parse_query("a&b=&=c&&").pairs == Pairs{{"a", ""}, {"b", ""}, {"", "c"}});
  REQUIRE(parse_query("a=b=c").pairs == Pairs{{"a", "b=c"}});
  REQUIRE(parse_query("p=%2Fhome%2fu+x%2By&%6b=%C3%A4").pairs == Pairs{{"p", "/home/u x+y"}, {"k", "ä"}});
  REQUIRE(parse_query("a=b").error.empty());
}

TEST_CASE("what cannot be decoded is an error") {
  for (const std::string_view text :
       {"a=%", "a=%1", "a=%zz", "%=1", "a=%ff", "a=%C3", "a=%00", "a=%ED%A0%80", "x&a=%G0"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_query(text).error.empty());
  }
  std::string many;
  for (std::size_t i = 0; i < Query::pairs_max; ++i) many += "a=1&";
  REQUIRE(parse_query(many).error.empty());
  REQUIRE_FALSE(parse_query(many + "a").error.empty());
}

TEST_CASE("values are found by their key, and judged") {
  Query query = parse_query("n=7&n=8&yes=true&no=0&key&list=x&list=y");
  REQUIRE(query.one("n") == "8");
  REQUIRE(query.one("none", "else") == "else");
  REQUIRE(query.all("list") == std::vector<std::string_view>{"x", "y"});
  REQUIRE(query.all("none").empty());
  REQUIRE(query.number("n", 1, 1, 10) == 8);
  REQUIRE(query.number("none", 5, 1, 10) == 5);
  REQUIRE(query.flag("yes", false));
  REQUIRE_FALSE(query.flag("no", true));
  REQUIRE(query.flag("key", false));
  REQUIRE(query.flag("none", true));
  REQUIRE(query.error.empty());
  for (const std::string_view text :
       {"n=0", "n=11", "n=x", "n=", "n=-1", "n=1.5", "n=99999999999999999999999"}) {
    CAPTURE(text);
    Query bad = parse_query(text);
    REQUIRE(bad.number("n", 5, 1, 10) == 5);
    REQUIRE(bad.error == "`n` is a number from 1 to 10");
  }
  Query maybe = parse_query("f=maybe");
  maybe.flag("f", false);
  REQUIRE(maybe.error == "`f` is true or false");
  constexpr std::string_view known[] = {"n", "list"};
  query.only(known);
  REQUIRE(query.error == "unknown key `yes`; known keys: n list");
}
