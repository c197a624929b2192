#include "cli/style.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace earshot;
using namespace earshot::cli;

namespace {

Line greeting() { return std::move(Line().add("hello", Style::good).space(1).add("world", Style::bad)); }

}  // namespace

TEST_CASE("without colours a line is plain text") {
  CHECK(greeting().str({Charset::utf8, Palette::none, 0}) == "hello world");
}

TEST_CASE("each coloured piece is reset; plain text has no codes") {
  CHECK(greeting().str({Charset::utf8, Palette::ansi16, 0}) == "\x1b[32mhello\x1b[0m \x1b[31mworld\x1b[0m");
}

TEST_CASE("a line is never wider than the terminal") {
  for (std::size_t columns = 1; columns < 14; ++columns) {
    CAPTURE(columns);
    const std::string text = greeting().str({Charset::utf8, Palette::none, columns});
    CHECK(display_width(text) == std::min<std::size_t>(columns, 11));
    CHECK((text == "hello world" || text.ends_with("…")));
  }
  CHECK(greeting().str({Charset::utf8, Palette::none, 5}) == "hell…");
  CHECK(greeting().str({Charset::ascii, Palette::none, 6}) == "hello~");
}

TEST_CASE("a cut line resets its colour") {
  CHECK(greeting().str({Charset::utf8, Palette::ansi16, 8}) == "\x1b[32mhello\x1b[0m \x1b[31mw…\x1b[0m");
}

TEST_CASE("a name always has the same colour, and there are several") {
  CHECK(style_of_name("/home/u/api") == style_of_name("/home/u/api"));
  std::set<Style> styles;
  for (int i = 0; i < 100; ++i) styles.insert(style_of_name("/home/u/project" + std::to_string(i)));
  CHECK(styles.size() == name_styles);
}

TEST_CASE("every glyph is one column wide") {
  for (int i = 0; i <= static_cast<int>(Glyph::rule); ++i) {
    CAPTURE(i);
    CHECK(display_width(glyph(static_cast<Glyph>(i), Charset::utf8)) == 1);
    CHECK(to_display_line(glyph(static_cast<Glyph>(i), Charset::ascii), Charset::ascii) ==
          glyph(static_cast<Glyph>(i), Charset::ascii));
  }
}
