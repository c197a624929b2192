// Metrics of a relay or a hub, for /metrics and /v1/health.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace earshot::serve {

struct TeamMetric {
  std::string_view name, help;  // static texts
  bool only_grows = false;      // a counter; otherwise a gauge
  std::uint64_t value = 0;
};

struct TeamMetrics {
  std::string_view part;  // "relay" or "hub"; empty: neither
  std::vector<TeamMetric> all;
};

}  // namespace earshot::serve
