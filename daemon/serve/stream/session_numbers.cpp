#include "serve/stream/session_numbers.hpp"

#include <algorithm>
#include <deque>

#include "base/quantities.hpp"
#include "serve/stream/session_store.hpp"

namespace earshot::serve {
namespace {

bool waits_for_permission(const status::Status& status) {
  return status.source == "registry" && status.state == "waiting" &&
         (status.reason == "permission" || status.reason == "dialog");
}

/// Null: none are known.
const ReportedNumbers* numbers_of_host(const Session& session) {
  return session.reported->is_from_host ? &*session.reported : nullptr;
}

}  // namespace

std::optional<Cost> cost_of(const Session& session, const ModelTable& models) {
  const ReportedNumbers* host = numbers_of_host(session);
  if (host && host->cost_usd) return Cost{*host->cost_usd, host->cost_source};
  std::int64_t total_ms = 0;
  for (const Member& member : session.members)
    if (const StreamState* state = state_of(member.stream))
      total_ms = std::max(total_ms, state->cost_total_ms);
  std::vector<StreamCost> streams;
  std::deque<std::vector<ModelUsage>> later;  // borrowed by `streams`
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state) continue;
    StreamCost& stream = streams.emplace_back(stream_cost(*state, member.used.models()));
    if (total_ms == 0 || state->cost_total_ms != 0 || state->last_activity_ms <= total_ms) continue;
    stream.models = later.emplace_back(member.used.models_after(total_ms));
    stream.is_later = true;
  }
  return session_cost(streams, models);
}

std::optional<DayUsage> day_of(const Session& session, const ModelTable& models) {
  DayUsage used;
  for (const Member& member : session.members)
    if (const StreamState* state = state_of(member.stream))
      if (const LocalDay& day = state->used.day(); day.end > used.day.end) used.day = day;
  if (used.day.end == 0) return std::nullopt;
  CostSum sum;
  bool is_whole = true;  // nothing was used earlier
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state || state->used.models().empty()) continue;
    const std::vector<ModelUsage>& by_model = member.used.models();
    is_whole &= state->used.day() == used.day && !StreamUsage::has_earlier(by_model);
    if (state->used.day() != used.day) continue;
    used.is_partial |= state->used.is_day_partial();
    if (state->cost_usd && state->cost_total_ms == 0) sum.record(0);
    for (const ModelUsage& each : by_model) {
      used.usage += each.day.usage;
      if (each.day.recorded_usd > 0) sum.record(each.day.recorded_usd);
      sum.estimate(each.model, each.day.without_cost, models);
    }
  }
  used.cost = is_whole ? cost_of(session, models) : sum.cost();
  return used;
}

std::optional<std::uint64_t> context_window_of(const Session& session, const ModelTable& models) {
  const ReportedNumbers* host = numbers_of_host(session);
  if (host && host->context_window) return host->context_window;
  const StreamState* main = state_of(session.main());
  if (main && main->context_window) return main->context_window;
  if (session.reported->context_window) return session.reported->context_window;
  if (!main) return std::nullopt;
  return models.context_window(main->model, main->context_tokens);
}

std::optional<TimeSpent> times_of(const Session& session) {
  const ReportedNumbers* host = numbers_of_host(session);
  if (host && host->times) return host->times;
  const StreamState* main = state_of(session.main());
  if (!main || !main->times.is_known()) return std::nullopt;
  std::int64_t until = main->last_activity_ms;
  if (session.status) until = parse_time(session.status->since).value_or(until);
  TimeSpent spent = main->times.until(std::max(until, main->times.answered()));
  const auto move = [](std::int64_t& worked, std::int64_t& waited, std::int64_t ms) {
    ms = std::clamp<std::int64_t>(ms, 0, worked);
    worked -= ms;
    waited += ms;
  };
  move(spent.worked, spent.waited, session.live_waits.waited_ms());
  move(spent.turn_worked, spent.turn_waited, session.live_waits.turn_waited_ms(main->turn));
  return spent;
}

void append_usage_member(JsonWriter& json, const Session& session, const ModelTable& models) {
  Usage sum;
  for (const Member& member : session.members)
    for (const ModelUsage& each : member.used.models()) sum += each.all.usage;
  json.key("usage").begin_object().member("input", sum.input).member("output", sum.output);
  json.member("cache_read", sum.cache_read).member("cache_write", sum.cache_write);
  const StreamState* main = state_of(session.main());
  if (main && main->context_tokens > 0) json.member("context", main->context_tokens);
  if (const auto window = context_window_of(session, models)) json.member("context_window", *window);
  if (const auto cost = cost_of(session, models))
    json.member("cost_usd", cost->usd).member("cost_source", cost->source);
  json.end_object();
}

void append_day_member(JsonWriter& json, const Session& session, const ModelTable& models) {
  const auto used = day_of(session, models);
  if (!used) return;
  const Usage& tokens = used->usage;
  const std::string since = format_time_if_valid(used->day.begin),
                    until = format_time_if_valid(used->day.end);
  if (since.empty() || until.empty()) return;
  json.key("day").begin_object().member("since", since).member("until", until);
  json.member("input", tokens.input).member("output", tokens.output);
  json.member("cache_read", tokens.cache_read).member("cache_write", tokens.cache_write);
  if (used->cost) json.member("cost_usd", used->cost->usd).member("cost_source", used->cost->source);
  if (used->is_partial) json.member("partial", true);
  json.end_object();
}

void append_times_member(JsonWriter& json, const Session& session) {
  if (const auto spent = times_of(session)) append_times_member(json, *spent);
}

void append_times_member(JsonWriter& json, const TimeSpent& spent) {
  json.key("times").begin_object().member("waited_ms", spent.waited).member("worked_ms", spent.worked);
  json.member("idle_ms", spent.idle).key("turn").begin_object();
  json.member("waited_ms", spent.turn_waited).member("worked_ms", spent.turn_worked);
  json.end_object().end_object();
}

void LiveWaits::status_changed(const status::Status* previous, const status::Status& next, std::uint32_t turn,
                               std::int64_t recorded_ms) {
  const bool waits = next.state == "waiting";
  // The same wait for another reason: the record of an answer may precede the status.
  if (previous && status::is_same_wait(*previous, next)) return;
  if (previous && waits_for_permission(*previous)) {
    const auto begin = parse_time(previous->since), end = parse_time(next.since);
    const std::int64_t recorded =
        turn == turn_ ? std::max<std::int64_t>(0, recorded_ms - recorded_before_ms_) : 0;
    const std::int64_t waited_ms = begin && end ? std::max<std::int64_t>(0, *end - *begin - recorded) : 0;
    add_time(waited_ms_, waited_ms);
    add_time(turn_waited_ms_, waited_ms);
  }
  if (!waits) return;
  if (turn != turn_) turn_waited_ms_ = 0;
  turn_ = turn;
  recorded_before_ms_ = recorded_ms;
}

}  // namespace earshot::serve
