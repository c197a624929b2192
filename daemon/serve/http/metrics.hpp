// The texts of /metrics and /v1/health. Pure: values in, text out; each module fills in its part.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"

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
enum class Ending { stalled, silent, no_hello, too_often, token_changed, browser_removed, replaced };
constexpr std::array<std::string_view, 7> ending_names = {
    "stalled", "silent", "no_hello", "too_often", "token_changed", "browser_removed", "replaced"};

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

/// Of a relay, a hub or the exporter.
struct TeamMetric {
  std::string_view name, help;  // static texts
  bool only_grows = false;      // a counter; otherwise a gauge
  std::uint64_t value = 0;
};

struct TeamMetrics {
  std::string_view part;  // "relay", "hub" or "otlp"; empty: none
  std::vector<TeamMetric> all;
};

using Labelled = std::vector<std::pair<std::string, std::uint64_t>>;  // label value → number

/// From /proc/self; absent: unreadable.
struct ProcessMetrics {
  std::optional<double> cpu_seconds, start_time_seconds;
  std::optional<std::uint64_t> resident_bytes, virtual_bytes, open_fds, max_fds, threads;
};
ProcessMetrics process_metrics();

/// A page in the text exposition format 0.0.4 of Prometheus, to which each module adds its part. Names of
/// counters end in `_total`; other metrics are gauges.
class MetricsPage {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  /// Begins a metric: HELP and TYPE precede its first sample; without a sample they are omitted.
  MetricsPage& family(std::string_view name, std::string_view help) {
    name_ = name, help_ = help;
    return *this;
  }
  MetricsPage& sample(auto number, Labels labels = {}) {
    append_json_number(begin_sample(labels), number);
    text += '\n';
    return *this;
  }
  void each(std::string_view label, const Labelled& numbers) {
    for (const auto& [value, number] : numbers) sample(number, {{label, value}});
  }
  /// A metric with one sample.
  void add(std::string_view name, std::string_view help, auto value) { family(name, help).sample(value); }
  /// None if the value is absent.
  template <class Number>
  void add(std::string_view name, std::string_view help, const std::optional<Number>& value) {
    if (value) add(name, help, *value);
  }
  void add(const ProcessMetrics& process);
  void add(const Counters& counters);
  void add(const TeamMetrics& team);

  std::string text;

 private:
  std::string& begin_sample(Labels labels);

  std::string name_, help_;  // help_: empty after the first sample
};

// --- Health ---

/// Record types of one version of an agent program that earshot has no rule for, in the live transcripts.
struct UnknownRecords {
  static constexpr std::size_t types_max = 64;  // named of a version; further ones are counted as `(other)`
  static constexpr std::size_t versions_max = 64;  // in one answer; further ones are left out
  std::string program, version;                    // version: empty where the program does not write it
  std::map<std::string, std::uint64_t> types;      // type → records
};

/// Identity and state of the daemon, for `earshot doctor` and users.
struct Health {
  struct Root {
    std::string name, path, program;
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

  struct Search {
    bool on = false, building = false;
    std::string problem;  // empty: none
    std::uint64_t indexed = 0, total = 0, documents = 0, bytes = 0, lag_ms = 0;
  };

  std::string version, instance, host;
  std::int64_t pid = 0, uptime_s = 0;
  std::string state, address, socket;  // paths and a URL; empty: none
  std::vector<Root> roots;
  Watch watch;
  std::vector<Problem> problems;
  std::vector<UnknownRecords> unknown_records;
  Redaction redaction;
  Search search;
  TeamMetrics team, exporter;
  std::vector<Host> hosts;
  std::size_t connections = 0, sessions = 0;
  std::vector<std::pair<std::string, std::uint64_t>> limits;  // by name
};

std::string health_json(const Health& health);

}  // namespace earshot::serve
