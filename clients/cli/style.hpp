// Output: colours, symbols, lines and tables that fit the terminal, and the pager.
#pragma once
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/display_text.hpp"
#include "common/format.hpp"
#include "common/output.hpp"

namespace earshot::cli {

using namespace common;

enum class Palette { none, ansi16, ansi256 };

/// What the output can show.
struct DisplayOptions {
  Charset charset = Charset::utf8;
  Palette palette = Palette::none;
  std::size_t columns = 0;  // 0: not a terminal, lines are not cut
};

/// The meaning of a colour. name_first and the following ones distinguish names.
enum class Style { plain, dim, bold, good, bad, note, loud, name_first };

constexpr int name_styles = 8;  // Style::name_first + 0…7

/// The colour of a name, the same in every run.
Style style_of_name(std::string_view name);

enum class Glyph {
  turn,
  tool,
  ok,
  error,
  stopped,
  waiting,
  finished,
  assistant,
  user,
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

/// One column wide, except `arrow` in ASCII (->).
std::string_view glyph(Glyph which, Charset charset);

/// Builds a line of styled pieces. Each piece must be displayable text (base/display_text.hpp).
class Line {
 public:
  Line& add(std::string_view display_text, Style style = Style::plain);
  Line& add(const Line& other);
  Line& space(std::size_t columns);
  bool empty() const { return pieces_.empty(); }
  std::size_t width() const { return width_; }
  /// Without a line end; cut to `display.columns`, with an ellipsis in the last one.
  std::string str(const DisplayOptions& display) const;

 private:
  struct Piece {
    std::string text;
    Style style;
  };
  std::vector<Piece> pieces_;
  std::size_t width_ = 0;
};

struct Cell {
  std::string text;  // displayable
  Style style = Style::plain;
};

struct Column {
  std::string title;
  std::size_t columns_min = 0;  // never narrower than this if it is shown
  std::size_t columns_max = 0;  // 0: as wide as its widest cell
  int rank = 0;                 // the highest rank is dropped first; 0: never
  bool right = false;           // aligned to the right
};

/// Columns without any text are omitted. Each line ends with a line end.
std::string format_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                         const DisplayOptions& display, bool titles = true);

enum class ColourMode { always, never, automatic };

/// Columns of the terminal on stdout; 0 if stdout is not a terminal.
std::size_t terminal_columns();

/// From the locale, TERM, NO_COLOR and the type of stdout.
DisplayOptions stdout_display(ColourMode mode);

/// Runs $PAGER, or `less -FRX`, during its lifetime: write to fd(). ^C then belongs to the pager.
class Pager {
 public:
  /// Starts nothing unless `enabled`, stdout is a terminal, PAGER is neither empty nor `cat`, and the program
  /// exists; fd() is stdout then.
  explicit Pager(bool enabled);
  /// Waits until the pager exits.
  ~Pager();
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  int fd() const;

 private:
  std::FILE* pipe_ = nullptr;
  void (*interrupt_handler_)(int) = nullptr;
};

}  // namespace earshot::cli
