#include "serve/http/session_metrics.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
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

void SessionMetrics::on_added(Member& member) {
  if (const Transcript* const transcript = member.stream->transcript())
    member.counted = transcript->used().total();
}

void SessionMetrics::on_event(Session& session, Member* member, const EventBody& body) {
  ++events_[body.index()];
  if (const auto* finished = std::get_if<event::ToolFinished>(&body))
    ++tools_[{label(programs_, session.program, programs_max),
              label(outcomes_, finished->outcome, values_max), ""}];
  if (const auto* finished = std::get_if<event::TurnFinished>(&body))
    ++turns_[{label(programs_, session.program, programs_max),
              label(outcomes_, finished->outcome, values_max), ""}];
  const Transcript* const transcript = member ? member->stream->transcript() : nullptr;
  if (!transcript) return;
  sessions_.note_cost(session);
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
      if (more.*count > 0) tokens_[labels_of(session, model, kind)] += more.*count;
    if (more == Usage{} && grown.more != Usage{}) continue;
    session.grown_usd[model] +=
        grown.has_cost ? grown.more_usd : sessions_.models().cost_usd(model, more).value_or(0);
  }
}

SessionMetrics::ByHost SessionMetrics::labels_of(const Session& session, std::string_view model,
                                                 std::string_view kind) {
  return {label(hosts_, sessions_.remote_host_of(session.name), hosts_max),
          {label(programs_, session.program, programs_max), label(models_, model, models_max),
           std::string(kind)}};
}

/// By host and program, over all sessions: what one has less because another counts it now is no cost. It is
/// divided by what their models cost since then; a recorded total replaces estimates.
void SessionMetrics::count_costs() {
  struct Change {
    Session* session = nullptr;
    double usd = 0;  // not attributed yet
    std::string_view source;
  };
  struct Group {
    std::vector<Change> changes;
    double more = 0, less = 0;
  };
  std::map<std::pair<std::string_view, std::string_view>, Group> groups;
  for (Session* const session : sessions_.take_changed_costs()) {
    const auto cost = cost_of(*session, sessions_.models());
    Group& group = groups[{sessions_.remote_host_of(session->name), session->program}];
    const double usd = (cost ? cost->usd : 0) - session->counted_usd;
    group.changes.push_back({session, usd, cost && cost->source == "recorded" ? "recorded" : "estimated"});
    (usd > 0 ? group.more : group.less) += std::abs(usd);
    session->counted_usd += usd;
  }
  for (auto& [key, group] : groups) {
    double left = group.more - group.less;
    const auto add = [&](Change& change, std::string_view model, double usd) {
      usd = std::min({usd, left, change.usd});
      if (usd <= 0) return;
      left -= usd;
      change.usd -= usd;
      costs_[labels_of(*change.session, model, change.source)] += usd;
    };
    for (Change& change : group.changes) {
      // A counter never decreases: this much of later growth has been counted already.
      if (left < 0 && change.usd < 0) change.session->counted_usd += left * change.usd / group.less;
      for (const auto& [model, usd] : std::exchange(change.session->grown_usd, {})) add(change, model, usd);
    }
    for (Change& change : group.changes)
      if (const StreamState* const main = state_of(change.session->main()))
        add(change, main->model, change.usd);
  }
}

void SessionMetrics::skip_costs() {
  for (Session* const session : sessions_.take_changed_costs()) {
    const auto cost = cost_of(*session, sessions_.models());
    session->counted_usd = cost ? cost->usd : 0;
    session->grown_usd.clear();
  }
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

void SessionMetrics::fill(MetricsPage& page) {
  count_costs();
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

std::map<std::pair<std::string, std::string>, double> SessionMetrics::cost_by_program() {
  count_costs();
  std::map<std::pair<std::string, std::string>, double> costs;
  for (const auto& [key, usd] : costs_) costs[{key.first, std::get<0>(key.second)}] += usd;
  return costs;
}

// --- SessionFigures ---

void SessionFigures::add(const Session& session, bool is_live) {
  shown_ += session.is_shown() ? 1 : 0;
  unseen_ += session.was_live && session.is_unseen() ? 1 : 0;
  const bool exists = !session.members.empty() || session.process_lives();
  if (session.was_live && exists && session.is_shown())
    ++states_[session.status && !session.status->state.empty() ? session.status->state : "unknown"];
  add_wait(session);
  for (const LimitState* limit : limits_of(session)) {
    const Key key(name_or_other(sessions_.remote_host_of(session.name)), name_or_other(session.program),
                  name_or_other(limit->limit));
    const auto known = limits_.find(key);
    if (known == limits_.end() && limits_.size() < limits_max) limits_.emplace(key, *limit);
    if (known != limits_.end() && known->second.time < limit->time) known->second = *limit;
  }
  if (is_live) add_context(session);
}

/// By host (at a hub), program and reason: an alert on it needs no memory of single sessions.
void SessionFigures::add_wait(const Session& session) {
  if (!session.was_live || !session.status || session.status->state != "waiting") return;
  const auto since = parse_time(session.status->since);
  if (!since) return;
  const std::string& program = session.program.empty() ? session.status->program : session.program;
  const Key key(name_or_other(sessions_.remote_host_of(session.name)), name_or_other(program),
                name_or_other(session.status->reason));
  if (longest_waits_.size() >= waits_max && !longest_waits_.contains(key)) return;
  double& seconds = longest_waits_[key];
  seconds = std::max(seconds, static_cast<double>(wall_now_ms() - *since) / 1000);
}

void SessionFigures::add_context(const Session& session) {
  Fullest one{context_ratio(session, sessions_.models()), {}};
  const bool is_full = fullest_.size() == context_sessions_max;
  if (one.ratio <= 0 || (is_full && one.ratio < fullest_.front().ratio)) return;
  one.session = session.name;
  fullest_.push_back(std::move(one));
  std::push_heap(fullest_.begin(), fullest_.end());
  if (!is_full) return;
  std::pop_heap(fullest_.begin(), fullest_.end());
  fullest_.pop_back();
}

void SessionFigures::fill(MetricsPage& page) const {
  page.family("earshot_sessions", "Sessions that are or were live since the start, by state.")
      .each("state", {states_.begin(), states_.end()});
  page.family("earshot_longest_wait_seconds",
              "How long the session that waits for the user longest has waited so far.");
  for (const auto& [key, seconds] : longest_waits_) {
    const auto& [host, program, reason] = key;
    if (host.empty())
      page.sample(seconds, {{"program", program}, {"reason", reason}});
    else
      page.sample(seconds, {{"host", host}, {"program", program}, {"reason", reason}});
  }
  page.add("earshot_sessions_unseen", "Sessions with a finished turn that the user has not seen.", unseen_);
  fill_contexts(page);
  fill_limits(page);
}

void SessionFigures::fill_contexts(MetricsPage& page) const {
  std::vector<Fullest> fullest = fullest_;
  std::sort(fullest.begin(), fullest.end());
  page.family("earshot_session_context_ratio",
              "Used share of the context window, of the live sessions with the fullest ones.");
  for (const auto& [ratio, name] : fullest) {
    const Session* const session = sessions_.find(name);
    if (!session) continue;
    page.sample(ratio, {{"session", shortened(name)},
                        {"program", name_or_other(session->program)},
                        {"project", shortened(session->project)}});
  }
  page.family(
      "earshot_session_time_seconds",
      "How long the same sessions waited for the user, worked and were idle, until their present status "
      "began.");
  for (const auto& [ratio, name] : fullest) {
    const Session* const session = sessions_.find(name);
    const auto spent = session ? times_of(*session) : std::nullopt;
    if (!spent) continue;
    const std::pair<std::string_view, std::int64_t> parts[] = {
        {"waiting", spent->waited}, {"working", spent->worked}, {"idle", spent->idle}};
    for (const auto& [state, ms] : parts)
      page.sample(static_cast<double>(ms) / 1000, {{"session", shortened(name)},
                                                   {"program", name_or_other(session->program)},
                                                   {"project", shortened(session->project)},
                                                   {"state", state}});
  }
}

void SessionFigures::fill_limits(MetricsPage& page) const {
  page.family("earshot_limit_used_ratio",
              "Used share of the account's limits, of windows that are not over.");
  for (const auto& [key, limit] : limits_) {
    std::map<std::string, double> windows;  // a name may be repeated
    for (const LimitWindow& each : limit.windows) {
      const auto resets = parse_time(each.resets_at);
      const bool is_over = resets && *resets <= wall_now_ms();
      if (each.used_percent && !is_over && windows.size() < SessionMetrics::values_max)
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
