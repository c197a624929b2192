#include "base/display_text.hpp"

#include <catch2/catch.hpp>

using namespace earshot;

namespace {

using Lines = std::vector<std::string>;

std::string line(std::string_view text) { return to_display_line(text, Charset::utf8); }

Lines wrap(std::string_view text, std::size_t columns) {
  return wrap_text(text, columns, Charset::utf8, 100).lines;
}

// Whether it has no character that controls the terminal or reorders text.
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

TEST_CASE("escape sequences are displayed, not executed") {
  CHECK(line("\x1b[31mred\x1b[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(line("\x1b]0;owned\a") == "\\x1b]0;owned\\x07");
}

TEST_CASE("DEL, C1 and bidirectional controls are shown as escapes") {
  CHECK(line("a\x7f"
             "b") == "a\\x7fb");
  CHECK(line("\xc2\x9b"
             "31m") == "\\x9b31m");
  CHECK(line("\xe2\x80\xae"
             "exe.txt") == "\\u202eexe.txt");
  CHECK(line("\xe2\x81\xa6x\xe2\x81\xa9") == "\\u2066x\\u2069");
  CHECK(line("\xe2\x80\x8e\xe2\x80\x8f") == "\\u200e\\u200f");
  CHECK(line("\xf3\xa0\x81\x81") == "\\U000e0041");
}

TEST_CASE("no sequence of two bytes controls the terminal") {
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const char bytes[] = {static_cast<char>(a), static_cast<char>(b), 'x'};
      const std::string text(bytes, 3);
      if (!is_harmless(line(text)) || !is_harmless(to_display_line(text, Charset::ascii)))
        FAIL("bytes " << a << ' ' << b);
    }
  }
  CHECK(is_harmless(line("plain")));
}

TEST_CASE("white space is one space in prose, line breaks are symbols in commands") {
  CHECK(line("  one\n\ttwo  three \n") == "one two three");
  CHECK(to_display_line("cd x\n  make", Charset::utf8, LineBreaks::symbol) == "cd x ⏎ make");
  CHECK(to_display_line("cd x\n  make", Charset::ascii, LineBreaks::symbol) == "cd x | make");
}

TEST_CASE("bytes that are not UTF-8 become U+FFFD") {
  CHECK(line("a\xff"
             "b") ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(line("\xc0\xaf") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(line("\xed\xa0\x80") == "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(line("caf\xc3") == "caf\xef\xbf\xbd");
}

TEST_CASE("in ASCII other characters are question marks") {
  CHECK(to_display_line("café ✓", Charset::ascii) == "caf? ?");
  CHECK(to_display_line("“it’s” · a — b…", Charset::ascii) == "\"it's\" - a - b...");
  CHECK(to_display_line("e\xcc\x81", Charset::ascii) == "e");
}

TEST_CASE("only the beginning of a long text is used") {
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
  CHECK(code_point_width(0x0903) == 1);   // a spacing mark
  CHECK(code_point_width(0x1160) == 0);   // Hangul that joins
  CHECK(code_point_width(0x1faff) == 2);  // reserved for emoji
}

TEST_CASE(
    "fault 158: invisible characters are escaped, joiners and selectors unless they are part of an emoji") {
  const auto line = [](std::string_view text) { return to_display_line(text, Charset::utf8); };
  CHECK(line("rm -rf build\u200b\U000e0041\u00ad\ufeff\u2060 #") ==
        "rm -rf build\\u200b\\U000e0041\\xad\\ufeff\\u2060 #");
  CHECK(line("a\u200db 1\ufe0f a\ufe0f x\ufe01") == "a\\u200db 1\\ufe0f a\\ufe0f x\\ufe01");
  CHECK(line("\U0001f680\u200d \u200d\U0001f680") == "\U0001f680\\u200d \\u200d\U0001f680");
  CHECK(line("\U0001f469\u200d\U0001f680 \u2764\ufe0f 1\ufe0f\u20e3") ==
        "\U0001f469\U0001f680 \u2764 1\u20e3");
  CHECK(line("\U0001f468\U0001f3fd\u200d\U0001f4bb") == "\U0001f468\U0001f3fd\U0001f4bb");
  CHECK(to_display_code("x\u200b\u200d", Charset::utf8) == "x\\u200b\\u200d");
  CHECK(to_display_json("\"a\u200b\u200d \U0001f469\u200d\U0001f680\"") ==
        "\"a\\u200b\\u200d \U0001f469\u200d\U0001f680\"");
}

TEST_CASE("emoji joiners are removed, so that the width is the same on every terminal") {
  CHECK(display_width(line("👩‍💻")) == 4);
  CHECK(line("❤️") == "❤");
}

TEST_CASE("a cut text fits and ends with the ellipsis") {
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
TEST_CASE("lines break between words, and inside a word that is too long") {
  CHECK(wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrap("abcdefghij k", 4) == Lines{"abcd", "efgh", "ij k"});
  CHECK(wrap("  if (x) { return; }", 12) == Lines{"  if (x) {", "  return; }"});
  CHECK(wrap("abcde", 4) == Lines{"abcd", "e"});  // too long by one, also in the rest of a line
  CHECK(wrap("abcdefghi", 4) == Lines{"abcd", "efgh", "i"});
}

TEST_CASE("wide characters take two columns, one that does not fit has a line of its own") {
  CHECK(wrap("日本語日本語", 4) == Lines{"日本", "語日", "本語"});
  CHECK(wrap("日本", 1) == Lines{"日", "本"});
  CHECK(wrap("日本語", 5) == Lines{"日本", "語"});
  CHECK(wrap(" 日本", 2) == Lines{"日", "本"});  // instead of the indentation
  CHECK(wrap(" 日本", 3) == Lines{" 日", " 本"});
}

TEST_CASE("blanks of code are kept, tabs become blanks, one of several empty lines is kept") {
  CHECK(wrap("a\n\n\n\n\tb  c\t\n\n", 0) == Lines{"a", "", "        b  c"});
  CHECK(to_display_code("ab\tc", Charset::utf8) == "ab      c");
}

TEST_CASE("lines beyond the limit are counted") {
  const WrappedText text = wrap_text("a\nb\nc\nd", 0, Charset::utf8, 2);
  CHECK(text.lines == Lines{"a", "b"});
  CHECK(text.omitted == 2);
}

TEST_CASE("wrapped text is safe, too") {
  for (const std::string& each : wrap("\x1b[31m\r\n\x9b\xc2\x9b\xe2\x80\xae", 0)) {
    for (const char* bad : {"\x1b", "\r", "\xc2\x9b", "\xe2\x80\xae"})
      CHECK(each.find(bad) == std::string::npos);
  }
}

TEST_CASE("control characters are replaced by spaces, after the text is cut between characters") {
  CHECK(replace_controls("a\nb\x7f\x1b[0m", 100) == "a b  [0m");
  CHECK(replace_controls("\xc2\x9b"
                         "31m é",
                         100) == "  31m é");
  CHECK(replace_controls("aé", 2) == "a");
  CHECK(replace_controls("aé", 3) == "aé");
  CHECK(replace_controls("", 3).empty());
}
