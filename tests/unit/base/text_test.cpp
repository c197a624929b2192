#include "base/text.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace earshot;

TEST_CASE("the size of a character and of a malformed beginning are those of the Unicode table") {
  struct Row {
    std::string_view text;
    std::size_t length, bad;
  };
  for (const Row& row :
       {Row{"", 0, 0}, Row{"a", 1, 0}, Row{"é", 2, 0}, Row{"漢x", 3, 0}, Row{"🙂", 4, 0}, Row{"\x80", 0, 1},
        Row{"\xc0\x80", 0, 1}, Row{"\xc3", 0, 1}, Row{"\xe0\x80\x80", 0, 1}, Row{"\xe2\x82", 0, 2},
        Row{"\xe2\x82x", 0, 2}, Row{"\xed\xa0\x80", 0, 1}, Row{"\xf0\x9f\x99", 0, 3},
        Row{"\xf4\x90\x80\x80", 0, 1}, Row{"\xf5\x80", 0, 1}}) {
    CAPTURE(row.text);
    std::size_t bad = 0;
    CHECK(utf8_length(row.text, bad) == row.length);
    if (row.length == 0) CHECK(bad == row.bad);
  }
}

TEST_CASE("appended characters are well formed") {
  for (const char32_t c : {0x1u, 0x7fu, 0x80u, 0x7ffu, 0x800u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    append_utf8(text, c);
    std::size_t bad = 0;
    CHECK(utf8_length(text, bad) == text.size());
  }
}

TEST_CASE("text is cut between characters") {
  CHECK(cut_utf8("aé", 3) == "aé");
  CHECK(cut_utf8("aé", 2) == "a");
  CHECK(cut_utf8("🙂🙂", 7) == "🙂");
  CHECK(cut_utf8("🙂", 3).empty());
  CHECK(cut_utf8(std::string(10, '\x80'), 5).size() == 2);  // not UTF-8: any position will do
}

TEST_CASE("a text is decoded when it is first read, once") {
  CHECK(LazyText("as it is").view() == "as it is");
  int decoded = 0;
  const LazyText text(R"(a\nb)",
                      [](const void* line, std::string_view content) {
                        ++*static_cast<int*>(const_cast<void*>(line));
                        return content.substr(0, 1);
                      },
                      &decoded);
  CHECK(decoded == 0);
  CHECK(std::string_view(text) == "a");
  CHECK(text.view() == "a");
  CHECK(decoded == 1);
}

TEST_CASE("blanks around a text are removed") {
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim("a") == "a");
  CHECK(trim(" \n").empty());
  CHECK(trim("").empty());
  CHECK(trim("\ta ", " ") == "\ta");
}

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

namespace {

bool matches_by_definition(std::u32string_view pattern, std::u32string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*' && matches_by_definition(pattern.substr(1), text)) return true;
  if (text.empty() || (pattern[0] != '*' && pattern[0] != '?' && pattern[0] != text[0])) return false;
  return matches_by_definition(pattern.substr(pattern[0] == '*' ? 0 : 1), text.substr(1));
}

/// All texts of up to `length` of these characters.
std::vector<std::u32string> texts_of(std::u32string_view characters, std::size_t length) {
  std::vector<std::u32string> texts = {U""};
  for (std::size_t n = 0; n < texts.size() && texts[n].size() < length; ++n)
    for (const char32_t c : characters) texts.push_back(texts[n] + c);
  return texts;
}

std::string utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) out += c == U'\u00e9' ? "\xc3\xa9" : std::string(1, static_cast<char>(c));
  return out;
}

}  // namespace

TEST_CASE("all short patterns match by definition") {
  std::size_t wrong = 0;
  for (const auto& pattern : texts_of(U"ab\u00e9*?", 5))
    for (const auto& text : texts_of(U"ab\u00e9", 4))
      wrong += matches_glob(utf8(pattern), utf8(text)) != matches_by_definition(pattern, text);
  CHECK(wrong == 0);
}

TEST_CASE("no pattern takes for ever") {
  std::string pattern;
  while (pattern.size() < 254) pattern += "a*";
  pattern += "b";
  const std::string text(4096, 'a');  // an exponential matcher would not return
  REQUIRE_FALSE(matches_glob(pattern, text));
  REQUIRE(matches_glob(pattern, text + "b"));
}

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

TEST_CASE("find_last() finds what rfind() finds") {
  for (const std::string_view text :
       {"", "\n", "a", "a\nb", "\n\n", "a\nb\nc", "longer than a register\nof a processor is"})
    CHECK(find_last(text, '\n') == text.rfind('\n'));
  CHECK(find_last(std::string_view("a\nb").substr(0, 1), '\n') == std::string_view::npos);
}

TEST_CASE("is_same_name() compares every byte, at any length") {
  std::string name;
  for (std::size_t size = 0; size <= 40; ++size, name += static_cast<char>('a' + size % 26)) {
    CHECK(is_same_name(name, std::string(name)));
    CHECK_FALSE(is_same_name(name, name + "x"));
    for (std::size_t n = 0; n < name.size(); ++n) {
      std::string other = name;
      other[n] ^= 1;
      CHECK_FALSE(is_same_name(name, other));
    }
  }
}
