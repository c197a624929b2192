#include "models/session_cost.hpp"

#include <algorithm>
#include <cmath>

namespace earshot {
namespace {

/// Whether a total that another stream recorded at `total_ms` includes this stream: a program's own total
/// includes its subagents. Of a stream that began before it and continues, the rest is included in the next
/// total.
bool is_covered(const StreamCost& stream, std::int64_t total_ms) {
  if (!total_ms || stream.total_ms || stream.is_later) return false;
  return stream.last_activity_ms <= total_ms || stream.turn > 1 || stream.turn_started_ms <= total_ms;
}

}  // namespace

StreamCost stream_cost(const StreamState& state, std::span<const ModelUsage> models) {
  const std::vector<ModelUsage>& all = state.used.models();
  std::optional<double> usd = state.cost_usd;
  if (usd && state.cost_total_ms == 0) {
    usd = 0;
    for (const ModelUsage& each : models) *usd += each.all.recorded_usd;
  }
  const bool is_all = models.data() == all.data();
  return {.recorded_usd = usd,
          .total_ms = state.cost_total_ms,
          .last_activity_ms = state.last_activity_ms,
          .turn_started_ms = state.turn_started_ms,
          .turn = state.turn,
          .models = models,
          .all = is_all ? std::span<const ModelUsage>() : all};
}

void CostWeight::add(const Price* price, const Usage& used) {
  if (price) usd += cost_usd(*price, used);
  tokens += static_cast<double>(total_tokens(used));
  is_priced &= price || used == Usage{};
}

double CostWeight::share(const CostWeight& part) const {
  if (is_priced && usd > 0) return part.usd / usd;
  return tokens > 0 ? part.tokens / tokens : 0;
}

double counted_part(double total_usd, const CostWeight& counted, const CostWeight& all) {
  if (all.tokens == 0) return total_usd;
  if (counted.tokens == 0) return 0;
  if (!all.is_priced || all.usd == 0) return total_usd * all.share(counted);
  const double repeated = all.usd - counted.usd;
  const bool is_own = std::abs(total_usd - counted.usd) < std::abs(total_usd - all.usd);
  return is_own ? total_usd : std::max(0.0, total_usd - repeated);
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
  std::optional<double> total_usd;
  CostWeight counted, all;  // of what the total covers
  for (const StreamCost& stream : streams) total_ms = std::max(total_ms, stream.total_ms);
  for (const StreamCost& stream : streams) {
    const std::span<const ModelUsage> used = stream.all.empty() ? stream.models : stream.all;
    if (stream.total_ms != 0)
      total_usd = total_usd.value_or(0) + stream.recorded_usd.value_or(0);
    else if (stream.recorded_usd)
      sum.record(*stream.recorded_usd);
    const bool is_whole = is_covered(stream, total_ms);
    const auto add = [&](CostWeight& weight, std::span<const ModelUsage> some) {
      if (!is_whole && stream.total_ms == 0) return;
      for (const ModelUsage& each : some) {
        Usage tokens = each.all.usage;
        if (!is_whole) tokens -= each.all.without_cost;
        weight.add(models.price(each.model), tokens);
      }
    };
    add(counted, stream.models);
    add(all, used);
    if (is_whole) continue;
    for (const ModelUsage& each : stream.models) sum.estimate(each.model, each.all.without_cost, models);
  }
  if (total_usd) sum.record(counted_part(*total_usd, counted, all));
  return sum.cost();
}

}  // namespace earshot
