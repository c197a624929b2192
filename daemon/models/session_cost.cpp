#include "models/session_cost.hpp"

#include <algorithm>

namespace earshot {
namespace {

/// Whether a total that another stream recorded at `total_ms` includes this stream: a program's own total
/// includes its subagents. Of a stream that began before it and continues, the rest is included in the next
/// total.
bool is_covered(const StreamCost& stream, std::int64_t total_ms) {
  if (!total_ms || stream.total_ms || stream.is_later) return false;
  return stream.last_activity_ms <= total_ms || stream.turn > 1 || stream.turn_started_ms <= total_ms;
}

/// What a recorded total covers, for shares of it: by estimated costs, by tokens if one has no price.
struct Covered {
  void add(std::span<const ModelUsage> models, const ModelTable& table) {
    for (const ModelUsage& each : models) {
      Usage used = each.all.usage;
      used -= each.all.without_cost;
      const Price* const price = table.price(each.model);
      tokens += static_cast<double>(total_tokens(used));
      if (price)
        usd += cost_usd(*price, used);
      else
        is_priced &= used == Usage{};
    }
  }
  double tokens = 0, usd = 0;
  bool is_priced = true;
};

/// The share of a stream's total that does not count for others: a fork's includes what it repeats.
double counted_share(const StreamCost& total, const ModelTable& models) {
  if (total.all.empty()) return 1;
  Covered counted, all;
  counted.add(total.models, models);
  all.add(total.all, models);
  if (all.is_priced && all.usd > 0) return counted.usd / all.usd;
  return all.tokens > 0 ? counted.tokens / all.tokens : 1;
}

}  // namespace

StreamCost stream_cost(const StreamState& state, std::span<const ModelUsage> models) {
  std::optional<double> usd = state.cost_usd;
  if (usd && state.cost_total_ms == 0) {
    usd = 0;
    for (const ModelUsage& each : models) *usd += each.all.recorded_usd;
  }
  const std::vector<ModelUsage>& all = state.used.models();
  const bool is_all = models.data() == all.data();
  return {.recorded_usd = usd,
          .total_ms = state.cost_total_ms,
          .last_activity_ms = state.last_activity_ms,
          .turn_started_ms = state.turn_started_ms,
          .turn = state.turn,
          .models = models,
          .all = is_all ? std::span<const ModelUsage>() : all};
}

void CostSum::estimate(std::string_view model, const Usage& tokens, const ModelTable& models) {
  if (tokens == Usage{}) return;
  const Price* price = models.price(model);
  // Some versions of a program record the output only.
  const bool is_partial = tokens.input + tokens.cache_read + tokens.cache_write == 0;
  is_complete_ &= price && !is_partial;
  if (price) estimated_ += cost_usd(*price, tokens);
  has_estimate_ = true;
}

std::optional<Cost> CostSum::cost() const {
  if (recorded_ < 0) return std::nullopt;
  if (has_estimate_ && is_complete_)
    return Cost{recorded_ + estimated_, has_recorded_ ? "mixed" : "estimated"};
  if (has_recorded_) return Cost{recorded_, "recorded"};
  return std::nullopt;
}

std::optional<Cost> session_cost(std::span<const StreamCost> streams, const ModelTable& models) {
  CostSum sum;
  std::int64_t total_ms = 0;
  for (const StreamCost& stream : streams) total_ms = std::max(total_ms, stream.total_ms);
  for (const StreamCost& stream : streams) {
    const double share = stream.total_ms ? counted_share(stream, models) : 1;
    if (stream.recorded_usd) sum.record(*stream.recorded_usd * share);
    if (is_covered(stream, total_ms)) continue;
    for (const ModelUsage& each : stream.models) sum.estimate(each.model, each.all.without_cost, models);
  }
  return sum.cost();
}

}  // namespace earshot
