#include "cli/terminal_focus.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

namespace terminal_focus_test {

using namespace earshot::cli;

namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// A machine whose programs answer what the test defines, by the start of their command line.
struct Machine {
  std::map<std::int64_t, std::vector<TerminalProcess>> processes;
  std::map<std::int64_t, ProcessEnvironment> environments;
  std::map<std::string, ProgramResult> programs;
  std::vector<std::string> ran;
  std::variant<X11Window, std::string> window = "no window of the display belongs to it";
  std::vector<std::int64_t> pids_of_window;
  X11Options display;

  Machine() { ::unsetenv("DISPLAY"); }
  FocusReport focus(std::int64_t pid) {
    FocusSystem system;
    system.ancestors = [this](std::int64_t of) { return processes[of]; };
    system.environment = [this](std::int64_t of) { return environments[of]; };
    system.run = [this](const Words& words, const Words& environment) {
      ran.push_back(joined(environment) + (environment.empty() ? "" : " ") + joined(words));
      for (const auto& [begin, result] : programs)
        if (ran.back().starts_with(begin)) return result;
      return ProgramResult{};
    };
    system.activate_window = [this](const X11Options& options, const std::vector<std::int64_t>& pids,
                                    std::uint32_t) {
      display = options;
      pids_of_window = pids;
      return window;
    };
    return focus_terminal(pid, system);
  }
};

ProgramResult printed(const std::string& out) { return {true, 0, out, ""}; }
ProgramResult failed(const std::string& err) { return {true, 1, "", err}; }

const std::string panes =
    "/dev/pts/1 50 $0 @0 %0 1 main:0.0\n"
    "/dev/pts/7 60 $1 @4 %9 0 my work:2.1\n"
    "broken line\n";

// A session in a pane of tmux; pid 70 below the shell 60 below the server 10.
Machine in_tmux() {
  Machine machine;
  machine.processes[70] = {
      {70, 60, "claude", "/dev/pts/7"}, {60, 10, "bash", "/dev/pts/7"}, {10, 1, "tmux: server", ""}};
  machine.environments[70] = {{"TMUX", "/tmp/x/s,10,1"}};
  machine.programs["tmux -S /tmp/x/s list-panes"] = printed(panes);
  machine.programs["tmux -S /tmp/x/s select-window"] = printed("");
  machine.programs["tmux -S /tmp/x/s switch-client"] = printed("");
  return machine;
}

}  // namespace

TEST_CASE("lists of tmux are parsed, names may contain blanks") {
  const auto found = parse_tmux_panes(panes);
  REQUIRE(found.size() == 2);
  CHECK(found[0].attached);
  CHECK(found[1].name == "my work:2.1");
  CHECK(found[1].window == "@4");
  CHECK(found[1].pid == 60);
  CHECK(parse_tmux_clients("/dev/pts/3 5 1700000000 $1\nx\n").size() == 1);
}

TEST_CASE("a pane is selected and the client that was used last is switched to its session") {
  Machine machine = in_tmux();
  machine.programs["tmux -S /tmp/x/s list-clients"] =
      printed("/dev/pts/2 80 100 $0\n/dev/pts/3 81 300 $0\n/dev/pts/4 82 200 $0\n");
  const FocusReport report = machine.focus(70);
  CHECK(report.focused);
  CHECK(report.tty == "/dev/pts/7");
  CHECK(report.terminal == "tmux");
  CHECK(machine.ran == Words{joined({"tmux -S /tmp/x/s list-panes -a -F", tmux_pane_format}),
                             "tmux -S /tmp/x/s select-window -t $1:@4 ; select-pane -t %9",
                             joined({"tmux -S /tmp/x/s list-clients -F", tmux_client_format}),
                             "tmux -S /tmp/x/s switch-client -c /dev/pts/3 -t $1"});
  CHECK(joined(report.steps).find("the pane is shown at /dev/pts/3") != std::string::npos);
}

TEST_CASE("a client that shows the session already is not switched, and its window is raised") {
  Machine machine = in_tmux();
  machine.programs["tmux -S /tmp/x/s list-clients"] = printed("/dev/pts/2 80 900 $0\n/dev/pts/4 82 200 $1\n");
  machine.processes[82] = {{82, 40, "tmux: client", "/dev/pts/4"}, {40, 1, "xterm", ""}};
  machine.environments[82] = {{"DISPLAY", ":5"}, {"XAUTHORITY", "/a"}};
  machine.window = X11Window{0x400001, 40, 0};
  const FocusReport report = machine.focus(70);
  CHECK(report.focused);
  CHECK(joined(machine.ran).find("switch-client") == std::string::npos);
  CHECK(machine.display.display == ":5");
  CHECK(machine.display.authority == "/a");
  CHECK(machine.pids_of_window == std::vector<std::int64_t>{82, 40});
  CHECK(report.steps.back() == "X11: activated a window of xterm, pid 40");
  CHECK(report.advice.empty());
}

TEST_CASE("a tmux session that no terminal shows is not in front") {
  Machine machine = in_tmux();
  machine.programs["tmux -S /tmp/x/s list-clients"] = printed("");
  const FocusReport report = machine.focus(70);
  CHECK_FALSE(report.focused);
  CHECK(report.advice == "no terminal shows the tmux session: tmux -S /tmp/x/s attach-session -t '=my work'");
}

TEST_CASE("without TMUX in the environment the default server is asked, and the pane found by its process") {
  Machine machine;
  machine.processes[70] = {{70, 60, "claude", ""}, {60, 10, "bash", "/dev/pts/7"}};
  machine.programs["tmux list-panes"] = printed(panes);
  machine.programs["tmux select-window"] = failed("no such window\n");
  const FocusReport report = machine.focus(70);
  CHECK_FALSE(report.focused);
  CHECK(report.terminal == "tmux");
  CHECK(report.steps == Words{"tmux: cannot select pane my work:2.1: no such window"});
}

TEST_CASE("kitty, WezTerm and screen are asked by their remote control, ids are words of their own") {
  Machine machine;
  machine.programs["kitty @"] = printed("");
  machine.programs["WEZTERM_UNIX_SOCKET=/w wezterm cli"] = printed("");
  machine.programs["screen"] = printed("");
  const auto run = [&](const char* parent, const ProcessEnvironment& environment) {
    machine.ran.clear();
    machine.processes[70] = {{70, 60, "claude", "/dev/pts/7"}, {60, 1, parent, ""}};
    machine.environments[70] = environment;
    return machine.focus(70);
  };
  FocusReport report = run(
      "kitty", {{"KITTY_PID", "60"}, {"KITTY_WINDOW_ID", "4"}, {"KITTY_LISTEN_ON", "unix:/tmp/k; touch x"}});
  CHECK(report.focused);
  CHECK(report.terminal == "kitty");
  CHECK(machine.ran.back() == "kitty @ --to unix:/tmp/k; touch x focus-window --match id:4");
  report = run("kitty", {{"KITTY_WINDOW_ID", "4"}});
  CHECK_FALSE(report.focused);
  CHECK(report.advice.find("allow_remote_control") != std::string::npos);
  report = run("wezterm-gui", {{"WEZTERM_UNIX_SOCKET", "/w"}, {"WEZTERM_PANE", "3"}});
  CHECK(report.focused);
  CHECK(report.terminal == "wezterm");
  CHECK(machine.ran.back() == "WEZTERM_UNIX_SOCKET=/w wezterm cli --no-auto-start activate-pane --pane-id 3");
  report = run("screen", {{"STY", "60.pts-1.host"}, {"WINDOW", "2"}});
  CHECK(report.focused);
  CHECK(report.terminal == "screen");
  CHECK(machine.ran.back() == "screen -S 60.pts-1.host -X select 2");
  // Inherited from a terminal that started this one.
  report = run("xterm", {{"KITTY_PID", "99"},
                         {"KITTY_WINDOW_ID", "4"},
                         {"KITTY_LISTEN_ON", "unix:/tmp/k"},
                         {"STY", "98.x"},
                         {"WINDOW", "1"},
                         {"WEZTERM_UNIX_SOCKET", "/w"},
                         {"WEZTERM_PANE", "3"}});
  CHECK_FALSE(report.focused);
  for (const std::string& command : machine.ran) CHECK(command.starts_with("tmux"));
}

TEST_CASE("a terminal that cannot be raised is named, with what to do") {
  Machine machine;
  machine.processes[70] = {
      {70, 60, "claude", "/dev/pts/7"}, {60, 50, "bash", "/dev/pts/7"}, {50, 1, "sshd", ""}};
  machine.environments[70] = {{"SSH_CONNECTION", "192.0.2.7 4000 192.0.2.1 22"}};
  FocusReport report = machine.focus(70);
  CHECK_FALSE(report.focused);
  CHECK(report.terminal == "sshd");
  CHECK(report.advice ==
        "switch to the terminal /dev/pts/7 yourself, which sshd holds; it is connected from 192.0.2.7");
  machine.processes[70] = {{70, 1, "claude", ""}};
  report = machine.focus(70);
  CHECK(report.advice.starts_with("it has no terminal"));
  CHECK_FALSE(machine.focus(71).focused);
}

TEST_CASE("of several windows of a program the one that is chosen may be wrong: that is said") {
  Machine machine;
  machine.processes[70] = {{70, 60, "claude", "/dev/pts/7"}, {60, 1, "gnome-terminal-", ""}};
  machine.environments[70] = {{"DISPLAY", ":5"}};
  machine.window = X11Window{9, 60, 2};
  FocusReport report = machine.focus(70);
  CHECK(report.focused);
  CHECK(report.terminal == "x11");
  CHECK(report.advice == "gnome-terminal- has 2 other windows; which one shows the session is not known");
  machine.environments[70].emplace("WINDOWID", "9");
  report = machine.focus(70);
  CHECK(report.advice.empty());
}

}  // namespace terminal_focus_test
