#include <catch2/catch.hpp>

#include "common/text.hpp"

using namespace earshot::common;

namespace {
using Lines = std::vector<std::string>;
Lines wrap(std::string_view text, std::size_t columns) {
  return wrap_text(text, columns, Charset::utf8, 100).lines;
}
}  // namespace

TEST_CASE("lines break between words, and inside a word that is too long") {
  CHECK(wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrap("abcdefghij k", 4) == Lines{"abcd", "efgh", "ij k"});
  CHECK(wrap("  if (x) { return; }", 12) == Lines{"  if (x) {", "  return; }"});
  CHECK(wrap("abcde", 4) == Lines{"abcd", "e"});  // one character too long, also in what is left of a line
  CHECK(wrap("abcdefghi", 4) == Lines{"abcd", "efgh", "i"});
}

TEST_CASE("wide characters take two columns, and one that does not fit still comes") {
  CHECK(wrap("日本語日本語", 4) == Lines{"日本", "語日", "本語"});
  CHECK(wrap("日本", 1) == Lines{"日", "本"});
  CHECK(wrap("日本語", 5) == Lines{"日本", "語"});
  CHECK(wrap(" 日本", 2) == Lines{"日", "本"});  // rather than the indentation
  CHECK(wrap(" 日本", 3) == Lines{" 日", " 本"});
}

TEST_CASE("blanks of code stay, tabs become blanks, of empty lines one stays") {
  CHECK(wrap("a\n\n\n\n\tb  c\t\n\n", 0) == Lines{"a", "", "        b  c"});
  CHECK(to_display_code("ab\tc", Charset::utf8) == "ab      c");
}

TEST_CASE("what is beyond the last line is counted") {
  const WrappedText text = wrap_text("a\nb\nc\nd", 0, Charset::utf8, 2);
  CHECK(text.lines == Lines{"a", "b"});
  CHECK(text.omitted == 2);
}

TEST_CASE("wrapped text is as safe as any") {
  for (const std::string& line : wrap("\x1b[31m\r\n\x9b\xc2\x9b\xe2\x80\xae", 0)) {
    for (const char* bad : {"\x1b", "\r", "\xc2\x9b", "\xe2\x80\xae"})
      CHECK(line.find(bad) == std::string::npos);
  }
}
