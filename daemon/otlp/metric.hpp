// Metrics as values. Pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "otlp/span.hpp"

namespace earshot::otlp {

struct Histogram {
  explicit Histogram(const std::vector<double>& upper_bounds)
      : bounds(&upper_bounds), counts(upper_bounds.size() + 1) {}
  void add(double value) {
    std::size_t bucket = 0;
    while (bucket < bounds->size() && value > (*bounds)[bucket]) ++bucket;
    ++counts[bucket];
    ++count;
    sum += value;
  }
  const std::vector<double>* bounds;  // static
  std::vector<std::uint64_t> counts;
  std::uint64_t count = 0;
  double sum = 0;
};

struct Point {
  Attributes attributes;
  double value = 0;                      // of a sum or gauge
  const Histogram* histogram = nullptr;  // null: not a histogram
};

struct Metric {
  enum class Kind { gauge, sum, histogram };
  std::string_view name, description, unit;  // static texts
  Kind kind = Kind::gauge;
  std::int64_t start_ms = 0, time_ms = 0;
  std::vector<Point> points;
};

}  // namespace earshot::otlp
