#include "cli/recorded_usage.hpp"

namespace earshot::cli {

std::optional<double> UsageSums::cost_usd() const {
  if (!has_recorded && !has_estimate) return std::nullopt;
  return recorded_usd + estimated_usd;
}

std::string_view UsageSums::cost_source() const {
  if (has_recorded && has_estimate) return "mixed";
  return has_recorded ? "recorded" : has_estimate ? "estimated" : "";
}

void UsageSums::add(const UsageSums& more) {
  tokens += more.tokens;
  messages += more.messages;
  recorded_usd += more.recorded_usd;
  estimated_usd += more.estimated_usd;
  has_recorded |= more.has_recorded;
  has_estimate |= more.has_estimate;
  unpriced_tokens += more.unpriced_tokens;
}

void RecordedUsage::add(TranscriptUsage usage) {
  const std::lock_guard lock(mutex_);
  if (requests_ + usage.used.size() > requests_limit_) {
    is_full_ = true;
    usage.used.forget_ids();
  }
  requests_ += usage.used.size();
  const std::size_t number = session_number(usage);
  Stored& stored = stored_.emplace_back();
  static_cast<TranscriptUsage&>(stored) = std::move(usage);
  stored.number = number;
  for (const ModelUsage& each : stored.used.models()) stored.prices.push_back(prices_.price(each.model));
  stored.account = ledger_.open([&stored] { return &stored.used; }, {stored.rank, {}});
}

std::size_t RecordedUsage::session_number(const TranscriptUsage& usage) {
  const auto [found, is_new] = session_numbers_.try_emplace({usage.program, usage.session}, sessions_.size());
  if (is_new) {
    Known& added = sessions_.emplace_back();
    added.program = usage.program;
    added.id = usage.session;
  }
  // The project is that of the main transcript: a subagent may work in another directory.
  Known& session = sessions_[found->second];
  const std::pair from(usage.is_subagent, usage.rank);
  if (!usage.project.empty() && (!session.project_from || from < *session.project_from)) {
    session.project = usage.project;
    session.project_from = from;
  }
  std::optional<Total>& total = session.total;
  if (usage.total_usd.value_or(0) > 0 && !usage.is_subagent && (!total || usage.rank < total->rank))
    total = Total{.rank = usage.rank, .usd = *usage.total_usd, .time_ms = usage.total_ms};
  return found->second;
}

const std::string& RecordedUsage::model_of(const Stored& stored, const StreamUsage::Request& request) {
  static const std::string unknown = "(unknown)";
  const std::string& model = stored.used.models()[request.model].model;
  return model.empty() ? unknown : model;
}

/// The cost of a session covers what its subagents used until it was recorded.
bool RecordedUsage::is_covered(const Stored& stored, const StreamUsage::Request& request) const {
  const std::optional<Total>& total = sessions_[stored.number].total;
  if (!total || request.has_cost) return false;
  return stored.is_subagent ? request.time_ms <= total->time_ms
                            : request.is_covered && stored.rank == total->rank;
}

void RecordedUsage::finish() {
  if (std::exchange(is_finished_, true)) return;
  for (const Stored& stored : stored_) {
    if (!sessions_[stored.number].total) continue;
    Total& total = *sessions_[stored.number].total;
    if (!stored.is_subagent && stored.rank != total.rank) continue;
    stored.used.for_each([&](std::uint64_t id, const StreamUsage::Request& request) {
      if (!is_covered(stored, request)) return;
      total.all.add(stored.prices[request.model], request.tokens);
      if (ledger_.counts(stored.account, id, request))
        total.counted.add(stored.prices[request.model], request.tokens);
    });
  }
  for (Known& session : sessions_)
    if (std::optional<Total>& total = session.total)
      total->counted_usd = counted_part(total->usd, total->counted, total->all);
}

UsageSums RecordedUsage::sums_of(const Stored& stored, const StreamUsage::Request& request) const {
  UsageSums sums{.tokens = request.tokens, .messages = request.count};
  const std::optional<Total>& total = sessions_[stored.number].total;
  const Price* const price = stored.prices[request.model];
  const std::uint64_t tokens = total_tokens(request.tokens);
  if (request.has_cost) {
    sums.recorded_usd = request.recorded_usd;
    sums.has_recorded = true;
  } else if (is_covered(stored, request) && total->all.tokens > 0) {
    CostWeight weight;
    weight.add(price, request.tokens);
    sums.recorded_usd = total->counted_usd * total->counted.share(weight);
    sums.has_recorded = true;
  } else if (price) {
    sums.estimated_usd = earshot::cost_usd(*price, request.tokens);
    sums.has_estimate = tokens > 0;
  } else {
    sums.unpriced_tokens = tokens;
  }
  return sums;
}

}  // namespace earshot::cli
