#include "serve/http/session_metrics.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

#include "base/quantities.hpp"
#include "base/text.hpp"
#include "serve/stream/frames.hpp"

namespace earshot::serve {
namespace {

struct TokenKind {
  std::string_view name;
  std::uint64_t Usage::*count;
};
constexpr std::array<TokenKind, SessionMetrics::token_kinds_count> token_kinds = {
    {{"input", &Usage::input},
     {"output", &Usage::output},
     {"cache_read", &Usage::cache_read},
     {"cache_write", &Usage::cache_write}}};

bool is_name(std::string_view text) {
  constexpr std::size_t bytes_max = 64;
  constexpr std::string_view characters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@[] ()";
  return !text.empty() && text.size() <= bytes_max && text.find_first_not_of(characters) == text.npos;
}

std::string name_or_other(std::string_view text) {
  return std::string(text.empty() || is_name(text) ? text : SessionMetrics::other);
}

std::string shortened(std::string_view text) {
  constexpr std::size_t bytes_max = 256;
  return std::string(cut_utf8(text, bytes_max));
}

/// The share of the context window that is used; 0: unknown.
double context_ratio(const Session& session, const ModelTable& models) {
  const StreamState* main = state_of(session.main());
  const auto window = context_window_of(session, models);
  if (!main || !window || *window == 0) return 0;
  return static_cast<double>(main->context_tokens) / static_cast<double>(*window);
}

}  // namespace

std::string SessionMetrics::label(Names& known, std::string_view value, std::size_t values_max) {
  if (value.empty()) return {};
  if (!known.contains(value)) {
    if (!is_name(value) || known.size() >= values_max) return std::string(other);
    known.emplace(value);
  }
  return std::string(value);
}

void SessionMetrics::on_added(Session& session, Member& member, const ModelTable& models) {
  if (const Transcript* const transcript = member.stream->transcript())
    member.counted = transcript->used().total();
  forget_earlier(session, models);
}

void SessionMetrics::forget_earlier(Session& session, const ModelTable& models) {
  const auto cost = full_cost_of(session, models);
  session.counted_usd = cost ? cost->usd : 0;
  session.repeated_usd = 0;
}

void SessionMetrics::on_event(Session& session, Member* member, const EventBody& body,
                              const ModelTable& models, std::string_view host) {
  ++events_[body.index()];
  if (const auto* finished = std::get_if<event::ToolFinished>(&body))
    ++tools_[{label(programs_, session.program, programs_max),
              label(outcomes_, finished->outcome, values_max), ""}];
  if (const auto* finished = std::get_if<event::TurnFinished>(&body))
    ++turns_[{label(programs_, session.program, programs_max),
              label(outcomes_, finished->outcome, values_max), ""}];
  const Transcript* const transcript = member ? member->stream->transcript() : nullptr;
  if (!transcript) return;
  session.usage_grew = true;
  const StreamUsage& used = transcript->used();
  Usage fresh = used.total();  // but for a history that was read before
  fresh -= member->counted;
  member->counted += fresh;
  for (const StreamUsage::Grown& grown : used.grown()) {
    Usage more = member->used.update(grown);
    for (const auto count : usage_counts) more.*count = std::min(more.*count, fresh.*count);
    fresh -= more;
    const std::string& model = used.models()[grown.model].model;
    for (const auto& [kind, count] : token_kinds)
      if (more.*count > 0) tokens_of(session.program, model, kind, host) += more.*count;
    Usage repeated = grown.more;
    repeated -= more;
    const bool is_repeated = more == Usage{} && grown.more != Usage{};
    const auto usd_of = [&](const Usage& tokens) { return models.cost_usd(model, tokens).value_or(0); };
    if (is_repeated || !grown.has_cost)
      session.repeated_usd += grown.has_cost ? grown.more_usd : usd_of(repeated);
    if (!is_repeated) session.grown_usd[model] += grown.has_cost ? grown.more_usd : usd_of(more);
  }
}

std::uint64_t& SessionMetrics::tokens_of(std::string_view program, std::string_view model,
                                         std::string_view kind, std::string_view host) {
  return tokens_[{
      label(hosts_, host, hosts_max),
      {label(programs_, program, programs_max), label(models_, model, models_max), std::string(kind)}}];
}

/// Of a session as a whole, divided by what its models cost: a recorded total replaces estimates.
void SessionMetrics::count_cost(Session& session, const ModelTable& models, std::string_view host) {
  if (!std::exchange(session.usage_grew, false)) return;
  const auto cost = full_cost_of(session, models);
  double left = (cost ? cost->usd : 0) - std::exchange(session.repeated_usd, 0) - session.counted_usd;
  session.counted_usd = std::max(session.counted_usd, cost ? cost->usd : 0);
  const bool is_recorded = cost && cost->source == "recorded";
  const auto add = [&](std::string_view model, double usd) {
    if (usd <= 0) return;
    left -= usd;
    costs_[{label(hosts_, host, hosts_max),
            {label(programs_, session.program, programs_max), label(models_, model, models_max),
             is_recorded ? "recorded" : "estimated"}}] += usd;
  };
  for (const auto& [model, usd] : std::exchange(session.grown_usd, {})) add(model, std::min(left, usd));
  if (const StreamState* const main = state_of(session.main())) add(main->model, left);
}

void SessionMetrics::on_status(Session& session, const status::Status& next, Clock::time_point now) {
  const bool is_waiting = next.state == "waiting";
  const bool is_same = session.wait_began && session.status && status::is_same_wait(*session.status, next);
  if (is_same) return;
  const std::string program =
      label(programs_, session.program.empty() ? next.program : session.program, programs_max);
  if (session.wait_began && session.status) {
    const std::chrono::duration<double> waited = now - *session.wait_began;
    wait_seconds_[{program, label(reasons_, session.status->reason, values_max), ""}] += waited.count();
  }
  session.wait_began.reset();
  if (!is_waiting || !(session.was_live || next.source == "registry")) return;
  session.wait_began = now;
  ++waits_[{program, label(reasons_, next.reason, values_max), ""}];
}

void SessionMetrics::fill_counters(MetricsPage& page) const {
  page.family("earshot_events_total", "Events since the start, by type.");
  for (std::size_t type = 0; type < events_.size(); ++type)
    if (events_[type] > 0) page.sample(events_[type], {{"type", event_type_names()[type]}});
  const auto add = [&](std::string_view name, std::string_view help, const auto& counts,
                       std::string_view second, std::string_view third) {
    page.family(name, help);
    for (const auto& [labels, count] : counts) {
      const auto& [program, value, kind] = labels;
      if (third.empty())
        page.sample(count, {{"program", program}, {second, value}});
      else
        page.sample(count, {{"program", program}, {second, value}, {third, kind}});
    }
  };
  const auto add_by_host = [&](std::string_view name, std::string_view help, const auto& counts,
                               std::string_view third) {
    page.family(name, help);
    for (const auto& [key, count] : counts) {
      const auto& [program, model, kind] = key.second;
      if (key.first.empty())
        page.sample(count, {{"program", program}, {"model", model}, {third, kind}});
      else
        page.sample(count, {{"host", key.first}, {"program", program}, {"model", model}, {third, kind}});
    }
  };
  add_by_host("earshot_tokens_total", "Tokens used since the start.", tokens_, "kind");
  add_by_host("earshot_cost_usd_total", "Cost since the start in USD.", costs_, "source");
  add("earshot_tools_total", "Finished tool calls since the start.", tools_, "outcome", "");
  add("earshot_turns_total", "Finished turns since the start.", turns_, "outcome", "");
  add("earshot_waits_total", "Times that a session began to wait for the user.", waits_, "reason", "");
  add("earshot_wait_seconds_total", "How long sessions waited for the user, in waits that are over.",
      wait_seconds_, "reason", "");
}

void SessionMetrics::count_costs(SessionStore& sessions) {
  sessions.for_each([&](Session& session) {
    count_cost(session, sessions.models(), sessions.remote_host_of(session.name));
  });
}

std::map<std::pair<std::string, std::string>, double> SessionMetrics::cost_by_program(
    SessionStore& sessions) {
  count_costs(sessions);
  std::map<std::pair<std::string, std::string>, double> costs;
  for (const auto& [key, usd] : costs_) costs[{key.first, std::get<0>(key.second)}] += usd;
  return costs;
}

void SessionMetrics::fill(MetricsPage& page, SessionStore& sessions,
                          const std::function<bool(const Session&)>& is_live) {
  count_costs(sessions);
  fill_counters(page);
  fill_waits(page, sessions);
  fill_gauges(page, sessions, is_live);
}

/// By host (at a hub), program and reason: an alert on it needs no memory of single sessions.
void SessionMetrics::fill_waits(MetricsPage& page, SessionStore& sessions) {
  std::map<Labels, double> longest;
  const std::int64_t now = wall_now_ms();
  sessions.for_each([&](const Session& session) {
    if (!session.was_live || !session.status || session.status->state != "waiting") return;
    const auto since = parse_time(session.status->since);
    if (!since) return;
    const std::string& program = session.program.empty() ? session.status->program : session.program;
    const Labels key(name_or_other(sessions.remote_host_of(session.name)), name_or_other(program),
                     name_or_other(session.status->reason));
    if (longest.size() >= waits_max && !longest.contains(key)) return;
    double& seconds = longest[key];
    seconds = std::max(seconds, static_cast<double>(now - *since) / 1000);
  });
  page.family("earshot_longest_wait_seconds",
              "How long the session that waits for the user longest has waited so far.");
  for (const auto& [key, seconds] : longest) {
    const auto& [host, program, reason] = key;
    if (host.empty())
      page.sample(seconds, {{"program", program}, {"reason", reason}});
    else
      page.sample(seconds, {{"host", host}, {"program", program}, {"reason", reason}});
  }
}

void SessionMetrics::fill_gauges(MetricsPage& page, SessionStore& sessions,
                                 const std::function<bool(const Session&)>& is_live) {
  std::uint64_t unseen = 0;
  std::vector<std::pair<double, const Session*>> fullest;
  // By host (at a hub), program and name: the newest.
  std::map<std::tuple<std::string, std::string, std::string>, const LimitState*> limits;
  sessions.for_each([&](Session& session) {
    unseen += session.was_live && session.is_unseen() ? 1 : 0;
    for (const LimitState* limit : limits_of(session)) {
      const std::tuple key(name_or_other(sessions.remote_host_of(session.name)),
                           name_or_other(session.program), name_or_other(limit->limit));
      const auto known = limits.find(key);
      if (known == limits.end() && limits.size() < limits_max) limits.emplace(key, limit);
      if (known != limits.end() && known->second->time < limit->time) known->second = limit;
    }
    if (!is_live(session)) return;
    if (const double ratio = context_ratio(session, sessions.models()); ratio > 0)
      fullest.emplace_back(ratio, &session);
  });
  page.add("earshot_sessions_unseen", "Sessions with a finished turn that the user has not seen.", unseen);
  std::sort(fullest.begin(), fullest.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->name < b.second->name;
  });
  if (fullest.size() > context_sessions_max) fullest.resize(context_sessions_max);
  page.family("earshot_session_context_ratio",
              "Used share of the context window, of the live sessions with the fullest ones.");
  for (const auto& [ratio, session] : fullest)
    page.sample(ratio, {{"session", shortened(session->name)},
                        {"program", name_or_other(session->program)},
                        {"project", shortened(session->project)}});
  page.family(
      "earshot_session_time_seconds",
      "How long the same sessions waited for the user, worked and were idle, until their present status "
      "began.");
  for (const auto& [ratio, session] : fullest) {
    const auto spent = times_of(*session);
    if (!spent) continue;
    const std::pair<std::string_view, std::int64_t> parts[] = {
        {"waiting", spent->waited}, {"working", spent->worked}, {"idle", spent->idle}};
    for (const auto& [state, ms] : parts)
      page.sample(static_cast<double>(ms) / 1000, {{"session", shortened(session->name)},
                                                   {"program", name_or_other(session->program)},
                                                   {"project", shortened(session->project)},
                                                   {"state", state}});
  }
  page.family("earshot_limit_used_ratio",
              "Used share of the account's limits, of windows that are not over.");
  for (const auto& [key, limit] : limits) {
    std::map<std::string, double> windows;  // a name may be repeated
    for (const LimitWindow& each : limit->windows) {
      const auto resets = parse_time(each.resets_at);
      const bool is_over = resets && *resets <= wall_now_ms();
      if (each.used_percent && !is_over && windows.size() < values_max)
        windows.emplace(name_or_other(each.name), *each.used_percent / 100);
    }
    const auto& [host, program, limit_name] = key;
    for (const auto& [name, ratio] : windows) {
      if (host.empty())
        page.sample(ratio, {{"program", program}, {"limit", limit_name}, {"window", name}});
      else
        page.sample(ratio, {{"host", host}, {"program", program}, {"limit", limit_name}, {"window", name}});
    }
  }
}

}  // namespace earshot::serve
