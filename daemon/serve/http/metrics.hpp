// The values of /metrics and their text format. Pure: values in, text out; each module fills in its part.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/http/counters.hpp"
#include "serve/http/team_metrics.hpp"

namespace earshot::serve {

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
  std::uint64_t codes_outstanding = 0;
  Labelled sessions;  // by state
  Labelled limits;    // by name

  // Catch-up of resuming clients
  std::optional<std::uint64_t> catch_up_folds, catch_up_chunk_bytes, catch_up_chunk_bytes_max, catch_ups;
  Labelled events;  // since the start, by type

  // Tail and watch
  std::uint64_t tail_bytes = 0, tail_looks = 0, tail_resets = 0, tail_verifications = 0, tail_events = 0;
  std::uint64_t pending_bytes = 0, open_files = 0, known_files = 0, directories = 0;
  std::uint64_t streams_live = 0, streams_cold = 0;
  std::uint64_t troubles = 0, inotify_watches = 0;
  bool watch_trouble = false;
  Labelled redactions;  // by rule
  TeamMetrics team;
};

/// The text exposition format 0.0.4 of Prometheus.
std::string metrics_text(const Metrics& metrics);

}  // namespace earshot::serve
