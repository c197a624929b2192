#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "cli/usage_ledger.hpp"

namespace usage_ledger_test {

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

// A transcript: reports what it used, as its assembler does.
class Reported {
 public:
  Reported(NameTable& models, std::uint32_t rank, std::string session = "s", bool is_subagent = false)
      : sink(models), origin{rank, "p", std::move(session), "/p", is_subagent} {
    sink.begin("p", rank);
  }
  // A message with so many output tokens.
  Reported& message(const std::string& id, std::uint64_t output, std::int64_t time_ms = 1000,
                    const char* model = "priced") {
    const Usage used{.input = 0, .output = output};
    total_.output += output;
    return emit({id, model, used, total_, cost_}, time_ms);
  }
  // A record without the id of a message, and the stream's totals.
  Reported& response(std::optional<std::uint64_t> output, std::uint64_t total) {
    const std::optional<Usage> used =
        output ? std::optional(Usage{.input = 0, .output = *output}) : std::nullopt;
    total_.output = total;
    return emit({{}, "priced", used, total_, std::nullopt}, 1000);
  }
  Reported& session_cost(double usd, std::int64_t time_ms = 1000) {
    cost_ = usd;
    return emit({{}, {}, std::nullopt, total_, cost_}, time_ms);
  }
  Reported& emit(const event::UsageUpdated& updated, std::int64_t time_ms) {
    Event event{};
    event.time_ms = time_ms;
    event.body = updated;
    sink.on_event(event);
    return *this;
  }

  UsageSink sink;
  UsageOrigin origin;

 private:
  Usage total_;
  std::optional<double> cost_;
};

std::map<std::string, UsageSums> by_session(UsageLedger& ledger) {
  std::map<std::string, UsageSums> sums;
  ledger.for_each(std::nullopt, [&](const UsageLedger::Item& item) { sums[item.session.id].add(item.sums); });
  return sums;
}

std::uint64_t output_of(const std::vector<UsageEntry>& entries) {
  std::uint64_t sum = 0;
  for (const UsageEntry& entry : entries) sum += entry.tokens.output;
  return sum;
}

const std::string id = "msg_0123456789abcdef-";

}  // namespace

TEST_CASE("the sums do not depend on the order in which transcripts are added") {
  std::vector<int> order{0, 1, 2};
  do {
    UsageLedger ledger(prices());
    std::vector<Reported> transcripts;
    transcripts.emplace_back(ledger.models(), 0, "original")
        .message(id + "1", 10, 5000)
        .message(id + "2", 20);
    transcripts.emplace_back(ledger.models(), 1, "fork").message(id + "1", 11, 4000).message(id + "3", 30);
    transcripts.emplace_back(ledger.models(), 2, "copy").message(id + "3", 30).message(id + "2", 19);
    for (const int n : order) ledger.add(transcripts[n].origin, transcripts[n].sink);
    auto sums = by_session(ledger);
    CHECK(sums.size() == 2);
    CHECK(sums["original"].tokens.output == 31);
    CHECK(sums["fork"].tokens.output == 30);
    CHECK(sums["original"].messages == 2);
    CHECK(ledger.copies() == 3);
    std::vector<std::int64_t> times;
    ledger.for_each(std::nullopt, [&](const auto& item) { times.push_back(item.time_ms); });
    std::sort(times.begin(), times.end());
    CHECK(times == std::vector<std::int64_t>{1000, 1000, 4000});
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("records without an id of a message count each, totals only where nothing else is stated") {
  NameTable models;
  const auto used = [&](auto&& report) {
    Reported transcript(models, 0);
    report(transcript);
    return output_of(transcript.sink.entries());
  };
  CHECK(used([](Reported& t) { t.response(10, 10).response(5, 15); }) == 15);
  CHECK(used([](Reported& t) { t.response(10, 10).response(10, 10); }) == 10);    // repeated
  CHECK(used([](Reported& t) { t.response(5, 1005).response(7, 1012); }) == 12);  // it continues another one
  CHECK(used([](Reported& t) { t.response(10, 0).response(5, 0); }) == 15);       // no totals
  CHECK(used([](Reported& t) { t.message(id, 10).response({}, 25); }) == 25);     // the rest is in the totals
  CHECK(used([](Reported& t) { t.response({}, 25).response({}, 20); }) == 25);    // totals that fall
}

TEST_CASE("a short id is one message only together with its time, an offset only in its file") {
  UsageLedger ledger(prices());
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Reported transcript(ledger.models(), rank);
    transcript.message("e001", 1, rank < 2 ? 1000 : 2000)
        .message("@12345678901234567890", 10)
        .message(id, 100);
    ledger.add(transcript.origin, transcript.sink);
  }
  CHECK(by_session(ledger)["s"].tokens.output == 132);
}

TEST_CASE("beyond the limit the sums stay complete but for copies") {
  UsageLedger ledger(prices(), 2);
  Reported first(ledger.models(), 0, "a"), second(ledger.models(), 1, "b");
  for (int n = 0; n < 10; ++n) first.message(id + std::to_string(n), 1);
  second.message(id + "0", 1).message(id + "9", 1).message(id + "new", 1, 1000, "other");
  ledger.add(first.origin, first.sink);
  CHECK(ledger.is_full());
  ledger.add(second.origin, second.sink);
  auto sums = by_session(ledger);
  CHECK(sums["a"].tokens.output == 10);
  CHECK(sums["b"].tokens.output == 2);  // the copy of 9 counts again
  std::size_t kept = 0;
  ledger.for_each(std::nullopt, [&](const auto&) { ++kept; });
  CHECK(kept == 5);
}

TEST_CASE("the cost of a session is divided by price, or by tokens if one has none") {
  const auto cost = [](const char* model, auto&& more) {
    UsageLedger ledger(prices());
    Reported main(ledger.models(), 0), agent(ledger.models(), 1, "s", true);
    main.message(id + "1", 300, 1000).message(id + "2", 100, 2000, model).session_cost(8.0);
    more(main);
    agent.message(id + "3", 400, 1500).message(id + "4", 1'000'000, 9000);  // the last one came later
    ledger.add(agent.origin, agent.sink);
    ledger.add(main.origin, main.sink);
    std::vector<double> costs;
    ledger.for_each(std::nullopt,
                    [&](const auto& item) { costs.push_back(item.sums.cost_usd().value_or(-1)); });
    std::sort(costs.begin(), costs.end());
    return costs;
  };
  const auto nothing = [](Reported&) {};
  const auto near = [](double value) { return Approx(value).margin(1e-9); };
  const auto priced = cost("priced", nothing);
  REQUIRE(priced.size() == 4);
  CHECK(priced[0] == near(1));
  CHECK(priced[1] == near(3));
  CHECK(priced[2] == near(4));
  CHECK(priced[3] == near(10));
  CHECK(cost("unpriced", nothing)[1] == near(3));  // by tokens: the same
  // What came after the last cost is estimated, or has no cost.
  const auto later = cost("priced", [](Reported& t) { t.message(id + "5", 100'000, 5000); });
  REQUIRE(later.size() == 5);
  CHECK(later[0] == near(1));
  CHECK(later[1] == near(1));
  const auto unknown = cost("priced", [](Reported& t) { t.message(id + "5", 100, 5000, "unpriced"); });
  CHECK(unknown[0] == near(-1));
}

TEST_CASE("further names than a table holds are one") {
  NameTable names;
  for (std::size_t n = 0; n < NameTable::names_max; ++n) names.number("model " + std::to_string(n));
  CHECK(names.number("model 7") == 7);
  CHECK(names.name(names.number("one more")) == "(other)");
  CHECK(names.number("another one") == names.number("one more"));
}

}  // namespace usage_ledger_test
