#include "models/usage_ledger.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace earshot {
namespace {

constexpr std::int64_t morning = 1'774'000'800'000;  // 2026-03-20T10:00:00Z

/// A stream whose requests use output tokens only.
struct Stream {
  explicit Stream(UsageLedger& ledger, std::int64_t born = 0) : ledger(ledger), origin(born, "s") {}
  void spend(std::uint64_t id, std::uint64_t output, std::int64_t time_ms = morning) {
    used.begin_record(time_ms);
    used.add(id, "big", {0, output});
    for (const StreamUsage::Grown& grown : used.grown())
      if (account) fresh += account->update(grown);
  }
  void open() {
    account.emplace(
        ledger, [this] { return &used; }, origin);
  }
  ModelUsage::Sum counted() {
    return account->models().empty() ? ModelUsage::Sum{} : account->models()[0].all;
  }
  std::uint64_t today() { return account->models().empty() ? 0 : account->models()[0].day.usage.output; }

  UsageLedger& ledger;
  UsageLedger::Origin origin;
  StreamUsage used;
  Usage fresh;
  std::optional<UsageAccount> account;
};

}  // namespace

TEST_CASE("fault 127: a request that a fork repeats counts once, for the stream that was written first") {
  for (const bool is_fork_first : {false, true}) {
    CAPTURE(is_fork_first);
    UsageLedger ledger;
    Stream original(ledger, 1), fork(ledger, 2);
    for (const std::uint64_t id : {11, 12}) original.spend(id, 100), fork.spend(id, 100);
    fork.spend(13, 7);
    (is_fork_first ? fork : original).open();
    (is_fork_first ? original : fork).open();
    CHECK(original.counted().usage.output == 200);
    CHECK(fork.counted().usage.output == 7);
    CHECK(fork.counted().without_cost.output == 7);
    CHECK(fork.today() == 7);
    // A fork of the fork, that is told as it is written.
    Stream next(ledger, 3);
    next.open();
    for (const std::uint64_t id : {11, 12, 13, 14}) next.spend(id, id == 13 ? 7 : 100);
    CHECK(next.counted().usage.output == 100);
    CHECK(next.today() == 100);
    next.spend(15, 1, morning + 36 * 3'600'000);  // of the next day
    CHECK(next.counted().usage.output == 101);
    CHECK(next.today() == 1);
  }
}

TEST_CASE("fault 127: of two copies of a request the complete one counts") {
  UsageLedger ledger;
  Stream killed(ledger, 1), fork(ledger, 2);
  killed.open(), fork.open();
  killed.spend(11, 1);
  fork.spend(11, 1);
  CHECK(fork.counted().usage.output == 0);
  fork.spend(11, 50);
  CHECK(killed.counted().usage.output == 0);
  CHECK(fork.counted().usage.output == 50);
  CHECK(killed.fresh.output == 1);
  CHECK(fork.fresh.output == 49);
}

TEST_CASE("what a removed stream had used counts for its copy") {
  UsageLedger ledger;
  Stream original(ledger, 1), fork(ledger, 2);
  original.spend(11, 100), fork.spend(11, 100);
  original.open(), fork.open();
  CHECK(fork.counted().usage.output == 0);
  original.account.reset();
  CHECK(fork.counted().usage.output == 100);
  original.open();
  CHECK(fork.counted().usage.output == 0);
}

TEST_CASE("a stream with a new history has a new account") {
  UsageLedger ledger;
  Stream one(ledger, 1), other(ledger, 2);
  one.spend(11, 100), other.spend(11, 100);
  one.open(), other.open();
  one.used = StreamUsage();
  one.open();
  CHECK(one.counted().usage.output == 0);
  CHECK(other.counted().usage.output == 100);
}

TEST_CASE("requests without an id count each") {
  UsageLedger ledger;
  Stream one(ledger, 1), other(ledger, 2);
  one.open(), other.open();
  for (int n = 0; n < 3; ++n) one.spend(0, 5), other.spend(0, 5);
  CHECK(one.counted().usage.output == 15);
  CHECK(other.counted().usage.output == 15);
}

TEST_CASE("beyond the limit copies of the earliest requests count again") {
  UsageLedger ledger(4);
  Stream one(ledger, 1), other(ledger, 2);
  one.open(), other.open();
  for (std::uint64_t id = 11; id < 31; ++id) one.spend(id, 1);
  other.spend(30, 1), other.spend(28, 1);
  CHECK(other.counted().usage.output == 0);
  other.spend(11, 1);
  CHECK(other.counted().usage.output == 1);
}

TEST_CASE("a recorded cost counts with its request") {
  UsageLedger ledger;
  Stream one(ledger, 1), other(ledger, 2);
  one.open(), other.open();
  for (Stream* each : {&one, &other}) {
    each->used.begin_record(morning);
    each->used.add(11, "big", {1, 2}, 0.5);
    each->account->update(each->used.grown().at(0));
  }
  CHECK(one.counted().recorded_usd == 0.5);
  CHECK(one.counted().without_cost == Usage{});
  CHECK(other.counted().recorded_usd == 0);
}

}  // namespace earshot
