#include "cli/style.hpp"

#include <cstdint>

namespace earshot::cli {
namespace {

struct Mark {
  std::string_view utf8, ascii;
};

constexpr Mark marks[] = {
    {"▶", ">"},    // turn
    {"⚙", "*"},    // tool
    {"✓", "+"},    // ok
    {"✗", "x"},    // error
    {"⊘", "-"},    // stopped
    {"⏸", "!"},  // waiting
    {"■", "="},    // finished
    {"“", "\""},   // said
    {"›", ">"},    // asked
    {"◆", "#"},    // session
    {"●", "*"},    // working
    {"○", "o"},    // idle
    {"·", "."},    // ended
    {"?", "?"},    // unknown
    {"≡", "="},    // todo
    {"≈", "~"},    // compaction
    {"↳", "\\"},   // agent
    {"⋯", ":"},    // queue
    {"↻", "@"},    // api
    {"¿", "?"},    // skipped
    {"…", "~"},    // ellipsis
    {"·", "-"},    // dot
    {"→", "->"},   // arrow
    {"─", "-"},    // rule
};

// Of the 256: of middling lightness, so that they read on dark and on light, and none that means good, bad or
// note.
constexpr std::string_view names_256[name_styles] = {"38;5;74",  "38;5;139", "38;5;109", "38;5;173",
                                                     "38;5;105", "38;5;72",  "38;5;175", "38;5;67"};
constexpr std::string_view names_16[name_styles] = {"36", "35", "34", "96", "95", "94", "36;1", "35;1"};

std::string_view sgr(Style style, Palette palette) {
  switch (style) {
    case Style::plain:
      return {};
    case Style::dim:
      return "2";
    case Style::bold:
      return "1";
    case Style::good:
      return "32";
    case Style::bad:
      return "31";
    case Style::note:
      return "33";
    case Style::loud:
      return "1;33";
    case Style::name_first:
      break;
  }
  const std::size_t index =
      (static_cast<std::size_t>(style) - static_cast<std::size_t>(Style::name_first)) % name_styles;
  return palette == Palette::ansi256 ? names_256[index] : names_16[index];
}

}  // namespace

Style style_of_name(std::string_view name) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a: the same on every machine
  for (const unsigned char byte : name) hash = (hash ^ byte) * 1099511628211U;
  return static_cast<Style>(static_cast<std::uint64_t>(Style::name_first) +
                            (hash ^ (hash >> 32)) % name_styles);
}

std::string_view glyph(Glyph which, Charset charset) {
  const Mark& mark = marks[static_cast<std::size_t>(which)];
  return charset == Charset::utf8 ? mark.utf8 : mark.ascii;
}

Line& Line::add(std::string_view printable_text, Style style) {
  if (printable_text.empty()) return *this;
  width_ += display_width(printable_text);
  pieces_.push_back({std::string(printable_text), style});
  return *this;
}

Line& Line::add(const Line& other) {
  for (const Piece& piece : other.pieces_) add(piece.text, piece.style);
  return *this;
}

Line& Line::space(std::size_t columns) { return add(std::string(columns, ' ')); }

std::string Line::str(const DisplayOptions& display) const {
  const bool whole = display.columns == 0 || width_ <= display.columns;
  const std::string_view ellipsis = glyph(Glyph::ellipsis, display.charset);
  std::size_t left = whole ? width_ : display.columns;
  std::string out;
  for (const Piece& piece : pieces_) {
    const std::size_t width = display_width(piece.text);
    // In a line that is too long the last column is for the ellipsis, wherever the pieces happen to end.
    const bool last = !whole && width >= left;
    const std::string text = last ? cut_to_width(piece.text + " ", left, ellipsis) : piece.text;
    const std::string_view code =
        display.palette == Palette::none ? std::string_view() : sgr(piece.style, display.palette);
    if (!code.empty()) out.append("\x1b[").append(code).append("m");
    out += text;
    if (!code.empty()) out += "\x1b[0m";
    if (last) break;
    left -= width;
  }
  return out;
}

}  // namespace earshot::cli
