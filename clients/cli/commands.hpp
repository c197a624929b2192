// The commands behind `earshot`: each takes its options and gives the program's exit code.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/style.hpp"
#include "common/endpoint.hpp"
#include "common/subscription.hpp"
#include "core/event_json.hpp"

namespace earshot::cli {

using namespace common;

constexpr int exit_ok = 0;
constexpr int exit_failed = 1;  // something could not be read or reached
constexpr int exit_usage = 2;

enum class Format { automatic, json, pretty };  // automatic: pretty on a terminal

struct TailOptions {
  Filters filters;
  ConnectOptions daemon;
  Format format = Format::automatic;
  ColourMode colour = ColourMode::automatic;
  std::optional<std::int64_t> since_ms;  // begin with what happened since then
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
  Filters filters;
  ConnectOptions daemon;
  bool follow = false;  // a line at each change, with a daemon or without, until ^C
  bool json = false;
};
int status_command(const StatusOptions& options);

struct ShowOptions {
  std::string session;  // an id, a unique beginning of one, or `last`
  Filters filters;      // of those to choose from
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  std::uint64_t turn = 0;  // only this one; 0: all
  bool verbose = false;
  bool json = false;
  bool no_pager = false;
};
int show_command(const ShowOptions& options);

/// For shells: the ids of live sessions, one a line; quiet when there is no daemon.
int sessions_command(const ConnectOptions& daemon);

struct DoctorOptions {
  ConnectOptions daemon;
  ColourMode colour = ColourMode::automatic;
  bool json = false;
};
int doctor_command(const DoctorOptions& options);

struct OpenOptions {
  ConnectOptions daemon;
  bool print = false;  // only
};
int open_command(const OpenOptions& options);

struct TokenOptions {
  ConnectOptions daemon;
  bool rotate = false;
};
int token_command(const TokenOptions& options);

struct ReplayOptions {
  std::vector<std::string> files;  // `-` is stdin; a directory is walked
  View view = View::full;
  std::string agent, stream, host,
      state;  // empty: from the file's name, from its path, this host's name, mark key 0
  ColourMode colour = ColourMode::automatic;
  bool stats = false;
  bool events = false;  // with stats too
  bool json = false;    // the statistics
  bool pretty = false;
  bool verbose = false;
  bool redact = true;  // secrets are replaced
};
int replay_command(const ReplayOptions& options);

}  // namespace earshot::cli
