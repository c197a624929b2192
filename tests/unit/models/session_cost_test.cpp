#include "models/session_cost.hpp"

#include <catch2/catch.hpp>

using namespace earshot;

namespace {

/// A million tokens of output, of a model that costs 10 USD for them.
const std::vector<ModelUsage> priced = {{"opus", {{}, {.input = 1, .output = 1'000'000}}}};
const std::vector<ModelUsage> unknown = {{"unheard-of", {{}, {.input = 1, .output = 1'000'000}}}};
const std::vector<ModelUsage> output_only = {{"opus", {{}, {.output = 1'000'000}}}};
const std::vector<ModelUsage> covered = {{"opus", {{.input = 1, .output = 1'000'000}}}};

ModelTable prices() {
  return std::get<ModelTable>(
      ModelTable::with_user_file("[[model]]\npattern = \"opus\"\ninput = 0\noutput = 10\ncache_read = 0\n"
                                 "cache_write_5m = 0\ncache_write_1h = 0\n",
                                 "models.toml"));
}

struct Expected {
  double usd;
  std::string_view source;
};
void check(const std::vector<StreamCost>& streams, std::optional<Expected> expected) {
  const auto cost = session_cost(streams, prices());
  REQUIRE(cost.has_value() == expected.has_value());
  if (!cost) return;
  CHECK(cost->usd == Approx(expected->usd));
  CHECK(cost->source == expected->source);
}

}  // namespace

TEST_CASE("a cost is recorded, estimated, or both") {
  check({}, std::nullopt);
  check({{.models = {}}}, std::nullopt);
  check({{.recorded_usd = 2, .models = covered}}, Expected{2, "recorded"});
  check({{.models = priced}, {.models = priced}}, Expected{20, "estimated"});
  check({{.recorded_usd = 2, .models = covered}, {.models = priced}}, Expected{12, "mixed"});
}

TEST_CASE("without a price, or with the output alone, there is no estimate") {
  check({{.models = unknown}}, std::nullopt);
  check({{.models = priced}, {.models = unknown}}, std::nullopt);
  check({{.models = output_only}}, std::nullopt);
  check({{.recorded_usd = 2, .models = covered}, {.models = unknown}}, Expected{2, "recorded"});
}

TEST_CASE("a recorded total of the session covers the streams before it") {
  const StreamCost total{.recorded_usd = 3, .total_ms = 1000, .last_activity_ms = 2000};
  check({total, {.last_activity_ms = 900, .turn = 1, .models = priced}}, Expected{3, "recorded"});
  check({total, {.last_activity_ms = 1500, .turn_started_ms = 800, .turn = 1, .models = priced}},
        Expected{3, "recorded"});  // the rest is in the next total
  check({total, {.last_activity_ms = 1500, .turn_started_ms = 1200, .turn = 1, .models = priced}},
        Expected{13, "mixed"});
}

TEST_CASE("a negative sum is none") { check({{.recorded_usd = -1}}, std::nullopt); }

TEST_CASE("of a fork's total the part counts that does not repeat another session") {
  const auto used = [](std::uint64_t output, const char* model = "opus") {
    return std::vector<ModelUsage>{{model, {{.input = 1, .output = output * 100'000}}}};
  };
  const auto cost = [&](double total_usd, const std::vector<ModelUsage>& counted,
                        const std::vector<ModelUsage>& all) {
    const StreamCost stream{.recorded_usd = total_usd, .total_ms = 1000, .models = counted, .all = all};
    return session_cost(std::vector{stream}, prices())->usd;
  };
  // A dollar each: three repeated and two of its own.
  CHECK(cost(5, used(2), used(5)) == Approx(2));
  CHECK(cost(5.5, used(2), used(5)) == Approx(2.5));
  CHECK(cost(2, used(2), used(5)) == Approx(2));  // a total of its own process
  CHECK(cost(5, {}, used(5)) == 0);
  CHECK(cost(5, used(5), {}) == 5);
  CHECK(cost(5, used(2, "unheard-of"), used(5, "unheard-of")) == Approx(2));
}
