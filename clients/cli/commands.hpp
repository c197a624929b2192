// The commands of `earshot`: each takes its options and returns the exit code of the program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
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

/// Prints the ids of live sessions for shell completion; silent without a daemon.
int sessions_command(const ConnectOptions& daemon);

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

// Shared by the commands.

/// The daemon's addresses. If there are none, prints the reason, sets `exit_code` and returns nothing.
std::optional<DaemonAddresses> find_addresses(const ConnectOptions& options, int& exit_code);

/// Prints an `error` frame.
void print_daemon_error(const Fields& error);

/// Prints why the daemon refused a request; returns exit_failed.
int print_http_error(const HttpResult& result, const DaemonAddresses& addresses);

/// Flushes the output; returns exit_failed, with a message, if it could not be written.
int finish(Output& out);

/// `--json` on a terminal must not contain raw control characters.
std::string json_line(std::string_view json, bool for_terminal);

}  // namespace earshot::cli
