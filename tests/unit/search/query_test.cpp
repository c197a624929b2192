#include "search/query.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "search/database.hpp"

using namespace earshot;
using search::parse_query;

TEST_CASE("words are ANDed beginnings of words, phrases are exact, and a minus excludes") {
  const std::pair<const char*, const char*> cases[] = {
      {"rate limit", R"(("rate"* "limit"*))"},
      {"\"connection refused\" proxy", R"(("connection refused" "proxy"*))"},
      {"rate -test", R"(("rate"*) NOT "test"*)"},
      {"rate -\"unit test\" -x", R"(("rate"*) NOT "unit test" NOT "x")"},
      {"a be", R"(("a" "be"*))"},
      {"foo_bar.c", R"(("foo_bar.c"))"},
      {"foo_bar.cpp", R"(("foo_bar.cpp"*))"},
      {"-- rate - ( * ^ :", R"(("rate"*))"},
      {"\"open", R"(("open"))"},
      {"x\"y z\"w", R"(("x" "y z" "w"))"},
      {"NOT OR AND NEAR", R"(("NOT"* "OR"* "AND"* "NEAR"*))"},
      {"服务器 api 修", R"(("服务器" "api"* "修"))"},  // characters, not beginnings
      {"API服务", R"(("API服务"))"},
      {"服务API", R"(("服务API"*))"},
      {"\xC3\xA9t\xC3\xA9", "(\"\xC3\xA9t\xC3\xA9\"*)"},
  };
  for (const auto& [text, expression] : cases) {
    CAPTURE(text);
    CHECK(parse_query(text).expression == expression);
  }
}

TEST_CASE("a query without words, with too many or too long is an error for users") {
  for (const std::string text : {"", " ", "\"\"", "-", "--", "!?", "\"*\"", "-only -these"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_query(text).error.empty());
  }
  CHECK(parse_query(std::string(512, 'a')).error.empty());
  CHECK_FALSE(parse_query(std::string(513, 'a')).error.empty());
  std::string many;
  for (int n = 0; n < 16; ++n) many += "word ";
  CHECK(parse_query(many).error.empty());
  CHECK_FALSE(parse_query(many + "more").error.empty());
}

TEST_CASE("no text is a syntax error of FTS5") {
  search::Database db(":memory:", search::Database::Mode::read);
  db.run("CREATE VIRTUAL TABLE words USING fts5(text, tokenize=cjk)");
  db.run("INSERT INTO words VALUES('a word')");
  search::Statement match(db.handle(), "SELECT count(*) FROM words WHERE words MATCH ?");
  std::mt19937 random(1);
  const std::string_view alphabet = "ab \"-*()^:+{}',;NOTAR\\%_\n\t\xC3\xA9\xFF\x80\xE6\x9C\x8D";
  int valid = 0;
  for (int n = 0; n < 20'000; ++n) {
    std::string text(random() % 24, ' ');
    for (char& c : text) c = random() % 40 == 0 ? '\0' : alphabet[random() % alphabet.size()];
    const auto query = parse_query(text);
    CAPTURE(text, query.expression);
    REQUIRE(query.expression.empty() != query.error.empty());
    if (!query.error.empty()) continue;
    ++valid;
    REQUIRE_NOTHROW(match.bind(query.expression).step());
  }
  CHECK(valid > 5'000);
}
