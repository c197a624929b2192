#include "models/session_cost.hpp"

#include <algorithm>

namespace earshot {
namespace {

/// Whether a total that another stream recorded at `total_ms` includes this stream: a program's own total
/// includes its subagents. Of a stream that began before it and continues, the rest is included in the next
/// total.
bool is_covered(const StreamCost& stream, std::int64_t total_ms) {
  if (!total_ms || stream.total_ms) return false;
  return stream.last_activity_ms <= total_ms || stream.turn > 1 || stream.turn_started_ms <= total_ms;
}

}  // namespace

StreamCost stream_cost(const StreamState& state) {
  return {state.cost_usd,        state.cost_total_ms, state.last_activity_ms,
          state.turn_started_ms, state.turn,          state.usage_by_model.models()};
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
    if (stream.recorded_usd) sum.record(*stream.recorded_usd);
    if (is_covered(stream, total_ms)) continue;
    for (const ModelUsage& each : stream.models) sum.estimate(each.model, each.without_cost, models);
  }
  return sum.cost();
}

}  // namespace earshot
