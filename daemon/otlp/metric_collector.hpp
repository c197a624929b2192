// What the exported spans of one host add up to, and the present numbers of its sessions, as metrics. Pure.
//
// Values that come from transcripts are few: further ones are `(other)`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otlp/metric.hpp"
#include "otlp/span.hpp"

namespace earshot::otlp {

/// The present state of the sessions, for the gauges.
struct SessionNumbers {
  struct Limit {
    std::string program, limit, window;
    double used_ratio = 0;
  };
  std::map<std::string, std::uint64_t> by_state;
  std::map<std::string, double> usd_by_program;  // since the start
  std::vector<Limit> limits;                     // at most MetricCollector::limits_max
};

class MetricCollector {
 public:
  static constexpr std::size_t programs_max = 16, models_max = 64, values_max = 32, limits_max = 64;
  static constexpr std::string_view other = "(other)";

  /// `host`: an attribute of each point.
  MetricCollector(std::int64_t start_ms, std::string host) : start_ms_(start_ms), host_(std::move(host)) {}
  /// Each span once.
  void on_span(const Span& span, std::string_view program);
  /// The result refers to this object. A state that no session has any more is shown with 0.
  std::vector<Metric> collect(const SessionNumbers& sessions, std::int64_t now_ms);

 private:
  using Labels = std::vector<std::string>;
  using Names = std::set<std::string, std::less<>>;
  static std::string label(Names& known, std::string_view value, std::size_t values_max);

  const std::int64_t start_ms_;
  const std::string host_;
  Names programs_, models_, values_, states_;
  std::map<Labels, Histogram> token_usage_, tool_seconds_, turn_seconds_, wait_seconds_;
  std::map<Labels, double> tokens_;
};

}  // namespace earshot::otlp
