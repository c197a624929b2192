// The commands of `earshot`: each takes its options and returns the exit code of the program. Help,
// completions and the tests of the manual are derived from what the add functions define.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/text_filter.hpp"
#include "cli/style.hpp"
#include "common/endpoint.hpp"
#include "common/frame.hpp"
#include "common/http.hpp"
#include "common/resumer.hpp"

namespace earshot::cli {

using namespace common;

constexpr int exit_ok = 0;
constexpr int exit_failed = 1;  // the daemon or a file cannot be reached or read
constexpr int exit_usage = 2;
constexpr int exit_no_daemon = 3;  // `status` only
constexpr int try_again = -1;      // no exit code: a command that reconnects continues

enum class Format { automatic, json, pretty };  // automatic: pretty on a terminal

struct TailOptions {
  Filters filters;
  ConnectOptions daemon;
  Format format = Format::automatic;
  ColourMode colour = ColourMode::automatic;
  std::optional<std::int64_t> since_ms;  // start with the events since then
  bool snapshot = true;
  bool verbose = false;
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
  bool follow = false;  // a line at each change, until ^C
  bool json = false;
};
int statusline_command(const StatusLineOptions& options);

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

struct OpenOptions {
  ConnectOptions daemon;
  bool print = false;  // only print the address
};
int open_command(const OpenOptions& options, const DaemonAddresses& addresses);

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

// The command line.

using Run = std::function<int()>;  // after parsing; returns the exit code
struct Command {
  CLI::App* app = nullptr;
  Run run;
};

// Each defines the options of a command.
Run add_ls(CLI::App& command);
Run add_tail(CLI::App& command);
Run add_show(CLI::App& command);
Run add_status(CLI::App& command);
Run add_statusline(CLI::App& command);
Run add_replay(CLI::App& command);
Run add_open(CLI::App& command);
Run add_token(CLI::App& command);
Run add_doctor(CLI::App& command);
Run add_completions(CLI::App& command);

/// Adds all commands; `app` must outlive the result.
std::vector<Command> add_commands(CLI::App& app);
/// Null: there is no such command.
const CLI::App* find_command(const CLI::App& app, const std::string& name);

/// The words of `earshot complete`: what a shell may put in place of the last of `words`, which follow the
/// name of the program. A line each, `<word>` or `<word>\t<description>`, or the only line `\tfile` or
/// `\tdirectory`: a path.
std::string complete_words(const CLI::App& app, std::vector<std::string> words);

/// Calls `run` with the daemon's addresses and returns its result. If there are none, prints the reason and
/// returns the exit code. They are looked up anew at each call: a restarted daemon may have others.
int with_daemon(const ConnectOptions& options, const std::function<int(const DaemonAddresses&)>& run);
/// Repeats with_daemon() until its result is not `try_again`.
int with_daemon_until_done(const ConnectOptions& options,
                           const std::function<int(const DaemonAddresses&)>& attempt);

extern const char* const filter_help;
/// `types`: also --type. A command with the argument SESSION has no --session.
void add_filters(CLI::App& command, Filters& filters, bool types);
void add_colour(CLI::App& command, ColourMode& colour);

/// What the help of a command shows, and its flags.
template <class Options>
struct CommandText {
  struct Flag {
    const char* names;
    bool Options::*value;
    const char* description;
  };
  std::vector<Flag> flags;
  const char* footer;
};

/// `run` takes the options and, if the command needs the daemon, its addresses. `define` adds other options
/// than flags. Those for colours, filters and the connection follow if `Options` has members for them.
template <class Options, class RunWith>
Run define_command(CLI::App& command, const CommandText<Options>& text, RunWith run,
                   const std::function<void(CLI::App&, Options&)>& define = {}) {
  const auto options = std::make_shared<Options>();
  for (const auto& flag : text.flags) command.add_flag(flag.names, (*options).*flag.value, flag.description);
  if (define) define(command, *options);
  std::string footer = text.footer;
  if constexpr (requires { options->colour; }) add_colour(command, options->colour);
  if constexpr (requires { options->filters; }) {
    add_filters(command, options->filters, std::is_same_v<Options, TailOptions>);
    footer = std::string(filter_help) + "\n\n" + footer;
  }
  if constexpr (requires { options->daemon; }) add_connect_options(command, options->daemon);
  command.footer(footer);
  if constexpr (std::is_invocable_v<RunWith, const Options&>) {
    return [options, run] { return run(*options); };
  } else {
    return [options, run] {
      return with_daemon(options->daemon, [&](const auto& addresses) { return run(*options, addresses); });
    };
  }
}

/// Prints a usage error and returns its exit code.
int usage_error(const std::string& message);
/// The message for words that the parser did not accept, with the most similar command or option.
std::string unknown_word_message(const CLI::App& app, const std::vector<std::string>& words);

// Shared by the commands.

/// What the daemon reports about itself at /v1/health. Missing fields are empty.
struct Health {
  std::string version, host, address, socket, state;
  std::int64_t pid = 0, uptime_s = 0;
  struct Root {
    std::string name, path;
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
  struct Host {
    std::string name, last_seen;  // last_seen: RFC 3339; empty: not known
    bool online = false;
  };
  std::vector<Host> hosts;  // of a hub
  std::optional<bool> redaction;
  std::size_t redaction_rules = 0;
  std::uint64_t connections = 0, connections_max = 0, sessions = 0;
};

/// Nothing if `json` is not the health of a daemon.
std::optional<Health> parse_health(std::string_view json);

/// Prints an `error` frame.
void print_daemon_error(const Fields& error);

/// Prints why the daemon refused a request; returns exit_failed.
int print_http_error(const HttpResult& result, const DaemonAddresses& addresses);

/// Flushes the output; returns exit_failed, with a message, if it could not be written.
int finish(Output& out);

/// `--json` on a terminal must not contain raw control characters.
std::string json_line(std::string_view json, bool for_terminal);

}  // namespace earshot::cli
