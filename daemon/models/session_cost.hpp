// What a session costs: recorded by its program, estimated from tokens and prices, or both.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/stream_state.hpp"
#include "models/model_table.hpp"

namespace earshot {

struct Cost {
  double usd = 0;
  std::string_view source;  // recorded, estimated, mixed
};

/// Recorded and estimated costs of several streams and models.
class CostSum {
 public:
  void record(double usd) {
    recorded_ += usd;
    has_recorded_ = true;
  }
  /// Adds an estimate for tokens that no recorded cost covers.
  void estimate(std::string_view model, const Usage& tokens, const ModelTable& models);
  /// If a model without a price used such tokens, there is no estimate: only what is recorded, or nothing.
  std::optional<Cost> cost() const;

 private:
  double recorded_ = 0, estimated_ = 0;
  bool has_recorded_ = false, has_estimate_ = false, is_complete_ = true;
};

/// What a recorded total covers, to divide it: by estimated costs, or by tokens if any have no price.
struct CostWeight {
  void add(const Price* price, const Usage& used);
  double share(const CostWeight& part) const;
  double usd = 0, tokens = 0;
  bool is_priced = true;
};
/// The part of a total that does not repeat others. A fork's total includes what it repeats in some versions
/// and not in others: the nearer estimate decides.
double counted_part(double total_usd, const CostWeight& counted, const CostWeight& all);

/// What decides it, of one stream.
struct StreamCost {
  std::optional<double> recorded_usd;
  std::int64_t total_ms = 0;  // of the last record before a recorded total of the session; 0: none
  std::int64_t last_activity_ms = 0, turn_started_ms = 0;
  std::uint32_t turn = 0;
  std::span<const ModelUsage> models;    // borrowed: what counts for this stream;
  std::span<const ModelUsage> all = {};  // and all that it used: empty, the same
  bool is_later = false;                 // only of what it used after the session's total
};
/// `models` outlives the result.
StreamCost stream_cost(const StreamState& state, std::span<const ModelUsage> models);

/// Summed over the session's streams, without what they repeat. What a recorded cost covers is not estimated.
std::optional<Cost> session_cost(std::span<const StreamCost> streams, const ModelTable& models);

}  // namespace earshot
