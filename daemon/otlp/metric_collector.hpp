// What the exported spans of one host add up to, and the numbers of its sessions, as metrics. Pure.
//
// Values that come from transcripts are few: further ones are `(other)`.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "otlp/metric.hpp"
#include "otlp/span.hpp"

namespace earshot::otlp {

/// Of the sessions.
struct SessionNumbers {
  struct Limit {
    std::string program, limit, window;
    double used_ratio = 0;
  };
  std::map<std::string, std::uint64_t> by_state;
  // Since the start; tokens by program, model and kind.
  std::map<std::string, double> usd_by_program;
  std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> tokens;
  std::vector<Limit> limits;  // at most MetricCollector::limits_max
};

class MetricCollector {
 public:
  static constexpr std::size_t programs_max = 16, models_max = 64, values_max = 32, limits_max = 64;
  static constexpr std::string_view other = "(other)";

  /// `host`: an attribute of each point.
  MetricCollector(std::int64_t start_ms, std::string host) : start_ms_(start_ms), host_(std::move(host)) {}
  MetricCollector(const MetricCollector&) = delete;
  MetricCollector& operator=(const MetricCollector&) = delete;
  /// Each span once.
  void on_span(const Span& span, std::string_view program);
  /// The result refers to this object. A state that no session has any more is shown with 0.
  std::vector<Metric> collect(const SessionNumbers& sessions, std::int64_t now_ms);

 private:
  using Labels = std::vector<std::string>;
  struct LabelsLess {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), std::less<>());
    }
  };
  template <class Value>
  using ByLabels = std::map<Labels, Value, LabelsLess>;
  using Names = std::set<std::string, std::less<>>;
  /// Valid as long as `known`.
  static std::string_view label(Names& known, std::string_view value, std::size_t values_max);
  /// The value of these labels; a new one is made of `initial`.
  template <class Value, class... Initial>
  static Value& value_at(ByLabels<Value>& all, std::initializer_list<std::string_view> labels,
                         const Initial&... initial) {
    if (const auto known = all.find(labels); known != all.end()) return known->second;
    return all.try_emplace(Labels(labels.begin(), labels.end()), initial...).first->second;
  }

  /// Where the numbers of chats are added.
  struct ChatTotals {
    Histogram *input, *output;
  };
  ChatTotals& chat_totals(const Span& span, std::string_view program);

  const std::int64_t start_ms_;
  const std::string host_;
  Names programs_, models_, values_, states_;
  ByLabels<Histogram> token_usage_, tool_seconds_, turn_seconds_, wait_seconds_;
  ByLabels<ChatTotals> chats_;  // by program, provider and model
};

}  // namespace earshot::otlp
