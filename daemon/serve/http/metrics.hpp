// What /metrics and /v1/health report, and the text of both. Pure: values in, text out; each module fills in
// its part.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::serve {

// --- Counters since the start ---

/// Why a client or request was refused.
enum class Refusal {
  connections,
  peer,
  host_or_origin,
  token,
  code,
  too_often,
  unreadable,
  too_long,
  too_slow,
  responses
};
constexpr std::array<std::string_view, 10> refusal_names = {
    "connections", "peer",       "host_or_origin", "token",    "code",
    "too_often",   "unreadable", "too_long",       "too_slow", "responses"};

/// Why the daemon closed a connection.
enum class Ending { stalled, silent, no_hello, too_often, token_changed, replaced };
constexpr std::array<std::string_view, 6> ending_names = {"stalled",   "silent",        "no_hello",
                                                          "too_often", "token_changed", "replaced"};

struct Counters {
  std::array<std::uint64_t, refusal_names.size()> refusals{};
  std::array<std::uint64_t, ending_names.size()> endings{};
  std::map<unsigned, std::uint64_t> answers;  // by HTTP status
  std::uint64_t connections = 0, bytes_in = 0, bytes_out = 0, messages = 0;
  std::uint64_t lagged = 0;  // `lagged` and catch-ups after eviction

  void refuse(Refusal why) { ++refusals[static_cast<std::size_t>(why)]; }
  void end(Ending why) { ++endings[static_cast<std::size_t>(why)]; }
};

// --- Metrics ---

/// Of a relay or a hub.
struct TeamMetric {
  std::string_view name, help;  // static texts
  bool only_grows = false;      // a counter; otherwise a gauge
  std::uint64_t value = 0;
};

struct TeamMetrics {
  std::string_view part;  // "relay" or "hub"; empty: neither
  std::vector<TeamMetric> all;
};

using Labelled = std::vector<std::pair<std::string, std::uint64_t>>;  // label value → number

/// From /proc/self; absent: unreadable.
struct ProcessMetrics {
  std::optional<double> cpu_seconds, start_time_seconds;
  std::optional<std::uint64_t> resident_bytes, virtual_bytes, open_fds, max_fds, threads;
};
ProcessMetrics process_metrics();

struct Metrics {
  std::string version, instance;
  ProcessMetrics process;

  // Server
  Counters counters;
  struct Connections {
    std::string kind, via;
    std::uint64_t number = 0;
  };
  std::vector<Connections> connections;
  std::uint64_t event_subscribers = 0, state_subscribers = 0;      // connections with such a subscription
  std::uint64_t log_bytes = 0, log_bytes_max = 0, log_frames = 0;  // frames: since the start
  std::uint64_t codes_outstanding = 0, response_bytes = 0;
  Labelled sessions;  // by state
  Labelled limits;    // by name

  // Catch-up of resuming clients
  std::optional<std::uint64_t> catch_up_folds, catch_up_chunk_bytes, catch_up_chunk_bytes_max, catch_ups;
  Labelled events;  // since the start, by type

  // Tail and watch
  std::uint64_t tail_bytes = 0, tail_looks = 0, tail_resets = 0, tail_verifications = 0, tail_events = 0;
  std::uint64_t tail_dropped = 0;  // beyond limits of what is kept of the transcripts that are followed now
  std::uint64_t pending_bytes = 0, open_files = 0, known_files = 0, directories = 0;
  std::uint64_t streams_live = 0, streams_cold = 0;
  std::uint64_t problems = 0, inotify_watches = 0;
  bool watch_problem = false;
  Labelled redactions;  // by rule
  TeamMetrics team;
};

/// The text exposition format 0.0.4 of Prometheus.
std::string metrics_text(const Metrics& metrics);

// --- Health ---

/// Identity and state of the daemon, for `earshot doctor` and users.
struct Health {
  struct Root {
    std::string name, path;
    bool present = false;
    std::size_t transcripts = 0, live = 0;  // known; of those, followed
  };
  struct Watch {
    std::string mode;     // inotify, sweep, both
    std::string problem;  // empty: none
    std::size_t inotify_watches = 0;
  };
  struct Problem {
    std::string path, reason, advice;
  };
  struct Host {  // of a hub
    std::string name;
    bool online = false;
    std::string last_seen;  // RFC 3339
  };
  struct Redaction {
    bool on = false;
    std::vector<std::string> rules;  // active rules
  };

  std::string version, instance, host;
  std::int64_t pid = 0, uptime_s = 0;
  std::string state, address, socket;  // paths and a URL; empty: none
  std::vector<Root> roots;
  Watch watch;
  std::vector<Problem> problems;
  Redaction redaction;
  TeamMetrics team;
  std::vector<Host> hosts;
  std::size_t connections = 0, sessions = 0;
  std::vector<std::pair<std::string, std::uint64_t>> limits;  // by name
};

std::string health_json(const Health& health);

}  // namespace earshot::serve
