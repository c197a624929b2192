#include "cli/style.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern char** environ;

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

std::string pager_command() {
  const char* const pager = std::getenv("PAGER");
  return pager == nullptr ? "less -FRX" : pager;
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

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

std::size_t terminal_columns() {
  winsize size{};
  if (!is_terminal(STDOUT_FILENO)) return 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

DisplayOptions stdout_display(ColourMode mode) {
  return {charset_of_locale(), palette(mode), terminal_columns()};
}

void Output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !closed_ && error_.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno == EAGAIN) {
      pollfd writable{fd_, POLLOUT, 0};  // stdout may be shared and non-blocking
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      error_ = std::strerror(errno);
    }
  }
  buffer_.clear();
}

Pager::Pager(bool enabled) {
  const std::string command = pager_command();
  if (!enabled || !is_terminal(STDOUT_FILENO) || command.empty() || command == "cat" || !can_run(command))
    return;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[0], STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  // -F: exit if it fits on one screen; -R: colours; -X: leave the text on the terminal.
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  if (std::getenv("LESS") == nullptr) environment.emplace_back("LESS=FRX");
  std::vector<char*> pointers;
  for (std::string& each : environment) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  std::string shell = "sh", option = "-c", script = command;
  char* const words[] = {shell.data(), option.data(), script.data(), nullptr};
  const int failed = ::posix_spawn(&child_, "/bin/sh", &files, &attributes, words, pointers.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[0]);
  if (failed != 0) {
    child_ = 0;
    ::close(ends[1]);
    return;
  }
  fd_ = ends[1];
  interrupt_handler_ = std::signal(SIGINT, SIG_IGN);
}

Pager::~Pager() {
  if (child_ == 0) return;
  ::close(fd_);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGINT, interrupt_handler_);
}

}  // namespace earshot::cli
