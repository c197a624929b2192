// Text that is safe on a terminal, and how wide it is there. Pure functions.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::common {

enum class Charset { utf8, ascii };

enum class LineBreaks {
  space,  // prose: every run of white space is one space
  mark,   // commands: a line end is shown as ⏎ (| in ASCII)
};

/// One line of visible text: what a transcript says must never reach the terminal as a command. C0, DEL, C1
/// and bidirectional controls, line separators and invisible tags become visible escapes (\x1b, \u202e);
/// emoji joiners and variation selectors, on whose width no two terminals agree, go; bytes that are not UTF-8
/// become U+FFFD. In ASCII anything else becomes `?`. At most `bytes_max` bytes of `text` are looked at: more
/// would not fit on any line.
std::string to_display_line(std::string_view text, Charset charset, LineBreaks newlines = LineBreaks::space,
                            std::size_t bytes_max = 4096);

/// The same for one line whose blanks matter, such as code: they stay, a tab is blanks up to the next eighth
/// column. `line` has no line end.
std::string to_display_code(std::string_view line, Charset charset);

/// Printable lines of text of several lines, each at most `columns` wide (0: as long as they are), broken
/// between words where that is possible; what a broken line goes on with is indented as the line was. Of
/// several empty lines one stays. At most `lines_max`; `omitted` says how many there were beyond.
struct WrappedText {
  std::vector<std::string> lines;
  std::size_t omitted = 0;
};
WrappedText wrap_text(std::string_view text, std::size_t columns, Charset charset, std::size_t lines_max);

/// Columns that one code point takes: 0, 1 or 2. Ambiguous ones take 1.
int code_point_width(char32_t code_point);

/// Columns that printable text takes.
std::size_t display_width(std::string_view printable_text);

/// As much of printable text as fits into `columns`; `ellipsis` (one column) stands for the rest.
std::string cut_to_width(std::string_view printable_text, std::size_t columns, std::string_view ellipsis);

/// The same, of the end: what fits is the last part (…/daemon/core).
std::string cut_start_to_width(std::string_view printable_text, std::size_t columns,
                               std::string_view ellipsis);

/// JSON text that stays the same JSON but is safe on a terminal: DEL, C1, bidirectional controls and the like
/// are \u-escaped inside strings; a raw line end, which can only be white space between tokens, becomes a
/// space.
std::string to_display_json(std::string_view json);

/// The next code point of UTF-8 text, which is advanced; U+FFFD for a byte that is none. `text` must not be
/// empty.
char32_t take_code_point(std::string_view& text);

}  // namespace earshot::common
