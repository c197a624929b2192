#include "cli/recorded_usage.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

namespace recorded_usage_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

const ModelTable& prices() {
  static const auto table = ModelTable::with_user_file(
      "[[model]]\npattern = \"priced\"\ninput = 1\noutput = 10\ncache_write_5m = 1\ncache_write_1h = 1\n"
      "cache_read = 1\ndate = \"2026-01-01\"\nsource = \"invented\"\n",
      "models.toml");
  return std::get<ModelTable>(table);
}

struct Recorded : TranscriptUsage {
  Recorded(std::uint32_t of_rank, std::string of_session = "s", bool of_subagent = false) {
    rank = of_rank, program = "p", session = std::move(of_session), project = "/p", is_subagent = of_subagent;
  }
  /// A request with so many output tokens; 0: without an id.
  Recorded& request(std::uint64_t id, std::uint64_t output, std::int64_t time_ms = 1000,
                    const char* model = "priced") {
    used.begin_record(time_ms);
    used.add(id, model, {0, output});
    return *this;
  }
  Recorded& session_cost(double usd, std::int64_t time_ms = 1000) {
    used.cover_all();
    total_usd = usd, total_ms = time_ms;
    return *this;
  }
};

std::map<std::string, UsageSums> by_session(RecordedUsage& usage) {
  std::map<std::string, UsageSums> sums;
  usage.for_each(std::nullopt,
                 [&](const RecordedUsage::Item& item) { sums[item.session.id].add(item.sums); });
  return sums;
}

}  // namespace

TEST_CASE("the sums do not depend on the order in which transcripts are added") {
  std::vector<int> order{0, 1, 2};
  do {
    RecordedUsage usage(prices());
    std::vector<Recorded> transcripts;
    transcripts.emplace_back(0, "original").request(11, 10, 5000).request(12, 20);
    transcripts.emplace_back(1, "fork").request(11, 11, 4000).request(13, 30);
    transcripts.emplace_back(2, "copy").request(13, 30).request(12, 19);
    for (const int n : order) usage.add(std::move(transcripts[n]));
    auto sums = by_session(usage);
    CHECK(sums.size() == 2);
    CHECK(sums["original"].tokens.output == 20);
    CHECK(sums["fork"].tokens.output == 41);
    CHECK(sums["fork"].messages == 2);
    CHECK(usage.copies() == 3);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("beyond the limit the sums stay complete but for copies") {
  RecordedUsage usage(prices(), 10);
  Recorded first(0, "a"), second(1, "b");
  for (std::uint64_t id = 11; id < 21; ++id) first.request(id, 1);
  second.request(11, 1).request(20, 1).request(99, 1, 1000, "other");
  usage.add(std::move(first));
  CHECK(!usage.is_full());
  usage.add(std::move(second));
  CHECK(usage.is_full());
  auto sums = by_session(usage);
  CHECK(sums["a"].tokens.output == 10);
  CHECK(sums["b"].tokens.output == 3);  // the copies count again
  CHECK(sums["b"].messages == 3);
  std::size_t kept = 0;
  usage.for_each(std::nullopt, [&](const auto&) { ++kept; });
  CHECK(kept == 12);
}

TEST_CASE("requests without an id are divided by the time from which on they count") {
  const auto counted = [](std::size_t requests_max) {
    constexpr std::int64_t minute = 60'000;
    const std::int64_t since = 5 * minute;
    RecordedUsage usage(prices(), requests_max);
    Recorded transcript(0);
    transcript.used.split_sums(since);
    transcript.request(0, 1, 4 * minute).request(0, 2, 9 * minute).request(0, 4, 3 * minute);
    transcript.request(11, 8, 4 * minute).request(12, 16, 6 * minute).request(11, 40, 7 * minute);
    usage.add(std::move(transcript));
    std::uint64_t output = 0;
    usage.for_each(since, [&](const RecordedUsage::Item& item) { output += item.sums.tokens.output; });
    return output;
  };
  CHECK(counted(10) == 18);
  CHECK(counted(1) == 18);  // the ids are forgotten, too
}

TEST_CASE("the cost of a session is divided by price, or by tokens if one has none") {
  const auto cost = [](const char* model, auto&& more) {
    RecordedUsage usage(prices());
    Recorded main(0), agent(1, "s", true);
    main.request(11, 300, 1000).request(12, 100, 2000, model).session_cost(8.0, 2000);
    more(main);
    agent.request(13, 400, 1500).request(14, 1'000'000, 9000);  // the last one came later
    usage.add(std::move(agent));
    usage.add(std::move(main));
    std::vector<double> costs;
    usage.for_each(std::nullopt,
                   [&](const auto& item) { costs.push_back(item.sums.cost_usd().value_or(-1)); });
    std::sort(costs.begin(), costs.end());
    return costs;
  };
  const auto nothing = [](Recorded&) {};
  const auto near = [](double value) { return Approx(value).margin(1e-9); };
  const auto priced = cost("priced", nothing);
  REQUIRE(priced.size() == 4);
  CHECK(priced[0] == near(1));
  CHECK(priced[1] == near(3));
  CHECK(priced[2] == near(4));
  CHECK(priced[3] == near(10));
  CHECK(cost("unpriced", nothing)[1] == near(3));  // by tokens: the same
  // What came after the last cost is estimated, or has no cost.
  const auto later = cost("priced", [](Recorded& t) { t.request(15, 100'000, 5000); });
  REQUIRE(later.size() == 5);
  CHECK(later[0] == near(1));
  CHECK(later[1] == near(1));
  const auto unknown = cost("priced", [](Recorded& t) { t.request(15, 100, 5000, "unpriced"); });
  CHECK(unknown[0] == near(-1));
}

}  // namespace recorded_usage_test
