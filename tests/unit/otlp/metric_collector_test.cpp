#include "otlp/metric_collector.hpp"

#include <catch2/catch.hpp>

namespace earshot::otlp {
namespace {

/// Label → value of the points of one metric, each of which has one label and its host.
std::map<std::string, double> values_of(const std::vector<Metric>& metrics, std::string_view name) {
  std::map<std::string, double> values;
  for (const Metric& metric : metrics) {
    if (metric.name != name) continue;
    for (const Point& point : metric.points)
      values[std::get<std::string>(point.attributes.all().at(0).value)] = point.value;
  }
  return values;
}

}  // namespace

TEST_CASE("a state that no session has any more is shown with 0") {
  MetricCollector collector(0, "ada");
  SessionNumbers numbers;
  numbers.by_state = {{"working", 2}, {"waiting", 1}};
  CHECK(values_of(collector.collect(numbers, 1), "earshot.sessions") ==
        std::map<std::string, double>{{"waiting", 1}, {"working", 2}});
  numbers.by_state = {{"working", 1}};
  CHECK(values_of(collector.collect(numbers, 2), "earshot.sessions") ==
        std::map<std::string, double>{{"waiting", 0}, {"working", 1}});
}

TEST_CASE("the cost is that of the programs, further ones together") {
  MetricCollector collector(0, "ada");
  SessionNumbers numbers;
  for (std::size_t i = 0; i < MetricCollector::programs_max + 2; ++i)
    numbers.usd_by_program[std::string(1, static_cast<char>('a' + i))] = 1;
  const auto values = values_of(collector.collect(numbers, 1), "earshot.cost");
  CHECK(values.size() == MetricCollector::programs_max + 1);
  CHECK(values.at("a") == 1);
  CHECK(values.at("(other)") == 2);
}

}  // namespace earshot::otlp
