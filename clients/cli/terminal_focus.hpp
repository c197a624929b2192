// Brings the terminal of a process to the front: its pane in tmux, a window of GNU screen, kitty or WezTerm
// by their own remote control, or the window of an X display.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/child_program.hpp"
#include "cli/terminal_process.hpp"
#include "cli/x11_window.hpp"

namespace earshot::cli {

struct FocusReport {
  bool focused = false;
  std::string tty;       // of the process; empty: none
  std::string terminal;  // `tmux`, `screen`, `kitty`, `wezterm`, `x11`, else the program that holds `tty`
  std::vector<std::string> steps;  // what was done, in order
  std::string advice;              // what the user can do, if anything is left to do
};

/// What the search uses of the system; tests replace it.
struct FocusSystem {
  std::function<std::vector<TerminalProcess>(std::int64_t pid)> ancestors = process_and_ancestors;
  std::function<ProcessEnvironment(std::int64_t pid)> environment = read_process_environment;
  std::function<ProgramResult(const std::vector<std::string>& words,
                              const std::vector<std::string>& environment)>
      run = run_program;
  std::function<std::variant<X11Window, std::string>(const X11Options&, const std::vector<std::int64_t>& pids,
                                                     std::uint32_t preferred)>
      activate_window = activate_x11_window;
};

FocusReport focus_terminal(std::int64_t pid, const FocusSystem& system);

// tmux's lists, a line each.

struct TmuxPane {
  std::string tty, session, window, pane, name;  // ids as tmux writes them: $1, @2, %3; name: `work:1.0`
  std::int64_t pid = 0;
  bool attached = false;
};
/// `list-panes -a -F` with tmux_pane_format; other lines are left out.
std::vector<TmuxPane> parse_tmux_panes(std::string_view lines);
extern const char* const tmux_pane_format;

struct TmuxClient {
  std::string tty, session;
  std::int64_t pid = 0, activity = 0;
};
/// `list-clients -F` with tmux_client_format.
std::vector<TmuxClient> parse_tmux_clients(std::string_view lines);
extern const char* const tmux_client_format;

}  // namespace earshot::cli
