#include "common/text.hpp"

#include <catch2/catch.hpp>

using namespace earshot::common;

namespace {

std::string shown(std::string_view text) { return to_display_line(text, Charset::utf8); }

// Whether a terminal would take any of it as a command.
bool is_harmless(std::string_view text) {
  while (!text.empty()) {
    const char32_t c = take_code_point(text);
    const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    const bool reorders =
        (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f;
    if (control || reorders) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("an escape sequence is shown, not obeyed") {
  CHECK(shown("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(shown("\x1b]0;owned\a") == "\\x1b]0;owned\\x07");
}

TEST_CASE("DEL, C1 and bidirectional controls are shown as escapes") {
  CHECK(shown("a\x7f"
              "b") == "a\\x7fb");
  CHECK(shown("\xc2\x9b"
              "31m") == "\\x9b31m");
  CHECK(shown("\xe2\x80\xae"
              "exe.txt") == "\\u202eexe.txt");
  CHECK(shown("\xe2\x81\xa6x\xe2\x81\xa9") == "\\u2066x\\u2069");
  CHECK(shown("\xe2\x80\x8e\xe2\x80\x8f") == "\\u200e\\u200f");
  CHECK(shown("\xf3\xa0\x81\x81") == "\\U000e0041");
}

TEST_CASE("no byte sequence of two reaches the terminal as a command") {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char bytes[] = {static_cast<char>(a), static_cast<char>(b), 'x'};
      const std::string text(bytes, 3);
      if (!is_harmless(shown(text)) || !is_harmless(to_display_line(text, Charset::ascii)))
        FAIL("bytes " << a << ' ' << b);
    }
  }
  CHECK(is_harmless(shown("plain")));
}

TEST_CASE("white space is one space in prose, and line ends are marked in commands") {
  CHECK(shown("  one\n\ttwo  three \n") == "one two three");
  CHECK(to_display_line("cd x\n  make", Charset::utf8, LineBreaks::symbol) == "cd x ⏎ make");
  CHECK(to_display_line("cd x\n  make", Charset::ascii, LineBreaks::symbol) == "cd x | make");
}

TEST_CASE("bytes that are not UTF-8 become U+FFFD") {
  CHECK(shown("a\xff"
              "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(shown("\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(shown("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(shown("caf\xc3") == "caf\xef\xbf\xbd");
}

TEST_CASE("in ASCII what is not ASCII is a question mark") {
  CHECK(to_display_line("café ✓", Charset::ascii) == "caf? ?");
  CHECK(to_display_line("e\xcc\x81", Charset::ascii) == "e");
}

TEST_CASE("only the beginning of a long text is looked at") {
  CHECK(to_display_line(std::string(100'000, 'x'), Charset::utf8).size() == 4096);
}

TEST_CASE("width counts columns, not bytes or code points") {
  CHECK(display_width("") == 0);
  CHECK(display_width("abc") == 3);
  CHECK(display_width("café") == 4);
  CHECK(display_width("cafe\xcc\x81") == 4);
  CHECK(display_width("漢字") == 4);
  CHECK(display_width("한국어") == 6);
  CHECK(display_width("🙂") == 2);
  CHECK(display_width("▶ ⚙ ✓ ✗ ⏸ ■ …") == 13);
  CHECK(code_point_width(0x1f1e6) == 1);
  CHECK(code_point_width(0x10ffff) == 1);
}

TEST_CASE("emoji joiners go, so that the width is the same on every terminal") {
  CHECK(display_width(shown("👩‍💻")) == 4);
  CHECK(shown("❤️") == "❤");
}

TEST_CASE("a cut text fits and says that it was cut") {
  CHECK(cut_to_width("abcdef", 6, "…") == "abcdef");
  CHECK(cut_to_width("abcdef", 5, "…") == "abcd…");
  CHECK(cut_to_width("漢字漢字", 5, "…") == "漢字…");
  CHECK(cut_to_width("漢字漢字", 4, "…") == "漢…");
  CHECK(cut_to_width("abc", 1, "…") == "…");
  CHECK(cut_to_width("abc", 0, "…").empty());
  CHECK(cut_start_to_width("/home/u/api", 5, "…") == "…/api");
  CHECK(cut_start_to_width("api", 5, "…") == "api");
  for (std::size_t columns = 0; columns < 20; ++columns) {
    CHECK(display_width(cut_to_width("a漢b字c🙂d", columns, "…")) <= columns);
    CHECK(display_width(cut_start_to_width("a漢b字c🙂d", columns, "…")) <= columns);
  }
}

TEST_CASE("JSON for a terminal is the same JSON without raw controls") {
  CHECK(to_display_json("{\"a\":\"x\x7f\xc2\x85\xe2\x80\xaey\"}") == R"({"a":"x\u007f\u0085\u202ey"})");
  CHECK(to_display_json("{\n\"a\": 1}") == "{ \"a\": 1}");
  CHECK(to_display_json("\"\xf3\xa0\x81\x81\"") == R"("\udb40\udc41")");
  CHECK(to_display_json("\"é漢🙂\"") == "\"é漢🙂\"");
}
