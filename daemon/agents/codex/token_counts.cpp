#include "agents/codex/token_counts.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "agents/codex/items.hpp"
#include "base/quantities.hpp"

namespace earshot::codex {
namespace {

std::uint64_t less(std::uint64_t total, std::uint64_t part) { return total > part ? total - part : 0; }

// `input_tokens` includes what the cache gave.
Usage usage_of(const Value& json) {
  const auto count = [&](std::string_view key) { return json.count_of(key).value_or(0); };
  const std::uint64_t read = count("cached_input_tokens"), write = count("cache_write_input_tokens");
  return {less(less(count("input_tokens"), read), write), count("output_tokens"), read, write};
}

constexpr std::int64_t seconds_max = 253'402'300'800;  // the year 10000

std::string time_of(std::int64_t seconds) {
  std::string time = format_time(seconds * 1000);
  if (const std::size_t point = time.find(".000Z"); point != time.npos) time.replace(point, 5, "Z");
  return time;
}

}  // namespace

void TokenCounts::read(const Value& body, bool is_copied, Assembler& to) {
  read_usage(body.member("info"), is_copied, to);
  if (const Value limits = body.member("rate_limits"); limits.is_object() && !is_copied)
    read_limit(limits, to);
}

void TokenCounts::read_record(const Value& record, bool is_copied, Assembler& to) {
  const Value used = record.member("usage"), total = record.member("thread_token_usage");
  event::UsageUpdated usage;
  usage.of_message = usage_of(used);
  if (usage.of_message == Usage{}) return;
  has_records_ = is_recorded_ = true;
  StreamState& state = to.mutable_state();
  usage.message = record.text_of("response_id");
  usage.model = state.model;
  usage.reasoning = used.count_of("reasoning_output_tokens");
  usage.context_tokens = used.count_of("total_tokens");
  if (usage.context_tokens) state.context_tokens = context_ = *usage.context_tokens;
  Usage more = *usage.of_message;
  if (!is_copied) more = state.used.add(to.request_id(usage.message), state.model, more).more;
  if (total.is_object())
    state.usage = usage_of(total);
  else
    state.usage += more;
  usage.total = state.usage;
  if (!is_copied && more != Usage{}) to.emit(usage);
}

void TokenCounts::read_usage(const Value& info, bool is_copied, Assembler& to) {
  const Value total = info.member("total_token_usage"), last = info.member("last_token_usage");
  if (!total.is_object() && !last.is_object()) return;
  event::UsageUpdated usage;
  StreamState& state = to.mutable_state();
  const Usage stated = usage_of(total);
  if (last.is_object()) {
    usage.of_message = usage_of(last);
    usage.reasoning = last.count_of("reasoning_output_tokens");
    usage.context_tokens = last.count_of("total_tokens");
  }
  usage.context_window = info.count_of("model_context_window");
  if (usage.context_window) state.context_window = usage.context_window;
  // A request that did not fit: zeros, but for the window as the total
  // (TokenUsageInfo::fill_to_context_window).
  const bool is_full = total.is_object() && stated == Usage{} && usage.context_window &&
                       total.count_of("total_tokens") == usage.context_window;
  if (is_full) usage.context_tokens = usage.context_window;
  const bool is_context_new = usage.context_tokens.value_or(context_) != context_;
  if (usage.context_tokens) state.context_tokens = context_ = *usage.context_tokens;
  const bool is_repeated = has_records_ && (stated == counted_ || std::exchange(is_recorded_, false));
  if (total.is_object()) {
    const Usage more = account(stated, usage.of_message);
    if (!has_records_)
      state.usage = stated;
    else if (!is_repeated)
      state.usage += more;
    if (!is_repeated && more != Usage{} && !is_copied) state.used.add(0, state.model, more);
  }
  usage.total = state.usage;
  usage.model = state.model;
  const Counts now{usage.total, usage.of_message, usage.reasoning, usage.context_tokens,
                   usage.context_window};
  const bool is_window_new = !counts_ || counts_->window != now.window;
  const bool is_new = is_repeated ? is_context_new || is_window_new : counts_ != now;
  counts_ = now;
  if (is_repeated) usage.of_message.reset(), usage.reasoning.reset();
  if (is_new && !is_copied) to.emit(usage);
}

/// What a total adds to those before. One that is that of the message has begun anew, as in each process that
/// resumes a session in versions up to 0.77. Another one that falls was written late, and adds nothing. A
/// fork's first total includes its parent's.
Usage TokenCounts::account(const Usage& total, const std::optional<Usage>& message) {
  const bool fell = std::any_of(std::begin(usage_counts), std::end(usage_counts),
                                [&](const auto count) { return total.*count < counted_.*count; });
  const bool begins = message == total;
  const bool is_anew = begins && total != counted_ && total != first_;
  if (fell && message && !is_anew) return {};
  Usage more = total;
  if (is_anew || fell || (counted_ == Usage{} && message))
    more = message.value_or(Usage{});
  else
    more -= counted_;
  if (begins) first_ = total;
  counted_ = total;
  return more;
}

void TokenCounts::read_limit(const Value& json, Assembler& to) {
  Limit now;
  now.plan = Assembler::short_id(json.text_of("plan_type"));
  now.reached = Assembler::short_id(word_of(json.member("rate_limit_reached_type")));
  for (const std::string_view name : {"primary", "secondary"}) {
    const Value window = json.member(name);
    if (!window.is_object()) continue;
    LimitWindow& one = now.windows.emplace_back();
    one.name = name;
    one.used_percent = window.member("used_percent").as_double();
    one.window_minutes = window.int_of("window_minutes");
    std::optional<std::int64_t> resets = window.int_of("resets_at");
    if (!resets) resets = window.int_of("reset_at");
    if (const auto in = window.int_of("resets_in_seconds");
        !resets && in && to.time_ms() && *in > -seconds_max && *in < seconds_max)
      resets = to.time_ms() / 1000 + *in;
    const bool is_time = resets && *resets > 0 && *resets < seconds_max;
    now.resets.push_back(is_time ? *resets : 0);
    if (is_time) one.resets_at = time_of(*resets);
  }
  const std::string name(Assembler::short_id(json.text_of("limit_id")));
  const auto known = limits_.find(name);
  if (known != limits_.end() && is_same(known->second, now)) return;
  if (now.windows.empty() && now.reached.empty() && now.plan.empty()) return;
  if (known == limits_.end() && limits_.size() >= limits_max) return;
  limits_[name] = now;
  to.emit(event::LimitsUpdated{name, now.plan, now.reached, now.windows});
}

bool TokenCounts::is_same(const Limit& one, const Limit& other) {
  if (one.plan != other.plan || one.reached != other.reached || one.windows.size() != other.windows.size())
    return false;
  for (std::size_t n = 0; n < one.windows.size(); ++n) {
    const LimitWindow &a = one.windows[n], &b = other.windows[n];
    if (a.name != b.name || a.used_percent != b.used_percent || a.window_minutes != b.window_minutes ||
        std::abs(one.resets[n] - other.resets[n]) > drift_seconds_max)
      return false;
  }
  return true;
}

}  // namespace earshot::codex
