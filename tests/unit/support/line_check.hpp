// Compares the line parser with simdjson's DOM, which is the reference.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/line_parser.hpp"

namespace earshot::test {

class LineCheck {
 public:
  struct Counts {
    std::size_t blank = 0, object = 0, other = 0, refused = 0;
  };

  explicit LineCheck(LineScanner::Kernel kernel) : parser_(kernel) {}

  /// Parses whole lines, each with its LF, as one chunk and each alone. What the parser accepts and the
  /// values that it reads must be those of the DOM. Returns the first difference and its line; empty: there
  /// is none.
  std::string compare(std::string_view lines);
  const Counts& counts() const { return counts_; }  // of lines in chunks

 private:
  std::string compare_line(const LineParser::Parsed& parsed, std::string_view line);

  LineParser parser_;
  simdjson::dom::parser dom_, again_;
  std::string text_;
  Counts counts_;
};

/// A valid or broken record made of `line` by a few edits; `next(n)` returns a number below n.
template <class Next>
std::string mutated(std::string line, Next&& next) {
  using namespace std::string_view_literals;
  static constexpr std::string_view pieces[] = {"\""sv,
                                                "\\"sv,
                                                "{"sv,
                                                "}"sv,
                                                "["sv,
                                                "]"sv,
                                                ","sv,
                                                ":"sv,
                                                "\\u"sv,
                                                "\\ud83d"sv,
                                                "\\ude00"sv,
                                                "\\ud83d\\ude00"sv,
                                                "\\n"sv,
                                                "\\x"sv,
                                                "0"sv,
                                                "1"sv,
                                                "-"sv,
                                                "."sv,
                                                "e"sv,
                                                "E+"sv,
                                                "1e400"sv,
                                                "1e-400"sv,
                                                "-1e-400"sv,
                                                "1e308"sv,
                                                "-0"sv,
                                                "-0.0"sv,
                                                "18446744073709551615"sv,
                                                "null"sv,
                                                "true"sv,
                                                "18446744073709551616"sv,
                                                "fals"sv,
                                                " "sv,
                                                "-9223372036854775808"sv,
                                                "\t"sv,
                                                "\r"sv,
                                                "-9223372036854775809"sv,
                                                "\0"sv,
                                                "\x0c"sv,
                                                "9999999999999999999"sv,
                                                "\x1a"sv,
                                                "\x1f"sv,
                                                "\x7f"sv,
                                                "\x80"sv,
                                                "\xc0"sv,
                                                "\xed\xa0\x80"sv,
                                                "\xff"sv,
                                                "\xef\xbb\xbf"sv,
                                                "\xf4\x90\x80\x80"sv,
                                                "{}"sv,
                                                "[]"sv,
                                                "\xf0\x9f\x98\x80"sv,
                                                "\"a\":1,"sv,
                                                "\"type\":"sv,
                                                "\\\\"sv,
                                                "\\\""sv,
                                                "\n"sv};
  const auto piece = [&] { return pieces[next(std::size(pieces))]; };
  for (std::size_t edits = 1 + next(3); edits > 0 && !line.empty(); --edits) {
    const std::size_t at = next(line.size());
    switch (next(7)) {
      case 0:
        line[at] = static_cast<char>(next(256));
        break;
      case 1:
        line.erase(at, 1 + next(4));
        break;
      case 2:
      case 3:
        line.insert(at, piece());
        break;
      case 4:
        line.insert(at, line.substr(next(line.size()), next(40)));
        break;
      case 5:
        line.resize(at);
        break;
      default:  // another text in the place of a structural character
        if (const std::size_t found = line.find_first_of("{}[],:\"", at); found != line.npos)
          line.replace(found, 1, piece());
    }
  }
  return line;
}

}  // namespace earshot::test
