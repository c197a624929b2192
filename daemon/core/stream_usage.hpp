// What a stream used: by request, and summed by model, in all and in one day.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/containers.hpp"
#include "base/quantities.hpp"
#include "core/event.hpp"

namespace earshot {

/// The members of Usage. Cache reads and writes are no part of `input`; `cache_write_1h` is one of
/// `cache_write`.
inline constexpr std::uint64_t Usage::*usage_counts[] = {&Usage::input, &Usage::output, &Usage::cache_read,
                                                         &Usage::cache_write, &Usage::cache_write_1h};

inline Usage& operator+=(Usage& sum, const Usage& more) {
  for (const auto count : usage_counts) sum.*count += more.*count;
  return sum;
}
/// No count falls below 0.
inline Usage& operator-=(Usage& sum, const Usage& less) {
  for (const auto count : usage_counts) sum.*count -= std::min(sum.*count, less.*count);
  return sum;
}
/// Cache reads and writes included.
inline std::uint64_t total_tokens(const Usage& usage) {
  return usage.input + usage.output + usage.cache_read + usage.cache_write;
}

struct ModelUsage {
  struct Sum {
    Usage usage;              // all tokens
    Usage without_cost;       // the part of them that no recorded cost covers
    double recorded_usd = 0;  // of requests; a recorded total has no model
    friend bool operator==(const Sum&, const Sum&) = default;
  };
  std::string model;  // empty: not recorded
  Sum all = {};
  /// The part of it in StreamUsage::day(). A recorded total covers nothing of it: which part of the total
  /// belongs to the day is not recorded.
  Sum day = {};
};

class StreamUsage {
 public:
  static constexpr std::size_t models_max = 16;  // further ones are counted as other_models
  static constexpr std::string_view other_models = "(other)";

  /// What one request used. Requests without an id are summed by model and quarter of an hour.
  struct Request {
    Usage tokens;
    double recorded_usd = 0;
    std::int64_t time_ms = 0;  // of its first record, in whole seconds; 0: unknown
    std::uint32_t count = 1;   // of requests that are summed
    std::uint8_t model = 0;    // in models()
    bool has_id = true;        // another stream with this id repeats it
    bool has_cost = false;     // its own cost was recorded
    bool is_covered = false;   // by a recorded total
  };
  struct Grown {
    std::uint64_t id = 0;    // 0: the request has none that counts elsewhere
    std::uint8_t model = 0;  // in models()
    bool has_cost = false;   // `more` needs no estimate
    Usage now, more;
    double more_usd = 0;
  };

  /// Sums of requests without an id end before this second, and others begin.
  void split_sums(std::int64_t ms) { split_s_ = ms / 1000; }
  /// A record begins, of this time in ms since 1970; 0, not known: that of the record before.
  void begin_record(std::int64_t ms) {
    if (ms != 0) time_ms_ = ms;
    grown_.clear();
  }
  /// Raises what a request used: no count falls. `id`: a hash; 0: none, then `used` is added. `usd`: its
  /// recorded cost.
  Grown add(std::uint64_t id, std::string_view model, const Usage& used, std::optional<double> usd = {});
  /// The same without an id, of an unknown time before.
  void add_earlier(std::string_view model, const Usage& used, bool has_cost);
  /// Raises the model's tokens to a total that the records state, by at most `most`. `id`: of the record, as
  /// in add(). Returns what was added.
  Usage raise(std::uint64_t id, std::string_view model, const Usage& total, const Usage& most);
  /// What is added next is a sum over the session: of which day its parts are is not recorded.
  void mark_sum() {
    if (enter_day() && has_earlier(models_)) is_day_partial_ = true;
  }
  /// A recorded total covers everything so far.
  void cover_all();
  std::uint32_t totals() const { return totals_; }  // calls of cover_all() so far

  const std::vector<ModelUsage>& models() const { return models_; }
  Usage total() const {
    Usage sum;
    for (const ModelUsage& each : models_) sum += each.all.usage;
    return sum;
  }
  /// The local day of the latest time at which something was used. Records of an earlier day that follow are
  /// not part of it. `end` is 0: no time is known.
  const LocalDay& day() const { return day_; }
  /// True if a sum of an earlier day, too, was counted for the day.
  bool is_day_partial() const { return is_day_partial_; }
  /// True if something was used before the day.
  static bool has_earlier(const std::vector<ModelUsage>& models) {
    return std::any_of(models.begin(), models.end(), [](const ModelUsage& each) {
      return each.all.usage != each.day.usage || each.all.recorded_usd != each.day.recorded_usd;
    });
  }

  /// What the last record added.
  const std::vector<Grown>& grown() const { return grown_; }
  std::optional<Request> find(std::uint64_t id) const;
  /// Calls `visit(id, const Request&)` for each, in no order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    rows_.for_each([&](std::uint64_t id, const Row& row) { visit(id, request(id, row)); });
  }
  /// The same sums as models(), of the requests for which `is_counted(id, const Request&)` is true.
  template <class IsCounted>
  std::vector<ModelUsage> sums(IsCounted&& is_counted) const {
    std::vector<ModelUsage> sums;
    for (const ModelUsage& each : models_) sums.push_back({each.model});
    for_each([&](std::uint64_t id, const Request& each) {
      if (is_counted(id, each)) add_to_sums(sums[each.model], each);
    });
    return sums;
  }
  std::size_t size() const { return rows_.size(); }
  /// Sums up the requests with ids like those without.
  void forget_ids();
  /// Adds a request to sums over all days.
  static void add_to(ModelUsage::Sum& sum, const Request& request) {
    sum.usage += request.tokens;
    if (!request.has_cost && !request.is_covered) sum.without_cost += request.tokens;
    sum.recorded_usd += request.recorded_usd;
  }
  void fit() { rows_.fit(); }
  std::size_t memory_bytes() const {
    return models_.capacity() * (sizeof(ModelUsage) + 32) + rows_.memory_bytes() + large_->memory_bytes() +
           costs_->memory_bytes();
  }

 private:
  enum Flag : std::uint8_t { no_id = 1, has_cost = 2, covered = 4, kept_1h = 8, is_large = 16 };
  struct Row {
    std::uint32_t input = 0, output = 0, cache_read = 0, cache_write = 0;  // unless it is_large
    std::uint32_t time_s = 0;
    std::uint16_t count = 0;
    std::uint8_t model = 0, flags = 0;
  };

  Request request(std::uint64_t id, const Row& row) const;
  Usage tokens(std::uint64_t id, const Row& row) const;
  void set_tokens(std::uint64_t id, Row& row, const Usage& tokens);
  std::uint64_t id_of_sum(std::uint8_t model, std::int64_t time_ms, bool has_usd) const;
  void add_to_sums(ModelUsage& sums, Request request) const;
  /// True if the present time is in the day, which begins anew with a later one.
  bool enter_day();
  std::uint8_t number_of(std::string_view model);

  std::vector<ModelUsage> models_;
  std::vector<Grown> grown_;
  std::uint8_t last_model_ = 0;
  HashMap<Row> rows_;            // by id
  Rare<HashMap<Usage>> large_;   // of rows with a count that needs more than 32 bits, or a part of a cache
  Rare<HashMap<double>> costs_;  // of rows that have_cost
  std::uint32_t totals_ = 0;     // cover_all() so far
  std::int64_t time_ms_ = 0, split_s_ = 0;
  LocalDay day_;
  bool is_day_partial_ = false;
};

}  // namespace earshot
