#include "cli/usage_ledger.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

#include "base/text.hpp"

namespace earshot::cli {
namespace {

constexpr std::uint64_t Usage::*const counts[] = {&Usage::input, &Usage::output, &Usage::cache_read,
                                                  &Usage::cache_write, &Usage::cache_write_1h};

void raise_tokens(Usage& tokens, const Usage& other) {
  for (const auto count : counts) tokens.*count = std::max(tokens.*count, other.*count);
}

std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::uint64_t hash(std::uint64_t number, std::uint64_t seed) {
  return XXH3_64bits_withSeed(&number, sizeof number, seed);
}

}  // namespace

void add_tokens(Usage& sum, const Usage& more) {
  for (const auto count : counts) sum.*count += more.*count;
}

std::uint64_t total_tokens(const Usage& usage) {
  return usage.input + usage.output + usage.cache_read + usage.cache_write;
}

std::uint32_t NameTable::number(std::string_view name) {
  name = cut_utf8(name, name_bytes_max);
  const std::lock_guard lock(mutex_);
  auto found = numbers_.find(name);
  if (found == numbers_.end() && names_.size() >= names_max) found = numbers_.find(name = "(other)");
  if (found == numbers_.end()) {
    found = numbers_.emplace(std::string(name), static_cast<std::uint32_t>(names_.size())).first;
    names_.push_back(&found->first);
  }
  return found->second;
}

const std::string& NameTable::name(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  return *names_[number];
}

// --- One transcript ---

void UsageSink::begin(std::string_view program, std::uint64_t scope) {
  seed_ = hash(program, 0);
  scope_ = scope;
  entries_.clear();
  by_key_ = {};
  total_ = {};
  cost_total_ = 0;
  last_ms_ = 0;
  session_cost_.reset();
  model_.clear();
  model_number_.reset();
}

void UsageSink::on_event(const Event& event) {
  last_ms_ = std::max(last_ms_, event.time_ms);
  const auto* const updated = std::get_if<event::UsageUpdated>(&event.body);
  if (updated == nullptr) return;
  const Usage used = increment(*updated);
  double usd = 0;
  if (updated->cost_usd) {
    if (updated->message.empty())
      session_cost_ = {*updated->cost_usd, last_ms_, entries_.size()};
    else
      usd = std::max(0.0, *updated->cost_usd - cost_total_);
    cost_total_ = *updated->cost_usd;
  }
  if (used == Usage{} && usd == 0) return;
  // A record without a time has that of the records before it.
  const std::int64_t time_ms = event.time_ms ? event.time_ms : last_ms_;
  UsageEntry entry{key_of(updated->message, time_ms), model_number(updated->model), time_ms, used, usd};
  if (entry.key == 0) {
    entries_.push_back(entry);
    return;
  }
  bool is_new = false;
  const std::uint32_t index = by_key_.insert(entry.key, static_cast<std::uint32_t>(entries_.size()), is_new);
  if (is_new) {
    entries_.push_back(entry);
  } else {
    add_tokens(entries_[index].tokens, used);
    entries_[index].recorded_usd += usd;
  }
}

// What the stream used since the last event.
Usage UsageSink::increment(const event::UsageUpdated& updated) {
  const bool has_changed = updated.total != total_, has_totals = updated.total != Usage{};
  Usage grown;
  for (const auto count : counts)
    grown.*count = std::max(updated.total.*count, total_.*count) - total_.*count;
  total_ = updated.total;
  // The totals of a stream that continues another one may begin with those of the other one.
  if (updated.message.empty() && updated.of_message)
    return has_changed || !has_totals ? *updated.of_message : Usage{};
  return grown;
}

// 0: the message has no id.
std::uint64_t UsageSink::key_of(std::string_view message, std::int64_t time_ms) const {
  if (message.empty()) return 0;
  std::uint64_t seed = seed_;
  if (message.front() == '@')  // the place of its line in the file
    seed = hash(scope_, seed);
  else if (message.size() < short_id_bytes)
    seed = hash(static_cast<std::uint64_t>(time_ms), seed);
  return std::max<std::uint64_t>(1, hash(message, seed));
}

// A record that names no model is counted for the one before it.
std::uint32_t UsageSink::model_number(std::string_view model) {
  if (!model_number_ || (!model.empty() && model_ != model)) {
    if (!model.empty()) model_ = model;
    model_number_ = models_.number(model_.empty() ? "(unknown)" : model_);
  }
  return *model_number_;
}

// --- Sums ---

std::optional<double> UsageSums::cost_usd() const {
  if (!has_recorded && !has_estimate) return std::nullopt;
  return recorded_usd + estimated_usd;
}

std::string_view UsageSums::cost_source() const {
  if (has_recorded && has_estimate) return "mixed";
  return has_recorded ? "recorded" : has_estimate ? "estimated" : "";
}

void UsageSums::add(const UsageSums& more) {
  add_tokens(tokens, more.tokens);
  messages += more.messages;
  recorded_usd += more.recorded_usd;
  estimated_usd += more.estimated_usd;
  has_recorded |= more.has_recorded;
  has_estimate |= more.has_estimate;
  unpriced_tokens += more.unpriced_tokens;
}

// --- All transcripts ---

void UsageLedger::add(const UsageOrigin& origin, const UsageSink& usage) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t session = session_number(origin);
  const auto& cost = usage.session_cost();
  std::optional<Covered>& known = sessions_[session].cost;
  const bool sets_cost =
      cost && cost->usd > 0 && !origin.is_subagent && (!known || origin.rank < known->rank);
  if (sets_cost)
    known = Covered{.rank = origin.rank, .usd = cost->usd, .estimate = 0, .time_ms = cost->time_ms};
  std::size_t index = 0;
  for (const UsageEntry& entry : usage.entries()) {
    const bool is_covered = cost && cost->usd > 0 && !origin.is_subagent && index < cost->entries;
    ++index;
    if (is_covered && sets_cost) cover(*known, entry.model, entry.tokens);
    store(entry, {entry.tokens, entry.time_ms, entry.recorded_usd, entry.model, origin.rank, session,
                  origin.is_subagent, is_covered});
  }
}

std::uint32_t UsageLedger::session_number(const UsageOrigin& origin) {
  const auto [found, is_new] = session_numbers_.try_emplace({origin.program, origin.session},
                                                            static_cast<std::uint32_t>(sessions_.size()));
  if (is_new) {
    Known& added = sessions_.emplace_back();
    added.program = origin.program;
    added.id = origin.session;
  }
  // The project is that of the main transcript: a subagent may work in another directory.
  Known& session = sessions_[found->second];
  const std::pair from(origin.is_subagent, origin.rank);
  if (!origin.project.empty() && (!session.project_from || from < *session.project_from)) {
    session.project = origin.project;
    session.project_from = from;
  }
  return found->second;
}

void UsageLedger::store(const UsageEntry& entry, const Stored& stored) {
  if (entry.key != 0) {
    if (const std::uint32_t* const known = by_key_.find(entry.key)) {
      ++copies_;
      return merge(stored_[*known], stored);
    }
  }
  if (stored_.size() >= messages_limit_) {
    is_full_ = true;
    return store_beyond_limit(stored);
  }
  if (entry.key != 0) {
    bool is_new = false;
    by_key_.insert(entry.key, static_cast<std::uint32_t>(stored_.size()), is_new);
  }
  stored_.push_back(stored);
}

void UsageLedger::store_beyond_limit(const Stored& stored) {
  constexpr std::int64_t quarter_hour_ms = 15 * 60 * 1000;
  const auto [found, is_new] = beyond_limit_.try_emplace(
      {stored.session, stored.model, stored.time_ms / quarter_hour_ms, stored.is_covered},
      static_cast<std::uint32_t>(stored_.size()));
  if (is_new) return stored_.push_back(stored);
  add_tokens(stored_[found->second].tokens, stored.tokens);
  stored_[found->second].recorded_usd += stored.recorded_usd;
}

void UsageLedger::merge(Stored& known, const Stored& copy) {
  const Stored before = known;
  if (copy.rank < known.rank) known = copy;
  known.tokens = before.tokens;
  raise_tokens(known.tokens, copy.tokens);
  known.recorded_usd = std::max(before.recorded_usd, copy.recorded_usd);
  known.time_ms = before.time_ms && copy.time_ms ? std::min(before.time_ms, copy.time_ms)
                                                 : std::max(before.time_ms, copy.time_ms);
}

void UsageLedger::cover(Covered& cost, std::uint32_t model, const Usage& tokens) {
  cost.tokens += total_tokens(tokens);
  const Price* const price = price_of(model);
  if (price != nullptr)
    cost.estimate += earshot::cost_usd(*price, tokens);
  else
    cost.is_priced = cost.is_priced && total_tokens(tokens) == 0;
}

const Price* UsageLedger::price_of(std::uint32_t model) {
  if (model >= model_prices_.size()) model_prices_.resize(model + 1);
  std::optional<const Price*>& known = model_prices_[model];
  if (!known) known = prices_.price(models_.name(model));
  return *known;
}

// The cost of a session covers what its subagents used until it was recorded.
void UsageLedger::finish() {
  if (is_finished_) return;
  is_finished_ = true;
  for (Stored& each : stored_) {
    std::optional<Covered>& cost = sessions_[each.session].cost;
    if (!each.is_subagent || !cost || each.time_ms > cost->time_ms) continue;
    each.is_covered = true;
    cover(*cost, each.model, each.tokens);
  }
}

UsageSums UsageLedger::sums_of(const Stored& stored) {
  UsageSums sums{.tokens = stored.tokens, .messages = 1};
  const std::optional<Covered>& cost = sessions_[stored.session].cost;
  const Price* const price = price_of(stored.model);
  const std::uint64_t tokens = total_tokens(stored.tokens);
  if (stored.recorded_usd > 0) {
    sums.recorded_usd = stored.recorded_usd;
    sums.has_recorded = true;
  } else if (stored.is_covered && cost && cost->tokens > 0) {
    const double share = price != nullptr && cost->is_priced && cost->estimate > 0
                             ? earshot::cost_usd(*price, stored.tokens) / cost->estimate
                             : static_cast<double>(tokens) / static_cast<double>(cost->tokens);
    sums.recorded_usd = cost->usd * share;
    sums.has_recorded = true;
  } else if (price != nullptr) {
    sums.estimated_usd = earshot::cost_usd(*price, stored.tokens);
    sums.has_estimate = tokens > 0;
  } else {
    sums.unpriced_tokens = tokens;
  }
  return sums;
}

}  // namespace earshot::cli
