// What transcripts say about tokens and cost, each message counted once: the data of `earshot usage`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "core/event.hpp"
#include "models/model_table.hpp"

namespace earshot::cli {

void add_tokens(Usage& sum, const Usage& more);
/// Cache reads and writes included.
std::uint64_t total_tokens(const Usage& usage);

/// Numbers names in order of their insertion. Thread-safe.
class NameTable {
 public:
  static constexpr std::size_t name_bytes_max = 256;  // longer names are cut
  static constexpr std::size_t names_max = 4096;      // further names become `(other)`

  std::uint32_t number(std::string_view name);
  /// Valid as long as the table.
  const std::string& name(std::uint32_t number) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
  std::vector<const std::string*> names_;
};

/// What one message used; in a stream without message ids, what one record reports.
struct UsageEntry {
  std::uint64_t key = 0;  // of the message; 0: it has none
  std::uint32_t model = 0;
  std::int64_t time_ms = 0;  // of its first record; 0: unknown
  Usage tokens;
  double recorded_usd = 0;  // 0: not recorded
};

/// Collects the usage of one transcript. Several lines of a message are one entry, with the largest counts.
class UsageSink : public EventSink {
 public:
  static constexpr std::size_t short_id_bytes = 16;  // shorter message ids are unique only with their time

  explicit UsageSink(NameTable& models) : models_(models) {}

  /// Starts the next transcript. Ids of messages are compared within a program; `scope` is another number for
  /// each transcript.
  void begin(std::string_view program, std::uint64_t scope);
  void on_event(const Event& event) override;

  const std::vector<UsageEntry>& entries() const { return entries_; }

  /// For programs that record the session's cost so far, subagents included: the last such record.
  struct SessionCost {
    double usd = 0;
    std::int64_t time_ms = 0;  // the newest time before the record
    std::size_t entries = 0;   // before the record
  };
  const std::optional<SessionCost>& session_cost() const { return session_cost_; }

 private:
  Usage increment(const event::UsageUpdated& updated);
  std::uint64_t key_of(std::string_view message, std::int64_t time_ms) const;
  std::uint32_t model_number(std::string_view model);

  NameTable& models_;
  std::uint64_t seed_ = 0, scope_ = 0;
  std::vector<UsageEntry> entries_;
  HashMap<std::uint32_t> by_key_;  // index into entries_
  Usage total_;
  double cost_total_ = 0;
  std::int64_t last_ms_ = 0;
  std::optional<SessionCost> session_cost_;
  std::string model_;  // the last one
  std::optional<std::uint32_t> model_number_;
};

/// What a transcript's usage is counted for.
struct UsageOrigin {
  std::uint32_t rank = 0;  // a message of several transcripts belongs to the one with the lowest rank
  std::string program, session, project;
  bool is_subagent = false;
};

/// The sums of a group of messages.
struct UsageSums {
  Usage tokens;
  std::uint64_t messages = 0;
  double recorded_usd = 0, estimated_usd = 0;
  bool has_recorded = false, has_estimate = false;
  std::uint64_t unpriced_tokens = 0;  // of models without a price, and without a recorded cost

  /// Without the cost of unpriced tokens. Absent: nothing is recorded or estimated.
  std::optional<double> cost_usd() const;
  /// `recorded`, `estimated` or `mixed`; empty without a cost.
  std::string_view cost_source() const;
  void add(const UsageSums& more);
};

/// Counts each message once. Transcripts may be added by several threads; the result does not depend on their
/// order.
class UsageLedger {
 public:
  static constexpr std::size_t messages_max = 4 << 20;  // of some 90 bytes each

  /// `prices` must outlive this. Beyond `messages_limit` the ids of messages are not kept, so that their
  /// copies count again, and what a session used within a quarter of an hour is one message.
  explicit UsageLedger(const ModelTable& prices, std::size_t messages_limit = messages_max)
      : prices_(prices), messages_limit_(messages_limit) {}

  NameTable& models() { return models_; }
  void add(const UsageOrigin& origin, const UsageSink& usage);

  struct Session {
    std::string program, id, project;
  };
  struct Item {
    const Session& session;
    std::string_view model;
    std::int64_t time_ms;  // 0: unknown
    UsageSums sums;
  };
  /// Once all transcripts were added: calls `visit(const Item&)` for each message with a time of at
  /// least `since_ms`, or for all.
  template <class Visit>
  void for_each(std::optional<std::int64_t> since_ms, Visit&& visit) {
    finish();
    for (const Stored& each : stored_) {
      if (since_ms && each.time_ms < *since_ms) continue;
      visit(Item{sessions_[each.session], models_.name(each.model), each.time_ms, sums_of(each)});
    }
  }

  std::uint64_t copies() const { return copies_; }  // of messages that are in another transcript, too
  bool is_full() const { return is_full_; }

 private:
  struct Stored {
    Usage tokens;
    std::int64_t time_ms = 0;
    double recorded_usd = 0;
    std::uint32_t model = 0, rank = 0, session = 0;
    bool is_subagent = false;
    bool is_covered = false;  // by the cost of its session
  };
  /// The recorded cost of a session is divided among the messages that it covers by their estimated costs; by
  /// their tokens if one has no price.
  struct Covered {
    std::uint32_t rank = 0;
    double usd = 0, estimate = 0;
    std::int64_t time_ms = 0;
    std::uint64_t tokens = 0;
    bool is_priced = true;
  };
  struct Known : Session {
    std::optional<std::pair<bool, std::uint32_t>> project_from;  // is_subagent and rank of its transcript
    std::optional<Covered> cost;
  };

  std::uint32_t session_number(const UsageOrigin& origin);
  void store(const UsageEntry& entry, const Stored& stored);
  void store_beyond_limit(const Stored& stored);
  void merge(Stored& known, const Stored& copy);
  void cover(Covered& cost, std::uint32_t model, const Usage& tokens);
  const Price* price_of(std::uint32_t model);
  void finish();
  UsageSums sums_of(const Stored& stored);

  const ModelTable& prices_;
  const std::size_t messages_limit_;
  NameTable models_;
  std::mutex mutex_;
  std::deque<Stored> stored_;
  HashMap<std::uint32_t> by_key_;  // index into stored_
  std::deque<Known> sessions_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> session_numbers_;  // by program and id
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int64_t, bool>, std::uint32_t> beyond_limit_;
  std::vector<std::optional<const Price*>> model_prices_;  // by model
  std::uint64_t copies_ = 0;
  bool is_full_ = false, is_finished_ = false;
};

}  // namespace earshot::cli
