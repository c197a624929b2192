#include "cli/style.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace earshot::cli {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

Palette palette(ColourMode wish) {
  const std::string_view term = environment("TERM");
  if (wish == ColourMode::never) return Palette::none;
  if (wish == ColourMode::automatic) {
    if (!is_terminal(STDOUT_FILENO) || !environment("NO_COLOR").empty() || term.empty() || term == "dumb")
      return Palette::none;
  }
  const bool rich = term.find("256color") != term.npos || term.find("direct") != term.npos ||
                    !environment("COLORTERM").empty();
  return rich ? Palette::ansi256 : Palette::ansi16;
}

}  // namespace

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

std::size_t terminal_columns() {
  winsize size{};
  if (!is_terminal(STDOUT_FILENO)) return 0;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

DisplayOptions stdout_display(ColourMode wish) {
  return {charset_of_locale(), palette(wish), terminal_columns()};
}

void Output::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !closed_ && error_.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno == EAGAIN) {
      pollfd writable{descriptor_, POLLOUT, 0};  // somebody made our stdout non-blocking
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      error_ = std::strerror(errno);
    }
  }
  buffer_.clear();
}

}  // namespace earshot::cli
