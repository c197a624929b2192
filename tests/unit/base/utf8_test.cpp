#include "base/utf8.hpp"

#include <catch2/catch.hpp>

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

TEST_CASE("blanks around a text are removed") {
  CHECK(trim(" \t a b\r\n") == "a b");
  CHECK(trim("a") == "a");
  CHECK(trim(" \n").empty());
  CHECK(trim("").empty());
  CHECK(trim("\ta ", " ") == "\ta");
}
