#include "models/usage_ledger.hpp"

#include <algorithm>
#include <limits>

namespace earshot {
namespace {

std::uint32_t short_total(const Usage& tokens) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(total_tokens(tokens), most));
}

}  // namespace

const StreamUsage& UsageLedger::usage_of(const Entry& entry) {
  static const StreamUsage nothing;
  const StreamUsage* const usage = entry.source();
  return usage ? *usage : nothing;
}

UsageLedger::Account UsageLedger::open(Source source, Origin origin, Changed changed) {
  const Account account = ++last_;
  Entry& entry = entries_[account];
  entry.source = std::move(source);
  entry.origin = std::move(origin);
  entry.changed = std::move(changed);
  usage_of(entry).for_each([&](std::uint64_t id, const StreamUsage::Request& request) {
    if (!counts(account, id, request)) entry.has_copies = entry.is_stale = true;
  });
  return account;
}

Usage UsageLedger::update(Account account, const StreamUsage::Grown& grown) {
  Entry& entry = entries_.at(account);
  const auto request = grown.id ? usage_of(entry).find(grown.id) : std::nullopt;
  if (!request) return grown.more;
  const std::uint32_t before = known(grown.id).tokens;
  if (!counts(account, grown.id, *request)) entry.has_copies = entry.is_stale = true;
  const std::uint64_t now = short_total(request->tokens), fresh = now > before ? now - before : 0;
  // What was counted before comes first: a request grows by its output.
  std::uint64_t earlier = total_tokens(grown.more) - std::min(total_tokens(grown.more), fresh);
  Usage more = grown.more;
  for (const auto count : {&Usage::input, &Usage::cache_read, &Usage::cache_write, &Usage::output}) {
    const std::uint64_t less = std::min(earlier, more.*count);
    more.*count -= less, earlier -= less;
  }
  more.cache_write_1h = std::min(more.cache_write_1h, more.cache_write);
  return more;
}

void UsageLedger::close(Account account) {
  const bool was_copied = entries_.at(account).is_copied;
  entries_.erase(account);
  if (!was_copied) return;
  ++closed_;
  for (auto& [other, entry] : entries_)
    if (entry.has_copies) entry.changed();
}

UsageLedger::Known& UsageLedger::known(std::uint64_t id) {
  if (Known* const found = known_.find(id)) return *found;
  if (known_.size() >= limit_) earlier_ = std::exchange(known_, {});
  const Known* const earlier = earlier_.find(id);
  bool is_new = false;
  return known_.insert(id, earlier ? *earlier : Known{}, is_new);
}

void UsageLedger::set_stale(Entry& entry) {
  entry.has_copies = entry.is_stale = true;
  entry.changed();
}

bool UsageLedger::counts(Account account, std::uint64_t id, const StreamUsage::Request& request) {
  if (!request.has_id) return true;
  Known& found = known(id);
  found.tokens = std::max(found.tokens, short_total(request.tokens));
  if (found.owner == account) return true;
  const auto other = entries_.find(found.owner);
  if (const auto theirs = other == entries_.end() ? std::nullopt : usage_of(other->second).find(id)) {
    // The less complete copy, and of equal ones the younger, does not count.
    Entry& own = entries_.at(account);
    const std::uint64_t tokens = total_tokens(request.tokens), their_tokens = total_tokens(theirs->tokens);
    if (tokens != their_tokens ? tokens < their_tokens : own.origin > other->second.origin) {
      other->second.is_copied = true;
      return false;
    }
    own.is_stale = own.has_copies;
    own.is_copied = true;
    set_stale(other->second);
  }
  found.owner = account;
  return true;
}

const std::vector<ModelUsage>& UsageLedger::models(Account account) {
  Entry& entry = entries_.at(account);
  const StreamUsage& usage = usage_of(entry);
  if (!entry.has_copies) return usage.models();
  if (std::exchange(entry.is_stale, false) || std::exchange(entry.closed, closed_) != closed_ ||
      entry.day != usage.day() || entry.totals != usage.totals()) {
    entry.has_copies = false;
    entry.day = usage.day();
    entry.totals = usage.totals();
    entry.copied = usage.sums([&](std::uint64_t id, const StreamUsage::Request& request) {
      const bool is_copy = !counts(account, id, request);
      entry.has_copies |= is_copy;
      return is_copy;
    });
  }
  entry.counted = usage.models();
  const auto subtract = [](ModelUsage::Sum& sum, const ModelUsage::Sum& less) {
    sum.usage -= less.usage;
    sum.without_cost -= less.without_cost;
    sum.recorded_usd = std::max(0.0, sum.recorded_usd - less.recorded_usd);
  };
  for (std::size_t n = 0; n < std::min(entry.copied.size(), entry.counted.size()); ++n) {
    subtract(entry.counted[n].all, entry.copied[n].all);
    subtract(entry.counted[n].day, entry.copied[n].day);
  }
  return entry.counted;
}

std::vector<ModelUsage> UsageLedger::models_after(Account account, std::int64_t ms) {
  return usage_of(entries_.at(account)).sums([&](std::uint64_t id, const StreamUsage::Request& request) {
    return request.time_ms > ms && counts(account, id, request);
  });
}

}  // namespace earshot
