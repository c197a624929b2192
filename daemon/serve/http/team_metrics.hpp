// Numbers of a team's daemon: what a relay published, or what a hub received. For /metrics and /v1/health.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace earshot::serve {

struct TeamMetric {
  std::string_view name, help;  // of static texts
  bool only_grows = false;      // since the start; else it goes up and down
  std::uint64_t value = 0;
};

struct TeamMetrics {
  std::string_view part;  // "relay" or "hub"; empty: this daemon is neither
  std::vector<TeamMetric> all;
};

}  // namespace earshot::serve
