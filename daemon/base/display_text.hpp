// Text for terminals: safe to print, and how wide it is there. Pure functions.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace earshot {

enum class Charset { utf8, ascii };

/// How a line break is shown on a single line.
enum class LineBreaks {
  space,   // prose: every run of white space is one space
  symbol,  // commands: ⏎ (| in ASCII)
};

/// One line of displayable text, so that the content of a transcript cannot control the terminal. C0, DEL, C1
/// and bidirectional controls, line separators and invisible characters become visible escapes (\x1b,
/// \u202e). Joiners and variation selectors of emoji are removed: their width differs between terminals.
/// Bytes that are not UTF-8 become U+FFFD. In ASCII quotes, dashes and the like become similar ones, other
/// characters `?`. Only the first `bytes_max` bytes of `text` are used.
std::string to_display_line(std::string_view text, Charset charset,
                            LineBreaks line_breaks = LineBreaks::space, std::size_t bytes_max = 4096);

/// The same for one line of code: blanks are kept, a tab advances to the next multiple of 8 columns, trailing
/// blanks are removed. `line` has no line break.
std::string to_display_code(std::string_view line, Charset charset);

struct WrappedText {
  std::vector<std::string> lines;
  std::size_t omitted = 0;  // lines beyond the limit
};
/// Displayable lines, each at most `columns` wide (0: unlimited), broken between words where possible.
/// Continued lines keep the indentation. Of consecutive empty lines one is kept. At most `lines_max` lines.
WrappedText wrap_text(std::string_view text, std::size_t columns, Charset charset, std::size_t lines_max);

/// The columns of one code point: 0, 1 or 2. East Asian ambiguous ones have 1.
int code_point_width(char32_t code_point);

/// The columns of displayable text.
std::size_t display_width(std::string_view text);

/// The longest beginning of displayable text that fits into `columns`; if it was cut, it ends with `ellipsis`
/// (one column).
std::string cut_to_width(std::string_view text, std::size_t columns, std::string_view ellipsis);

/// The same for the end of the text, behind the ellipsis: …/daemon/core.
std::string cut_start_to_width(std::string_view text, std::size_t columns, std::string_view ellipsis);

/// Equivalent JSON that is safe to print: in strings DEL, C1, bidirectional controls and invisible characters
/// are \u-escaped; raw controls, which valid JSON has only between tokens, become spaces.
std::string to_display_json(std::string_view json);

/// The first `bytes_max` bytes of UTF-8 text, cut between characters, with each control character (C0, DEL,
/// C1) replaced by spaces.
std::string replace_controls(std::string_view text, std::size_t bytes_max);

/// Escapes `&`, `<` and `>` for XML and other markup.
std::string escape_markup(std::string_view text);

/// Removes and returns the first code point; U+FFFD, and one byte is removed, if it is not UTF-8. `text` must
/// not be empty.
char32_t take_code_point(std::string_view& text);

}  // namespace earshot
