#include "cli/style.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <numeric>

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
    {"“", "\""},   // assistant
    {"›", ">"},    // user
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

// Of medium lightness, readable on dark and on light backgrounds; none of the colours of good, bad and note.
constexpr std::string_view names_256[name_styles] = {"38;5;74",  "38;5;139", "38;5;109", "38;5;173",
                                                     "38;5;105", "38;5;72",  "38;5;175", "38;5;67"};
constexpr std::string_view names_16[name_styles] = {"36", "35", "34", "96", "95", "94", "36;1", "35;1"};

std::string_view sgr(Style style, Palette palette) {
  constexpr std::string_view codes[] = {"", "2", "1", "32", "31", "33", "1;33"};  // by Style
  const auto index = static_cast<std::size_t>(style);
  if (index < std::size(codes)) return codes[index];
  const std::size_t name = (index - std::size(codes)) % name_styles;
  return palette == Palette::ansi256 ? names_256[name] : names_16[name];
}

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

Palette palette(ColourMode mode) {
  const std::string_view term = environment("TERM");
  if (mode == ColourMode::never) return Palette::none;
  if (mode == ColourMode::automatic) {
    if (!is_terminal(STDOUT_FILENO) || !environment("NO_COLOR").empty() || term.empty() || term == "dumb")
      return Palette::none;
  }
  const bool has_256 = term.find("256color") != term.npos || term.find("direct") != term.npos ||
                       !environment("COLORTERM").empty();
  return has_256 ? Palette::ansi256 : Palette::ansi16;
}

// Whether the first word of a command names an executable program.
bool can_run(std::string_view command) {
  const std::string program(command.substr(0, command.find(' ')));
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string file = std::string(rest.substr(0, end)) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return true;
    if (end == rest.npos) return false;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace

Style style_of_name(std::string_view name) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
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
  const bool fits = display.columns == 0 || width_ <= display.columns;
  const std::string_view ellipsis = glyph(Glyph::ellipsis, display.charset);
  std::size_t left = fits ? width_ : display.columns;
  std::string out;
  for (const Piece& piece : pieces_) {
    const std::size_t width = display_width(piece.text);
    // In a line that is too long the last column holds the ellipsis, also if a piece ends there.
    const bool last = !fits && width >= left;
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

std::size_t terminal_columns() {
  winsize size{};
  if (!is_terminal(STDOUT_FILENO)) return 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

DisplayOptions stdout_display(ColourMode mode) {
  return {charset_of_locale(), palette(mode), terminal_columns()};
}

Pager::Pager(bool enabled) {
  const char* const chosen = std::getenv("PAGER");
  const std::string command = chosen == nullptr ? "less -FRX" : chosen;
  if (!enabled || !is_terminal(STDOUT_FILENO) || command.empty() || command == "cat" || !can_run(command))
    return;
  ::setenv("LESS", "FRX", 0);  // exit if it fits on one screen; colours; leave the text on the terminal
  const auto pipe_handler = std::signal(SIGPIPE, SIG_DFL);  // the pager inherits what is ignored
  pipe_ = ::popen(command.c_str(), "we");
  std::signal(SIGPIPE, pipe_handler);
  if (pipe_ != nullptr) interrupt_handler_ = std::signal(SIGINT, SIG_IGN);
}

Pager::~Pager() {
  if (pipe_ == nullptr) return;
  ::pclose(pipe_);
  std::signal(SIGINT, interrupt_handler_);
}

int Pager::fd() const { return pipe_ == nullptr ? STDOUT_FILENO : ::fileno(pipe_); }

namespace {

constexpr std::size_t gap = 2;  // between two columns

struct Layout {
  std::size_t index;  // of the column
  std::size_t width;
};

std::size_t total(const std::vector<Layout>& shown) {
  const std::size_t gaps = shown.empty() ? 0 : gap * (shown.size() - 1);
  return std::accumulate(shown.begin(), shown.end(), gaps,
                         [](std::size_t sum, const Layout& l) { return sum + l.width; });
}

std::vector<Layout> natural_layout(const std::vector<Column>& columns,
                                   const std::vector<std::vector<Cell>>& rows, bool titles) {
  std::vector<Layout> shown;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = 0;
    for (const std::vector<Cell>& row : rows) width = std::max(width, display_width(row[i].text));
    if (width == 0) continue;
    if (titles) width = std::max(width, display_width(columns[i].title));
    if (columns[i].columns_max > 0) width = std::min(width, columns[i].columns_max);
    shown.push_back({i, width});
  }
  return shown;
}

// Narrows the last columns first: the first ones identify the row.
void narrow(std::vector<Layout>& shown, const std::vector<Column>& columns, std::size_t room) {
  for (auto layout = shown.rbegin(); layout != shown.rend() && total(shown) > room; ++layout) {
    const std::size_t floor = columns[layout->index].columns_min;
    if (floor == 0 || layout->width <= floor) continue;
    layout->width -= std::min(layout->width - floor, total(shown) - room);
  }
}

bool drop_one(std::vector<Layout>& shown, const std::vector<Column>& columns) {
  const auto least = std::max_element(shown.begin(), shown.end(), [&](const Layout& a, const Layout& b) {
    return columns[a.index].rank < columns[b.index].rank;
  });
  if (least == shown.end() || columns[least->index].rank == 0) return false;
  shown.erase(least);
  return true;
}

void fit(std::vector<Layout>& shown, const std::vector<Column>& columns, std::size_t room) {
  const std::vector<Layout> wanted = shown;
  narrow(shown, columns, room);
  while (total(shown) > room && drop_one(shown, columns)) {
    for (Layout& layout : shown) {
      const auto before = std::find_if(wanted.begin(), wanted.end(),
                                       [&](const Layout& w) { return w.index == layout.index; });
      layout.width = before->width;
    }
    narrow(shown, columns, room);
  }
}

template <class CellOf>
void add_row(std::string& out, const std::vector<Layout>& shown, const std::vector<Column>& columns,
             const DisplayOptions& display, CellOf&& cell_of) {
  Line line;
  std::size_t pending = 0;  // spaces to add before the next text: none at the end of a line
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Cell& cell = cell_of(shown[i].index);
    const std::string text = cut_to_width(cell.text, shown[i].width, glyph(Glyph::ellipsis, display.charset));
    const std::size_t spare = shown[i].width - display_width(text);
    const bool right = columns[shown[i].index].right;
    if (i > 0) pending += gap;
    if (right) pending += spare;
    const std::size_t end = i + 1 < shown.size() ? text.size() : text.find_last_not_of(' ') + 1;
    if (end > 0) {
      line.space(pending).add(std::string_view(text).substr(0, end), cell.style);
      pending = 0;
    }
    if (!right) pending += spare;
  }
  out += line.str(display) + "\n";
}

}  // namespace

std::string format_table(const std::vector<Column>& columns, const std::vector<std::vector<Cell>>& rows,
                         const DisplayOptions& display, bool titles) {
  std::vector<Layout> shown = natural_layout(columns, rows, titles);
  if (display.columns > 0) fit(shown, columns, display.columns);
  std::string out;
  if (titles) {
    std::vector<Cell> heads;
    for (const Column& column : columns) heads.push_back({column.title, Style::dim});
    add_row(out, shown, columns, display, [&](std::size_t i) -> const Cell& { return heads[i]; });
  }
  for (const std::vector<Cell>& row : rows) {
    add_row(out, shown, columns, display, [&](std::size_t i) -> const Cell& { return row[i]; });
  }
  return out;
}

}  // namespace earshot::cli
