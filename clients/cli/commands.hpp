// The commands of `earshot`: each takes its options and returns the exit code of the program. Help,
// completions and the tests of the manual are derived from what the add functions define.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text_filter.hpp"
#include "cli/style.hpp"
#include "common/arguments.hpp"
#include "common/endpoint.hpp"
#include "common/frame.hpp"
#include "common/http.hpp"
#include "common/resumer.hpp"

namespace CLI {
class App;
}

namespace earshot::cli {

using namespace common;

constexpr int exit_ok = 0;
constexpr int exit_failed = 1;     // the daemon or a file cannot be reached or read
constexpr int exit_no_daemon = 3;  // `status` only
constexpr int exit_no_process =
    4;  // `focus` only: the session's process is not on this machine, or not known
constexpr int exit_not_focused = 5;  // `focus` only: its terminal cannot be brought to the front
constexpr int try_again = -1;        // no exit code: a command that reconnects continues

struct TailOptions {
  Filters filters;
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  std::optional<std::int64_t> since_ms;  // start with the events since then
  bool snapshot = true;
  bool verbose = false;
  bool json = false;
};
int tail_command(const TailOptions& options);

struct ListOptions {
  Filters filters;
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  bool all = false;
  bool json = false;
};
int list_command(const ListOptions& options, const DaemonAddresses& addresses);

/// Of `status` and `doctor`.
struct ReportOptions {
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  bool json = false;
};
int status_command(const ReportOptions& options, const DaemonAddresses& addresses);
int doctor_command(const ReportOptions& options);

struct StatusLineOptions {
  Filters filters;
  ConnectOptions daemon;
  std::string from;           // the program whose status line command this is; empty: all sessions
  bool install_hint = false;  // with `from`: print how to enter the command
  bool follow = false;        // a line at each change, until ^C
  bool json = false;
  bool limits = false;  // also the limit that is used most
  int wait_ms = 30;     // with `from`: for the program's JSON and the daemon
};
int statusline_command(const StatusLineOptions& options);
/// Ends this process with exit code 0 if it still runs in 42 ms: nothing may delay the program whose line it
/// prints, and an error would be shown in place of the line.
void exit_in_time();
/// With `from` or `install_hint`.
int program_statusline_command(const StatusLineOptions& options);

struct ShowOptions {
  std::string session = "last";  // an id, a unique beginning of one, or `last`
  Filters filters;               // restrict the sessions to choose from
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  std::uint64_t turn = 0;  // only this one; 0: all
  bool verbose = false;
  bool json = false;
  bool no_pager = false;
};
int show_command(const ShowOptions& options, const DaemonAddresses& addresses);

struct SearchOptions {
  std::vector<std::string> words;  // the query, joined by blanks
  Filters filters;
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  std::vector<std::string> kinds;  // prompt, answer, tool, title; empty: all
  std::optional<std::int64_t> since_ms;
  std::size_t limit = 20;
  bool json = false;
};
int search_command(const SearchOptions& options);

struct FocusOptions {
  std::string session;  // an id, a unique beginning of one, or `last`; empty: the one that has waited longest
  Filters filters;      // restrict the sessions to choose from
  ConnectOptions daemon;
  bool json = false;
};
int focus_command(const FocusOptions& options, const DaemonAddresses& addresses);

struct OpenOptions {
  ConnectOptions daemon;
  bool print = false;  // only print the address
};
int open_command(const OpenOptions& options, const DaemonAddresses& addresses);

struct BrowsersOptions {
  std::string action;   // empty: list them; or `revoke`
  std::string browser;  // to revoke: its id, or the beginning of only one
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  bool all = false;
  bool json = false;
};
int browsers_command(const BrowsersOptions& options, const DaemonAddresses& addresses);

struct TokenOptions {
  ConnectOptions daemon;
  bool rotate = false;
};
int token_command(const TokenOptions& options);

struct ReplayOptions {
  std::vector<std::string> files;  // `-` is stdin; directories are searched
  View view = View::full;
  // Empty: from the file's name, from its path, this host's name, key 0 of the prefix hashes.
  std::string agent, stream, host, state;
  ColourMode colour = ColourMode::automatic;
  bool stats = false;
  bool events = false;  // together with stats
  bool json = false;    // the format of the statistics
  bool pretty = false;
  bool verbose = false;
  bool redact = true;  // replace secrets
};
int replay_command(const ReplayOptions& options);

enum class UsageBy { day, session, project, model, program };
struct UsageOptions {
  std::vector<std::string> roots;  // as of the daemon; empty: the default ones
  std::string models;              // a file with prices; empty: the user's, if there is one
  std::optional<std::int64_t> since_ms;
  UsageBy by = UsageBy::day;
  ColourMode colour = ColourMode::automatic;
  bool json = false;
};
int usage_command(const UsageOptions& options);

// The command line.

using Run = std::function<int()>;  // after parsing; returns the exit code
struct Command {
  CLI::App* app = nullptr;
  Run run;
};

Run add_completions(CLI::App& command);

/// Adds all commands; `app` must outlive the result.
std::vector<Command> add_commands(CLI::App& app);

/// The program: parses the command line and runs the command. Returns the exit code.
int run(int argc, char** argv);

/// The words of `earshot complete`, see common/completions.hpp.
std::string complete_words(const CLI::App& app, std::vector<std::string> words);

/// Calls `run` with the daemon's addresses and returns its result. If there are none, prints the reason and
/// returns the exit code. They are looked up anew at each call: a restarted daemon may have others.
int with_daemon(const ConnectOptions& options, const std::function<int(const DaemonAddresses&)>& run);
/// Repeats with_daemon() until its result is not `try_again`.
int with_daemon_until_done(const ConnectOptions& options,
                           const std::function<int(const DaemonAddresses&)>& attempt);

// Shared by the commands.

/// What the daemon reports about itself at /v1/health. Missing fields are empty.
struct Health {
  std::string version, host, address, socket, state;
  std::int64_t pid = 0, uptime_s = 0;
  struct Root {
    std::string name, path, program;
    bool exists = false;
    std::uint64_t transcripts = 0, live = 0;
  };
  std::vector<Root> roots;
  std::string watch_mode, watch_problem;
  std::uint64_t inotify_watches = 0;
  struct Problem {
    std::string path, reason, advice;
  };
  std::vector<Problem> problems;
  struct Unknown {  // record types that earshot has no rule for
    std::string program, version;
    std::vector<std::string> types;
  };
  std::vector<Unknown> unknown_records;
  struct Host {
    std::string name, last_seen;  // last_seen: RFC 3339; empty: not known
    bool online = false;
  };
  std::vector<Host> hosts;  // of a hub
  std::optional<bool> redaction;
  std::size_t redaction_rules = 0;
  struct Search {
    bool on = false, building = false;
    std::uint64_t indexed = 0, total = 0, documents = 0, bytes = 0;
    std::string problem;
  };
  std::optional<Search> search;  // absent: the daemon is older
  std::uint64_t connections = 0, connections_max = 0, sessions = 0;
};

/// Nothing if `json` is not the health of a daemon.
std::optional<Health> parse_health(std::string_view json);

/// Prints an `error` frame.
void print_daemon_error(const Fields& error);

/// Prints why the daemon refused a request; returns exit_failed.
int print_http_error(const HttpResult& result, const DaemonAddresses& addresses);

/// Removes the session's unseen mark. A daemon that knows none, or not this session, is no error.
void mark_seen(const DaemonAddresses& addresses, std::string_view session);

}  // namespace earshot::cli
