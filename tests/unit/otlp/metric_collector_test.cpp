#include "otlp/metric_collector.hpp"

#include <catch2/catch.hpp>

namespace earshot::otlp {
namespace {

/// First label → value of the points of one metric.
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

TEST_CASE("cost and tokens are those of the programs, of further ones together") {
  MetricCollector collector(0, "ada");
  SessionNumbers numbers;
  for (std::size_t i = 0; i < MetricCollector::programs_max + 2; ++i) {
    const std::string program(1, static_cast<char>('a' + i));
    numbers.usd_by_program[program] = 1;
    numbers.tokens[{program, "m", "input"}] = 10;
  }
  const auto metrics = collector.collect(numbers, 1);
  for (const auto& [name, each] : {std::pair("earshot.cost", 1), std::pair("earshot.tokens", 10)}) {
    const auto values = values_of(metrics, name);
    CHECK(values.size() == MetricCollector::programs_max + 1);
    CHECK(values.at("a") == each);
    CHECK(values.at("(other)") == 2 * each);
  }
}

}  // namespace earshot::otlp
