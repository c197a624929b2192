#include "cli/terminal_focus.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/text.hpp"
#include "common/format.hpp"

namespace earshot::cli {

using namespace common;

const char* const tmux_pane_format =
    "#{pane_tty} #{pane_pid} #{session_id} #{window_id} #{pane_id} #{session_attached} "
    "#{session_name}:#{window_index}.#{pane_index}";
const char* const tmux_client_format = "#{client_tty} #{client_pid} #{client_activity} #{session_id}";

namespace {

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// At most `words_max` words; the last one is the rest of the line.
std::vector<std::string> words_of(std::string_view line, std::size_t words_max) {
  std::vector<std::string> words;
  while (words.size() + 1 < words_max) {
    const std::size_t space = line.find(' ');
    if (space == line.npos) break;
    words.emplace_back(line.substr(0, space));
    line.remove_prefix(space + 1);
  }
  words.emplace_back(line);
  return words;
}

template <class Take>
void for_each_line(std::string_view lines, Take&& take) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    take(lines.substr(0, end));
    lines.remove_prefix(std::min(lines.size(), end + 1));
  }
}

}  // namespace

std::vector<TmuxPane> parse_tmux_panes(std::string_view lines) {
  std::vector<TmuxPane> panes;
  for_each_line(lines, [&](std::string_view line) {
    constexpr std::size_t fields = 7;
    const std::vector<std::string> words = words_of(line, fields);
    if (words.size() == fields)
      panes.push_back(
          {words[0], words[2], words[3], words[4], words[6], number_of(words[1]), number_of(words[5]) > 0});
  });
  return panes;
}

std::vector<TmuxClient> parse_tmux_clients(std::string_view lines) {
  std::vector<TmuxClient> clients;
  for_each_line(lines, [&](std::string_view line) {
    constexpr std::size_t fields = 4;
    const std::vector<std::string> words = words_of(line, fields);
    if (words.size() == fields)
      clients.push_back({words[0], words[3], number_of(words[1]), number_of(words[2])});
  });
  return clients;
}

namespace {

constexpr int terminals_max = 4;  // one inside of another

std::string first_line(std::string_view text) { return safe_text(trim(text.substr(0, text.find('\n')))); }

class Search {
 public:
  Search(const FocusSystem& system, FocusReport& report) : system_(system), report_(report) {}

  /// Whether the terminal of `pid` is in front now.
  bool focus(std::int64_t pid, int depth) {
    const std::vector<TerminalProcess> chain = system_.ancestors(pid);
    if (chain.empty() || depth > terminals_max) return false;
    const Place place{chain, system_.environment(pid), depth};
    if (depth == 0) {
      report_.tty = chain.front().tty;
      report_.terminal = holder(place);
    }
    if (const auto found = in_tmux(place)) return *found;
    if (in_screen(place) || in_kitty(place)) return true;
    const bool selected = in_wezterm(place);  // its window may still be behind others
    return in_x11(place) || selected;
  }

  /// The program that the terminal belongs to: the first ancestor on another terminal, or on none.
  static std::string holder_of(const std::vector<TerminalProcess>& chain) {
    for (const TerminalProcess& each : chain)
      if (each.tty != chain.front().tty) return each.name;
    return {};
  }

 private:
  struct Place {
    const std::vector<TerminalProcess>& chain;  // not empty
    ProcessEnvironment environment;
    int depth;
    std::string value(std::string_view name) const {
      const auto found = environment.find(name);
      return found == environment.end() ? std::string() : found->second;
    }
    bool has_ancestor(std::int64_t pid) const {
      return std::any_of(chain.begin(), chain.end(), [&](const auto& each) { return each.pid == pid; });
    }
    bool has_ancestor(std::string_view name) const {
      return std::any_of(chain.begin(), chain.end(),
                         [&](const auto& each) { return each.name.starts_with(name); });
    }
  };

  static std::string holder(const Place& place) { return safe_text(holder_of(place.chain)); }

  void held_by(const Place& place, const char* terminal) {
    if (place.depth == 0) report_.terminal = terminal;
  }
  void step(std::string text) { report_.steps.push_back(std::move(text)); }

  // Nothing: the process is in no pane of tmux.
  std::optional<bool> in_tmux(const Place& place) {
    for (const std::vector<std::string>& server : tmux_servers(place)) {
      std::vector<std::string> words = server;
      words.insert(words.end(), {"list-panes", "-a", "-F", tmux_pane_format});
      const ProgramResult listed = system_.run(words, {});
      if (!listed.started) return std::nullopt;
      const std::vector<TmuxPane> panes = parse_tmux_panes(listed.out);
      if (const TmuxPane* const pane = find_pane(panes, place)) {
        held_by(place, "tmux");
        return select_pane(server, *pane, place.depth);
      }
    }
    return std::nullopt;
  }

  // The beginnings of the command for each server that may have the pane: those that the processes name, and
  // the default one.
  std::vector<std::vector<std::string>> tmux_servers(const Place& place) const {
    std::vector<std::vector<std::string>> servers;
    const auto add = [&](const ProcessEnvironment& environment) {
      const auto found = environment.find("TMUX");  // SOCKET,PID,SESSION
      if (found == environment.end()) return;
      const std::string socket = found->second.substr(0, found->second.find(','));
      const std::vector<std::string> server = {"tmux", "-S", socket};
      const bool is_new = std::find(servers.begin(), servers.end(), server) == servers.end();
      if (socket.starts_with('/') && is_new) servers.push_back(server);
    };
    add(place.environment);
    for (std::size_t n = 1; n < place.chain.size(); ++n) add(system_.environment(place.chain[n].pid));
    servers.push_back({"tmux"});
    return servers;
  }

  // By its terminal, else by its first process; of several sessions that share the window one that is
  // attached.
  static const TmuxPane* find_pane(const std::vector<TmuxPane>& panes, const Place& place) {
    const TmuxPane* found = nullptr;
    const auto take = [&](const TmuxPane& pane) {
      if (found == nullptr || (pane.attached && !found->attached)) found = &pane;
    };
    const std::string& tty = place.chain.front().tty;
    for (const TmuxPane& pane : panes)
      if (!tty.empty() && pane.tty == tty) take(pane);
    if (found != nullptr) return found;
    for (const TmuxPane& pane : panes)
      if (pane.pid > 0 && place.has_ancestor(pane.pid)) take(pane);
    return found;
  }

  bool select_pane(const std::vector<std::string>& server, const TmuxPane& pane, int depth) {
    const auto run = [&](const std::vector<std::string>& words) {
      std::vector<std::string> all = server;
      all.insert(all.end(), words.begin(), words.end());
      return system_.run(all, {});
    };
    const std::string name = safe_text(pane.name);
    const ProgramResult selected =
        run({"select-window", "-t", pane.session + ":" + pane.window, ";", "select-pane", "-t", pane.pane});
    if (!selected.ok()) {
      step("tmux: cannot select pane " + name + ": " + first_line(selected.err));
      return false;
    }
    step("tmux: selected pane " + name);
    std::vector<TmuxClient> clients = parse_tmux_clients(run({"list-clients", "-F", tmux_client_format}).out);
    if (clients.empty()) {
      std::string command;
      for (const std::string& word : server) command += quote_for_shell(word) + " ";
      const std::string session = pane.name.substr(0, pane.name.rfind(':'));
      report_.advice = "no terminal shows the tmux session: " +
                       safe_text(command + "attach-session -t " + quote_for_shell("=" + session));
      return false;
    }
    // One that shows the session already, else the one that was used last.
    const TmuxClient& client =
        *std::max_element(clients.begin(), clients.end(), [&](const TmuxClient& a, const TmuxClient& b) {
          const bool a_shows = a.session == pane.session, b_shows = b.session == pane.session;
          return a_shows != b_shows ? b_shows : a.activity < b.activity;
        });
    if (client.session != pane.session) {
      const ProgramResult switched = run({"switch-client", "-c", client.tty, "-t", pane.session});
      if (!switched.ok()) {
        step("tmux: cannot switch the client at " + safe_text(client.tty) + ": " + first_line(switched.err));
        return false;
      }
      step("tmux: switched the client at " + safe_text(client.tty) + " to the session");
    }
    // The pane is visible where tmux is; that terminal may be behind others.
    if (!focus(client.pid, depth + 1)) step("tmux: the pane is shown at " + safe_text(client.tty));
    return true;
  }

  bool in_screen(const Place& place) {
    const std::string name = place.value("STY"), window = place.value("WINDOW");  // PID.NAME
    if (!place.has_ancestor(number_of(std::string_view(name).substr(0, name.find('.'))))) return false;
    held_by(place, "screen");
    if (!is_number(window)) return false;
    const ProgramResult done = system_.run({"screen", "-S", name, "-X", "select", window}, {});
    if (done.ok()) step("screen: selected window " + window + " of " + safe_text(name));
    report_.advice = "if no terminal shows it: " + safe_text("screen -x " + quote_for_shell(name));
    return done.ok();
  }

  bool in_kitty(const Place& place) {
    const std::string window = place.value("KITTY_WINDOW_ID"), listen = place.value("KITTY_LISTEN_ON");
    const std::int64_t pid = number_of(place.value("KITTY_PID"));
    const bool is_kitty = pid > 0 ? place.has_ancestor(pid) : place.has_ancestor("kitty");
    if (!is_kitty || !is_number(window)) return false;
    held_by(place, "kitty");
    if (listen.empty()) {
      report_.advice =
          "to let earshot select kitty's window, set allow_remote_control and listen_on in kitty.conf";
      return false;
    }
    ProgramResult done;
    for (const char* program : {"kitty", "kitten"}) {
      done = system_.run({program, "@", "--to", listen, "focus-window", "--match", "id:" + window}, {});
      if (done.started) break;
    }
    if (done.ok()) {
      step("kitty: focused window " + window);
      return true;
    }
    step("kitty: cannot focus window " + window + ": " +
         (done.started ? first_line(done.err) : "the program kitty is not in PATH"));
    return false;
  }

  bool in_wezterm(const Place& place) {
    const std::string socket = place.value("WEZTERM_UNIX_SOCKET"), pane = place.value("WEZTERM_PANE");
    if (socket.empty() || !is_number(pane) || !place.has_ancestor("wezterm")) return false;
    held_by(place, "wezterm");
    const ProgramResult done =
        system_.run({"wezterm", "cli", "--no-auto-start", "activate-pane", "--pane-id", pane},
                    {"WEZTERM_UNIX_SOCKET=" + socket});
    step(done.ok() ? "WezTerm: activated pane " + pane
                   : "WezTerm: cannot activate pane " + pane + ": " +
                         (done.started ? first_line(done.err) : "the program wezterm is not in PATH"));
    return done.ok();
  }

  bool in_x11(const Place& place) {
    const auto own = [](const char* name) {
      const char* const text = std::getenv(name);
      return std::string(text == nullptr ? "" : text);
    };
    X11Options options{place.value("DISPLAY"), place.value("XAUTHORITY")};
    if (options.display.empty()) options.display = own("DISPLAY");
    if (options.display.empty()) return false;
    if (options.authority.empty()) options.authority = own("XAUTHORITY");
    if (options.authority.empty() && !own("HOME").empty()) options.authority = own("HOME") + "/.Xauthority";
    std::vector<std::int64_t> pids;
    for (const TerminalProcess& each : place.chain) pids.push_back(each.pid);
    const std::int64_t preferred = number_of(place.value("WINDOWID"));
    const auto result = system_.activate_window(
        options, pids, preferred > 0 && preferred <= UINT32_MAX ? static_cast<std::uint32_t>(preferred) : 0);
    const auto* const window = std::get_if<X11Window>(&result);
    if (window == nullptr) {
      step("X11: " + safe_text(std::get<std::string>(result)));
      return false;
    }
    if (report_.terminal == holder(place)) held_by(place, "x11");
    std::string owner;
    for (const TerminalProcess& each : place.chain)
      if (each.pid == window->pid) owner = each.name;
    step("X11: activated a window of " + safe_text(owner) + ", pid " + std::to_string(window->pid));
    if (window->others > 0 && window->id != preferred)
      report_.advice = safe_text(owner) + " has " + plural(window->others, "other window") +
                       "; which one shows the session is not known";
    return true;
  }

  const FocusSystem& system_;
  FocusReport& report_;
};

std::string advice_for(const FocusReport& report, const ProcessEnvironment& environment) {
  if (report.tty.empty()) return "it has no terminal: it may run in an editor or in the background";
  std::string advice = "switch to the terminal " + safe_text(report.tty) + " yourself";
  if (!report.terminal.empty()) advice += ", which " + report.terminal + " holds";
  if (const auto ssh = environment.find("SSH_CONNECTION"); ssh != environment.end())
    advice += "; it is connected from " + safe_text(ssh->second.substr(0, ssh->second.find(' ')));
  return advice;
}

}  // namespace

FocusReport focus_terminal(std::int64_t pid, const FocusSystem& system) {
  FocusReport report;
  report.focused = Search(system, report).focus(pid, 0);
  if (!report.focused && report.advice.empty()) report.advice = advice_for(report, system.environment(pid));
  return report;
}

}  // namespace earshot::cli
