#include "cli/style.hpp"

#include <catch2/catch.hpp>
#include <set>

namespace style_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

Line greeting() { return std::move(Line().add("hello", Style::good).space(1).add("world", Style::bad)); }

DisplayOptions plain(std::size_t columns) { return {Charset::utf8, Palette::none, columns}; }

const std::vector<Column> columns = {{"NAME", 3, 12, 0}, {"SIZE", 0, 0, 2, true}, {"NOTE", 4, 0, 1}};

const std::vector<std::vector<Cell>> rows = {
    {{"alpha", Style::plain}, {"7", Style::plain}, {"first of all", Style::plain}},
    {{"b", Style::plain}, {"12345", Style::plain}, {"", Style::plain}},
};

}  // namespace

TEST_CASE("without colours a line is plain text") {
  CHECK(greeting().str({Charset::utf8, Palette::none, 0}) == "hello world");
}

TEST_CASE("each coloured piece is reset, plain text has no codes") {
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

TEST_CASE("columns are as wide as their widest cell") {
  CHECK(format_table(columns, rows, plain(0)) ==
        "NAME    SIZE  NOTE\n"
        "alpha      7  first of all\n"
        "b      12345\n");
}

TEST_CASE("the last column is narrowed first") {
  CHECK(format_table(columns, rows, plain(20)) ==
        "NAME    SIZE  NOTE\n"
        "alpha      7  first…\n"
        "b      12345\n");
}

TEST_CASE("then columns are dropped, the least important first") {
  CHECK(format_table(columns, rows, plain(14)) ==
        "NAME   NOTE\n"
        "alpha  first …\n"
        "b\n");
  CHECK(format_table(columns, rows, plain(6)) ==
        "NAME\n"
        "alpha\n"
        "b\n");
}

TEST_CASE("a column without text is omitted") {
  CHECK(format_table(columns, {{{"a", Style::plain}, {"", Style::plain}, {"x", Style::plain}}}, plain(0)) ==
        "NAME  NOTE\n"
        "a     x\n");
}

TEST_CASE("wide characters are aligned by their width") {
  CHECK(format_table(
            {{"A", 0, 0, 0}, {"B", 0, 0, 0}},
            {{{"漢字", Style::plain}, {"x", Style::plain}}, {{"ab", Style::plain}, {"y", Style::plain}}},
            plain(0)) ==
        "A     B\n"
        "漢字  x\n"
        "ab    y\n");
}

TEST_CASE("no line is wider than the terminal") {
  for (std::size_t room = 1; room < 40; ++room) {
    const std::string text = format_table(columns, rows, plain(room));
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != text.npos; begin = end + 1, end = text.find('\n', begin)) {
      CAPTURE(room);
      CHECK(display_width(text.substr(begin, end - begin)) <= room);
    }
  }
}

}  // namespace style_test
