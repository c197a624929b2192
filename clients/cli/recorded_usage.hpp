// What transcripts record about tokens and cost, each request counted once: the data of `earshot usage`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/stream_usage.hpp"
#include "models/model_table.hpp"
#include "models/session_cost.hpp"
#include "models/usage_ledger.hpp"

namespace earshot::cli {

/// What one transcript used, and for what it is counted.
struct TranscriptUsage {
  std::uint32_t rank = 0;  // a request of several transcripts belongs to the one with the lowest rank
  std::string program, session, project;
  bool is_subagent = false;
  StreamUsage used;
  // For programs that record the session's cost so far, subagents included.
  std::optional<double> total_usd;
  std::int64_t total_ms = 0;  // the newest time before that record
};

/// The sums of a group of requests.
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

/// Transcripts may be added by several threads; the result does not depend on their order.
class RecordedUsage {
 public:
  static constexpr std::size_t requests_max = 4 << 20;  // of some 60 bytes each

  /// `prices` must outlive this. Transcripts that are added beyond `requests_limit` are kept as sums by
  /// quarter of an hour, and their copies count again.
  explicit RecordedUsage(const ModelTable& prices, std::size_t requests_limit = requests_max)
      : prices_(prices), requests_limit_(requests_limit), ledger_(requests_limit) {}

  void add(TranscriptUsage usage);

  struct Session {
    std::string program, id, project;
  };
  struct Item {
    const Session& session;
    const std::string& model;  // one object per model and transcript
    std::int64_t time_ms;      // 0: unknown
    UsageSums sums;
  };
  /// Once all transcripts were added: calls `visit(const Item&)` for each request with a time of at least
  /// `since_ms`, or for all.
  template <class Visit>
  void for_each(std::optional<std::int64_t> since_ms, Visit&& visit) {
    finish();
    copies_ = 0;
    for (const Stored& stored : stored_) {
      stored.used.for_each([&](std::uint64_t id, const StreamUsage::Request& request) {
        constexpr std::int64_t second_ms = 1000;  // times are cut to it
        if (request.tokens == Usage{} && request.recorded_usd == 0) return;
        if (!ledger_.counts(stored.account, id, request))
          ++copies_;
        else if (!since_ms || request.time_ms + second_ms > *since_ms)
          visit(Item{sessions_[stored.number], model_of(stored, request), request.time_ms,
                     sums_of(stored, request)});
      });
    }
  }

  std::uint64_t copies() const { return copies_; }  // of requests that are in another transcript, too
  bool is_full() const { return is_full_; }

 private:
  struct Stored : TranscriptUsage {
    std::vector<const Price*> prices;  // of its models; null: none
    std::size_t number = 0;            // of its session
    UsageLedger::Account account = 0;
  };
  /// The recorded cost of a session, divided among the requests that it covers.
  struct Total {
    std::uint32_t rank = 0;
    double usd = 0;
    std::int64_t time_ms = 0;
    CostWeight counted = {}, all = {};
    double counted_usd = 0;  // of `usd`, for `counted`
  };
  struct Known : Session {
    std::optional<std::pair<bool, std::uint32_t>> project_from;  // is_subagent and rank of its transcript
    std::optional<Total> total;
  };

  static const std::string& model_of(const Stored& stored, const StreamUsage::Request& request);
  std::size_t session_number(const TranscriptUsage& usage);
  bool is_covered(const Stored& stored, const StreamUsage::Request& request) const;
  void finish();
  UsageSums sums_of(const Stored& stored, const StreamUsage::Request& request) const;

  const ModelTable& prices_;
  const std::size_t requests_limit_;
  std::mutex mutex_;
  UsageLedger ledger_;
  std::deque<Stored> stored_;
  std::deque<Known> sessions_;
  std::map<std::pair<std::string, std::string>, std::size_t> session_numbers_;  // by program and id
  std::size_t requests_ = 0;
  std::uint64_t copies_ = 0;
  bool is_full_ = false, is_finished_ = false;
};

}  // namespace earshot::cli
