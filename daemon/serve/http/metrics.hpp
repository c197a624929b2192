// Numbers for /metrics, and their text. Pure: numbers in, text out. Whoever has numbers fills in his part.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "serve/http/counters.hpp"
#include "serve/http/team_metrics.hpp"

namespace earshot::serve {

using Labelled = std::vector<std::pair<std::string, std::uint64_t>>;  // label's value → number

/// Of this process, as the kernel has it. Nothing: it could not be read.
struct ProcessMetrics {
  std::optional<double> cpu_seconds, start_time_seconds;
  std::optional<std::uint64_t> resident_bytes, virtual_bytes, open_fds, max_fds, threads;
};
ProcessMetrics process_metrics();

struct Metrics {
  std::string version, instance;
  ProcessMetrics process;

  // The hub's
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
  Labelled limits;    // as they are called in [limits]

  // The catch-up of clients that resume
  std::optional<std::uint64_t> catch_up_folds, catch_up_chunk_bytes, catch_up_chunk_bytes_max, catch_ups;
  Labelled events;  // told since the start, by type

  // The house's
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
