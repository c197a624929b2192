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
constexpr int try_again = -1;      // no exit code: a command that reconnects goes on

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
int list_command(const ListOptions& options);

struct StatusOptions {
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  bool json = false;
};
int status_command(const StatusOptions& options);

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
int show_command(const ShowOptions& options);

struct DoctorOptions {
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  bool json = false;
};
int doctor_command(const DoctorOptions& options);

struct OpenOptions {
  ConnectOptions daemon;
  bool print = false;  // only print the address
};
int open_command(const OpenOptions& options);

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

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // after parsing; returns the exit code
};

Command add_ls(CLI::App& app);
Command add_tail(CLI::App& app);
Command add_show(CLI::App& app);
Command add_status(CLI::App& app);
Command add_statusline(CLI::App& app);
Command add_replay(CLI::App& app);
Command add_open(CLI::App& app);
Command add_token(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_completions(CLI::App& app);

/// Adds all commands; `app` must outlive the result.
std::vector<Command> add_commands(CLI::App& app);
/// Null: there is no such command.
const CLI::App* find_command(const CLI::App& app, const std::string& name);

/// The words of `earshot complete`: what a shell may put in place of the last of `words`, which follow the
/// name of the program. A line each, `<word>` or `<word>\t<description>`, or the only line `\tfile` or
/// `\tdirectory`: a path.
std::string complete_words(const CLI::App& app, std::vector<std::string> words);

extern const char* const filter_help;
/// `types`: also --type. A command with the argument SESSION has no --session.
void add_filters(CLI::App& command, Filters& filters, bool types);
void add_colour(CLI::App& command, ColourMode& colour);

/// Adds a command. `define` adds its own options; those for colours, filters and the connection follow if
/// `Options` has members for them.
template <class Options, class Define>
Command add_command(CLI::App& app, const char* name, const char* description, int (*run)(const Options&),
                    Define&& define) {
  CLI::App* const command = app.add_subcommand(name, description);
  const auto options = std::make_shared<Options>();
  define(*command, *options);
  if constexpr (requires { options->colour; }) add_colour(*command, options->colour);
  if constexpr (requires { options->filters; })
    add_filters(*command, options->filters, std::is_same_v<Options, TailOptions>);
  if constexpr (requires { options->daemon; }) add_connect_options(*command, options->daemon);
  return {command, [options, run] { return run(*options); }};
}

/// Prints a usage error and returns its exit code.
int usage_error(const std::string& message);
/// The message for words that the parser did not accept, with the most similar command or option.
std::string unknown_word_message(const CLI::App& app, const std::vector<std::string>& words);

// Shared by the commands.

/// Calls `run` with the daemon's addresses and returns its result. If there are none, prints the reason and
/// returns the exit code. They are looked up anew at each call: a restarted daemon may have others.
int with_daemon(const ConnectOptions& options, const std::function<int(const DaemonAddresses&)>& run);

/// Prints an `error` frame.
void print_daemon_error(const Fields& error);

/// Prints why the daemon refused a request; returns exit_failed.
int print_http_error(const HttpResult& result, const DaemonAddresses& addresses);

/// Flushes the output; returns exit_failed, with a message, if it could not be written.
int finish(Output& out);

/// `--json` on a terminal must not contain raw control characters.
std::string json_line(std::string_view json, bool for_terminal);

}  // namespace earshot::cli
