#include "search/tokenizer.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "search/database.hpp"
#include "search/query.hpp"

using namespace earshot;

namespace {

/// What a query of this text marks in the other one, with brackets; empty: it is not found.
std::string marked(const std::string& text, const std::string& query) {
  search::Database db(":memory:", search::Database::Mode::read);
  db.run("CREATE VIRTUAL TABLE words USING fts5(text, tokenize=\"cjk remove_diacritics 2\", prefix='2 3')");
  db.statement("INSERT INTO words VALUES(?)").bind(text).run();
  search::Statement& found =
      db.statement("SELECT highlight(words, 0, '[', ']') FROM words WHERE words MATCH ?");
  return found.bind(search::parse_query(query).expression).step() ? found.text(0) : std::string();
}

}  // namespace

TEST_CASE("a word inside a run of Chinese, Japanese or Korean characters is found and marked") {
  struct Case {
    const char *text, *query, *marked;
  };
  const Case cases[] = {
      {"修复服务器的错误", "服务器", "修复[服务器]的错误"},
      {"修复服务器的错误", "错误", "修复服务器的[错误]"},
      {"修复服务器的错误", "务", "修复服[务]器的错误"},
      {"修复服务器的错误", "务服", ""},
      {"修复服务器的错误", "修复 错误", "[修复]服务器的[错误]"},
      {"修复服务器的错误", "修复 -错误", ""},
      {"修复服务器的错误。", "\"服务器的\"", "修复[服务器的]错误。"},
      {"サーバーのエラーを直す", "エラー", "サーバーの[エラー]を直す"},
      {"サーバーのエラーを直す", "直す", "サーバーのエラーを[直す]"},
      {"웹서버의 오류를 수정", "서버", "웹[서버]의 오류를 수정"},
      {"웹서버의 오류를 수정", "오류", "웹서버의 [오류]를 수정"},
      {"调用API接口时的café", "api", "调用[API]接口时的café"},
      {"调用API接口时的café", "API接口", "调用[API接口]时的café"},
      {"调用API接口时的café", "用ap", "调[用API]接口时的café"},
      {"调用API接口时的café", "CAF", "调用API接口时的[café]"},
      {"𠀋𠀌 rare", "𠀌", "𠀋[𠀌] rare"},
      {"no such character", "服", ""},
  };
  for (const auto& [text, query, expected] : cases) {
    CAPTURE(text, query);
    CHECK(marked(text, query) == expected);
  }
}

TEST_CASE("other scripts keep their words, and bytes that are not UTF-8 are separators") {
  CHECK(marked("Überprüfung der Straße", "uberpr") == "[Überprüfung] der Straße");
  CHECK(marked("проверка данных", "ровер").empty());
  CHECK(marked("проверка данных", "пров") == "[проверка] данных");
  CHECK(marked("a\xE4\xB8 word \xFF\xE4", "word") == "a\xE4\xB8 [word] \xFF\xE4");
  for (const char32_t character : {U'a', U'é', U'ж', U'、', U'。', U'・', U'！', U'Ａ', U'🙂'})
    CHECK_FALSE(search::is_cjk(character));
  for (const char32_t character :
       {U'々', U'ぁ', U'ん', U'ア', U'ー', U'ㄅ', U'一', U'鿿', U'가', U'힣', U'豈', U'ｱ', U'𠀀'})
    CHECK(search::is_cjk(character));
}
