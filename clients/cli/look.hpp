// How lines display: colours, marks, and a line that is cut to the terminal.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/display_text.hpp"

namespace earshot::cli {

using namespace common;

enum class Palette { none, ansi16, ansi256 };

/// What is printed and how much room it has.
struct DisplayOptions {
  Charset charset = Charset::utf8;
  Palette palette = Palette::none;
  std::size_t columns = 0;  // 0: no terminal, nothing is cut
};

/// What a colour means; hash(…) tells names apart.
enum class Style { plain, dim, bold, good, bad, note, loud, name_first };

constexpr int name_styles = 8;  // Style::name_first + 0…7

/// A stable colour of a name: the same in every run.
Style style_of_name(std::string_view name);

enum class Glyph {
  turn,
  tool,
  ok,
  error,
  stopped,
  waiting,
  finished,
  said,
  asked,
  session,
  working,
  idle,
  ended,
  unknown,
  todo,
  compaction,
  agent,
  queue,
  api,
  skipped,
  ellipsis,
  dot,
  arrow,
  rule,
};

/// One column wide everywhere, but for `arrow` in ASCII (->).
std::string_view glyph(Glyph which, Charset charset);

/// A line in the making: pieces with a style each. Pieces must be to_display_line() text.
class Line {
 public:
  Line& add(std::string_view printable_text, Style style = Style::plain);
  Line& add(const Line& other);
  Line& space(std::size_t columns);
  bool empty() const { return pieces_.empty(); }
  std::size_t width() const { return width_; }
  /// Without a line end; cut to the display's columns, with an ellipsis in the last one.
  std::string str(const DisplayOptions& display) const;

 private:
  struct Piece {
    std::string text;
    Style style;
  };
  std::vector<Piece> pieces_;
  std::size_t width_ = 0;
};

}  // namespace earshot::cli
