#include "cli/table.hpp"

#include <catch2/catch.hpp>

using namespace earshot;
using namespace earshot::cli;

namespace {

DisplayOptions plain(std::size_t columns) { return {Charset::utf8, Palette::none, columns}; }

const std::vector<Column> columns = {{"NAME", 3, 12, 0}, {"SIZE", 0, 0, 2, true}, {"NOTE", 4, 0, 1}};

const std::vector<std::vector<Cell>> rows = {
    {{"alpha", Style::plain}, {"7", Style::plain}, {"first of all", Style::plain}},
    {{"b", Style::plain}, {"12345", Style::plain}, {"", Style::plain}},
};

}  // namespace

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
