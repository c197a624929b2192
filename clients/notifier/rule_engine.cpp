#include "notifier/rule_engine.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/quantities.hpp"
#include "base/text.hpp"
#include "common/format.hpp"

namespace earshot::notifier {
namespace {

constexpr std::int64_t minute_ms = 60'000;
constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max() / 2;  // until the replay ends

std::string group_key_of(const Notice& notice) {
  std::string group_key = notice.rule;
  for (const std::string& sink : notice.sinks) group_key += '\n' + sink;
  return group_key;
}

// Users ask why these caused no notice, so mismatches are recorded.
bool is_recorded(const EventContext& context) {
  return context.agent.empty() &&
         (context.type == "done" || context.type == "turn.finished" || context.values.contains("reason"));
}

constexpr double context_drop_points = 5;  // below the condition: fluctuations do not count as a drop

// What a rule with a condition on the context is about, until it is armed again.
std::string context_subject(std::string_view host, std::string_view session) {
  return "context\n" + std::string(host) + '\n' + std::string(session);
}

std::string to_sinks(const Notice& notice) {
  std::string to;
  for (const std::string& sink : notice.sinks) to += (to.empty() ? "to " : ", ") + sink;
  return to;
}

bool is_quiet(const Rule& rule, LocalTime now) {
  return std::any_of(rule.quiet.begin(), rule.quiet.end(),
                     [&](const QuietHours& each) { return each.holds(now); });
}

}  // namespace

RuleEngine::RuleEngine(const Rules& rules, Clock clock, EngineState state)
    : rules_(rules), clock_(std::move(clock)), state_(std::move(state)) {}

const Rule* RuleEngine::find_rule(std::string_view name) const {
  const auto found = std::find_if(rules_.rules.begin(), rules_.rules.end(),
                                  [&](const Rule& rule) { return rule.name == name; });
  return found == rules_.rules.end() ? nullptr : &*found;
}

void RuleEngine::record(std::string_view outcome, const Notice& notice, std::string why,
                        std::int64_t now_ms) {
  decisions_.push_back({now_ms, std::string(outcome), notice.rule, notice.type, notice.session,
                        notice.project, notice.title, std::move(why)});
}

Notice RuleEngine::make_notice(const Rule& rule, const EventContext& context,
                               std::vector<std::string> sinks) {
  const Lookup lookup = [&](std::string_view name) { return context.value(name, rule.view); };
  Notice notice;
  std::string about = context.id;
  if (rule.once == Rule::Once::session) about = context.host + '\n' + context.session;
  if (rule.context_condition() != nullptr) about = context_subject(context.host, context.session);
  // The transcript may be moved within the turn.
  if (rule.once == Rule::Once::turn)
    about = context.host + '\n' + context.session + '\n' +
            std::string(common::last_component(context.stream)) + '\n' + context.value("turn", View::meta);
  notice.id = digest(rule.name + '\n' + about);
  notice.rule = rule.name;
  notice.sinks = std::move(sinks);
  notice.slot = context.session;
  notice.title = clean_line(rule.title.fill(lookup), Notice::title_columns_max);
  notice.body = clean_lines(rule.body.fill(lookup));
  notice.urgency = rule.urgency;
  notice.time_ms = context.time_ms;
  notice.type = context.type;
  notice.host = context.host;
  notice.session = context.session;
  notice.project = context.value("project", View::meta);
  notice.link = context.value("link", View::meta);
  notice.is_here = context.value("elsewhere", View::meta).empty() && context.is_daemon_known;
  if (!context.frame.empty()) notice.event = frame_for(context.frame, rule.view);
  if (notice.event.size() > Notice::event_bytes_max) notice.event.clear();
  notice.ack_keys = {{context.id, context.session, context.type == "status"}};
  return notice;
}

void RuleEngine::resume(std::int64_t now_ms) {
  std::erase_if(state_.held, [&](EngineState::Held& each) {
    const Rule* const rule = find_rule(each.notice.rule);
    const std::int64_t age = each.notice.time_ms > 0 ? now_ms - each.notice.time_ms : 0;
    const bool is_state = each.notice.type == "status" && !each.is_escalation;  // another status drops it
    const bool may_be_old = is_state || (rule != nullptr && rule->after_quiet);
    // One that is still to be held, or that escalates, may be about an old event.
    const std::int64_t overdue = each.due_ms >= forever ? age : std::min(age, now_ms - each.due_ms);
    if (overdue > rules_.max_age_ms && !may_be_old) {
      record("too old", each.notice, "it happened " + format_duration(common::Ms(age)) + " ago", now_ms);
      changed_ = true;
      return true;
    }
    each.due_ms = each.due_ms >= forever ? now_ms + grace_ms : std::max(each.due_ms, now_ms + grace_ms);
    return false;
  });
}

void RuleEngine::begin() {
  is_replaying_ = true;
  seen_sessions_.clear();
}

void RuleEngine::handle(const common::Fields& frame, std::string_view json, std::int64_t now_ms) {
  const std::string_view type = frame.text("type"), session = frame.text("session");
  const bool is_refined = session_cache_.update(frame);
  if (session.empty()) return;
  if (type == "session" || type == "status") {
    seen_sessions_.emplace(session);
    if (type == "session") evaluate_limits(frame, now_ms);
    if (type == "status" || frame.object("status")) {
      const EventContext context = session_cache_.event_context(frame, json, now_ms);
      apply_status(context, now_ms);
      if (type == "status") keep_for_figures(context);
      const auto done = session_cache_.done_context(frame, context);
      if (done) evaluate(*done, now_ms);
      if (done && type == "status") keep_for_figures(*done);
      return;
    }
  }
  if (is_refined) {
    if (const auto status = session_cache_.current_status(session)) {
      refine(*status, now_ms);
      if (status->time_ms + replace_ms > now_ms) evaluate(*status, now_ms);
    }
  }
  if (frame.text("cursor").empty()) return;
  if (type == "compaction.finished" && frame.text("agent").empty())
    arm_context(frame.text("host"), session, std::nullopt);
  if (type == "usage.updated" && frame.text("agent").empty()) {
    if (const auto percent = session_cache_.context_percent(session))
      arm_context(frame.text("host"), session, percent);
  }
  // What a hook, a task or a schedule begins answers nothing.
  const std::string_view origin = frame.text("origin");
  const bool is_prompted = origin != "hook" && origin != "task" && origin != "agent";
  if (type == "turn.started" && frame.text("agent").empty() && is_prompted)
    acknowledge([&](const AckKey& ack_key) { return !ack_key.is_status && ack_key.session == session; },
                "the next turn began", now_ms);
  const bool wanted = std::any_of(rules_.rules.begin(), rules_.rules.end(), [&](const Rule& rule) {
    return std::any_of(rule.on.begin(), rule.on.end(),
                       [&](const auto& on) { return matches_glob(on, type); });
  });
  if (!wanted) return;
  const EventContext context = session_cache_.event_context(frame, json, now_ms);
  evaluate(context, now_ms);
  keep_for_figures(context);
}

void RuleEngine::keep_for_figures(const EventContext& context) {
  const bool may_match = std::any_of(rules_.rules.begin(), rules_.rules.end(), [&](const Rule& rule) {
    return rule.uses_figures() && find_mismatch(rule, context, false).why.empty() &&
           !state_.handled.contains(make_notice(rule, context, {}).id);
  });
  const bool is_known = unsettled_.contains(context.session);
  if (!may_match || (!is_known && unsettled_.size() >= unsettled_sessions_max)) return;
  Unsettled& unsettled = unsettled_[context.session];
  unsettled.events.push_back(context);
  if (unsettled.events.size() <= unsettled_events_max) return;
  unsettled.events.erase(unsettled.events.begin());
  unsettled.asked -= std::min<std::size_t>(unsettled.asked, 1);
}

std::vector<std::string> RuleEngine::take_figures_wanted(std::int64_t now_ms) {
  std::vector<std::string> sessions;
  for (auto& [session, unsettled] : unsettled_) {
    if (unsettled.events.empty() || unsettled.is_asked || unsettled.asked_ms + figures_ms > now_ms) continue;
    unsettled.asked = unsettled.events.size();
    unsettled.asked_ms = now_ms;
    unsettled.is_asked = true;
    sessions.push_back(session);
  }
  std::erase_if(unsettled_, [&](const auto& each) {
    const Unsettled& unsettled = each.second;
    return unsettled.events.empty() && !unsettled.is_asked && unsettled.asked_ms + figures_ms <= now_ms;
  });
  return sessions;
}

std::optional<std::int64_t> RuleEngine::figures_due_ms() const {
  std::optional<std::int64_t> due;
  for (const auto& [session, unsettled] : unsettled_)
    if (!unsettled.events.empty() && !unsettled.is_asked && (!due || unsettled.asked_ms + figures_ms < *due))
      due = unsettled.asked_ms + figures_ms;
  return due;
}

void RuleEngine::apply_figures(std::string_view session, const common::Fields& frame, std::int64_t now_ms) {
  const auto found = unsettled_.find(session);
  if (found == unsettled_.end()) return;
  session_cache_.update_figures(frame);
  Unsettled& unsettled = found->second;
  for (EventContext& each : unsettled.events) {
    session_cache_.set_figures(each);
    each.is_restated = true;
    const auto status = each.type == "status" ? session_cache_.current_status(session) : std::nullopt;
    if (each.type == "status" && (!status || status->id != each.id)) continue;  // it was answered
    if (each.context_percent) arm_context(each.host, session, each.context_percent);
    for (const Rule& rule : rules_.rules)
      if (rule.uses_figures() && find_mismatch(rule, each).why.empty()) evaluate(rule, each, now_ms);
  }
  const auto asked = static_cast<std::ptrdiff_t>(unsettled.asked);
  unsettled.events.erase(unsettled.events.begin(), unsettled.events.begin() + asked);
  unsettled.asked = 0;
  unsettled.is_asked = false;
}

// Limits that a status line stated. Old ones are ignored: the next ones of the period cause the notice.
void RuleEngine::evaluate_limits(const common::Fields& frame, std::int64_t now_ms) {
  for (const EventContext& each : session_cache_.limit_contexts(frame, now_ms))
    if (each.time_ms >= state_.since_ms && now_ms - each.time_ms <= rules_.max_age_ms) evaluate(each, now_ms);
}

// An offline host answers nothing: sent notices stay open, held ones wait for the host. Before the
// first heartbeat of a host this status has no `since` and rules ignore it: the host may be online.
void RuleEngine::apply_status(const EventContext& context, std::int64_t now_ms) {
  if (session_cache_.offline_id(context.session) == context.id) {
    if (context.time_ms > 0) evaluate(context, now_ms);
    return;
  }
  const std::vector<std::string> closed = acknowledge(
      [&](const AckKey& ack_key) {
        return ack_key.is_status && ack_key.session == context.session && ack_key.id != context.id;
      },
      "the session is " + context.value("state", View::meta), now_ms);
  if (context.is_next_request)  // the one before is not answered for certain
    for (const std::string& id : closed) state_.handled.erase(id);
  if (context.value("reason", View::meta) == "auth")  // one notice: why the turn failed
    acknowledge(
        [&](const AckKey& ack_key) { return !ack_key.is_status && ack_key.session == context.session; },
        "the session waits for a sign-in", now_ms);
  refine(context, now_ms);
  evaluate(context, now_ms);
}

// The reason, the detail or a fact of the session became known after the status: brings its notices up to
// date. Without a frame, which is the case after events, sent notices are replaced only within replace_ms,
// and none is dropped.
void RuleEngine::refine(const EventContext& context, std::int64_t now_ms) {
  const AckKey key{context.id, context.session, true};
  const auto rule_of = [&](const Notice& notice) {
    const bool is_about = notice.ack_keys.size() == 1 && notice.ack_keys.front() == key;
    return is_about ? find_rule(notice.rule) : nullptr;
  };
  std::erase_if(state_.held, [&](EngineState::Held& each) {
    const Rule* const rule = rule_of(each.notice);
    if (rule == nullptr) return false;
    if (const Mismatch miss = find_mismatch(*rule, context); !miss.why.empty()) {
      if (context.frame.empty()) return false;
      record("no match", each.notice, miss.why, now_ms);
      if (!each.is_escalation) state_.handled.erase(each.notice.id);
      changed_ = true;
      return true;
    }
    Notice refined = make_notice(*rule, context, each.notice.sinks);
    if (refined.event.empty()) refined.event = each.notice.event;
    changed_ = changed_ || refined != each.notice;
    each.notice = std::move(refined);
    return false;
  });
  std::erase_if(state_.open, [&](Notice& each) {
    const Rule* const rule = rule_of(each);
    if (rule == nullptr || is_replaying_) return false;
    if (const Mismatch miss = find_mismatch(*rule, context); !miss.why.empty()) {
      if (!context.frame.empty()) close(each, miss.why, now_ms);
      return !context.frame.empty();
    }
    const auto recent = recent_.find(each.id);
    const bool is_recent = recent != recent_.end() && recent->second.at_ms + replace_ms > now_ms;
    Notice refined = make_notice(*rule, context, each.sinks);
    if ((context.frame.empty() && !is_recent) || (refined.title == each.title && refined.body == each.body))
      return false;
    each.title = refined.title;
    each.body = refined.body;
    changed_ = true;
    record("refined", refined, refined.body, now_ms);
    refinements_.push_back(std::move(refined));
    return false;
  });
}

// After a compaction, or a drop to clearly below the condition, the rule notifies again.
void RuleEngine::arm_context(std::string_view host, std::string_view session, std::optional<double> percent) {
  for (const Rule& rule : rules_.rules) {
    const Condition* const condition = rule.context_condition();
    if (condition == nullptr) continue;
    const Comparison& comparison = condition->comparison;
    if (percent &&
        (comparison.holds(*percent) || std::abs(*percent - comparison.number) < context_drop_points))
      continue;
    if (state_.handled.erase(digest(rule.name + '\n' + context_subject(host, session))) > 0) changed_ = true;
  }
}

void RuleEngine::evaluate(const EventContext& context, std::int64_t now_ms) {
  std::size_t none = decisions_.size();
  for (const Rule& rule : rules_.rules) {
    const Mismatch miss = find_mismatch(rule, context);
    if (!miss.why.empty()) {
      // One line is enough: the mismatch of the rule that came closest.
      if (miss.near && is_recorded(context) && decisions_.size() == none) {
        Notice notice;
        notice.rule = rule.name;
        notice.type = context.type;
        notice.session = context.session;
        notice.project = context.value("project", View::meta);
        if (!is_replaying_ && !context.frame.empty()) record("no match", notice, miss.why, now_ms);
      }
      continue;
    }
    if (decisions_.size() > none && decisions_.back().outcome == "no match") decisions_.pop_back();
    evaluate(rule, context, now_ms);
    none = decisions_.size() + 1;  // a rule matched: mismatches of others are not of interest
  }
}

void RuleEngine::evaluate(const Rule& rule, const EventContext& context, std::int64_t now_ms) {
  std::map<std::int64_t, std::vector<std::string>> sinks_by_hold;  // hold → sinks
  for (const std::string& name : rule.sinks) {
    if (const Sink* const sink = rules_.sink(name)) sinks_by_hold[rule.hold_ms_for(*sink)].push_back(name);
  }
  if (sinks_by_hold.empty()) return;
  const Notice notice = make_notice(rule, context, {});
  const bool is_context = rule.context_condition() != nullptr;
  if (!state_.handled.emplace(notice.id, now_ms).second) {
    if (context.type != "status" && rule.once == Rule::Once::event && !is_context && !context.is_restated)
      record("duplicate", notice, "it is a duplicate", now_ms);
    return;
  }
  changed_ = true;
  const std::int64_t age = context.time_ms > 0 ? std::max<std::int64_t>(0, now_ms - context.time_ms) : 0;
  const bool is_event = context.type != "status";
  const bool still_waits = !is_event && context.value("state", View::meta) == "waiting";
  std::string why;
  if (age > rules_.max_age_ms && !still_waits)
    why = "it happened " + format_duration(common::Ms(age)) + " ago, more than " +
          duration_literal(common::Ms(rules_.max_age_ms));
  else if (is_event && is_replaying_ && context.time_ms == 0)
    why = "it has no time";
  else if (is_event && context.time_ms > 0 && context.time_ms < state_.since_ms)
    why = "it happened before the notifier was first started";
  if (!why.empty() && is_context) {  // a later event states it again
    state_.handled.erase(notice.id);
    return;
  }
  if (!why.empty()) return record("too old", notice, std::move(why), now_ms);
  const bool is_past = is_replaying_ && is_event;  // a later event may answer it
  for (auto& [hold, sinks] : sinks_by_hold) {
    const std::int64_t left_ms = std::max<std::int64_t>(0, hold - age);
    const std::int64_t least_ms = is_event ? 0 : refine_ms;
    EngineState::Held held{make_notice(rule, context, std::move(sinks)),
                           is_past ? forever : now_ms + std::max(left_ms, least_ms)};
    if (held.due_ms <= now_ms) {
      release(std::move(held), now_ms);
      continue;
    }
    if (is_past || left_ms > 0)
      record("held", held.notice,
             is_past ? "until missed events are read"
                     : "for " + duration_literal(common::Ms(hold)) + " after it happened",
             now_ms);
    state_.held.push_back(std::move(held));
  }
  limit_held(now_ms);
  expire_old(now_ms);
}

// An escalation that is not sent loses less than one that is sent too early.
void RuleEngine::limit_held(std::int64_t now_ms) {
  while (state_.held.size() > held_max) {
    EngineState::Held first = std::move(state_.held.front());
    state_.held.erase(state_.held.begin());
    if (first.is_escalation) {
      record("dropped", first.notice, "more than " + std::to_string(held_max) + " notices are held", now_ms);
    } else {
      emit(std::move(first.notice), now_ms);
    }
  }
}

bool RuleEngine::is_throttled(const Rule& rule, const Notice& notice, std::int64_t now_ms) {
  if (rule.throttle_ms == 0) return false;
  const std::string of = rule.per == Rule::Per::rule      ? ""
                         : rule.per == Rule::Per::project ? notice.project
                                                          : notice.session;
  auto& last = state_.throttles[rule.name + '\n' + of];
  if (last.second == notice.id || last.first + rule.throttle_ms <= now_ms) {
    if (last.second != notice.id) last = {now_ms, notice.id};
    return false;
  }
  return true;
}

// A held notice is due: applies quiet hours, throttling and grouping.
void RuleEngine::release(EngineState::Held held, std::int64_t now_ms) {
  changed_ = true;
  const Rule* const rule = find_rule(held.notice.rule);
  if (rule == nullptr && held.is_escalation)
    return record("dropped", held.notice, "its rule was removed", now_ms);
  if (rule == nullptr) return emit(std::move(held.notice), now_ms);  // the rule was removed before a restart
  if (is_quiet(*rule, clock_(now_ms))) {
    if (!rule->after_quiet) return record("quiet", held.notice, "these are quiet hours", now_ms);
    held.due_ms = now_ms - now_ms % minute_ms + minute_ms;
    state_.held.push_back(std::move(held));
    return;
  }
  if (!held.is_escalation && is_throttled(*rule, held.notice, now_ms))
    return record("throttled", held.notice,
                  "less than " + duration_literal(common::Ms(rule->throttle_ms)) + " after the last one",
                  now_ms);
  const std::string group_key = group_key_of(held.notice);
  std::erase_if(recent_, [&](const auto& each) { return each.second.at_ms + group_ms <= now_ms; });
  const auto many = std::count_if(recent_.begin(), recent_.end(),
                                  [&](const auto& each) { return each.second.group_key == group_key; });
  const auto group = std::find_if(state_.held.begin(), state_.held.end(), [&](const EngineState::Held& each) {
    return each.is_grouped && group_key_of(each.notice) == group_key;
  });
  if (static_cast<std::size_t>(many) < group_after && group == state_.held.end())
    return emit(std::move(held.notice), now_ms, held.is_escalation);
  held.is_grouped = true;
  held.due_ms = group != state_.held.end() ? group->due_ms : now_ms + group_ms;
  record("grouped", held.notice, "too many at once: sent as one notice", now_ms);
  state_.held.push_back(std::move(held));
}

// The steps of an escalation count from the first time that the notice is sent.
void RuleEngine::hold_escalations(const Notice& notice, std::int64_t now_ms) {
  const Rule* const rule = find_rule(notice.rule);
  const bool was_sent = std::any_of(state_.open.begin(), state_.open.end(),
                                    [&](const Notice& each) { return each.id == notice.id; }) ||
                        std::any_of(state_.held.begin(), state_.held.end(), [&](const auto& each) {
                          return each.is_escalation && each.notice.id == notice.id;
                        });
  if (rule == nullptr || was_sent) return;
  for (const Escalation& step : rule->escalations) {
    EngineState::Held held{notice, now_ms + step.after_ms, false, true};
    held.notice.sinks = step.sinks;
    record(
        "held", held.notice,
        to_sinks(held.notice) + " if it is unanswered after " + duration_literal(common::Ms(step.after_ms)),
        now_ms);
    state_.held.push_back(std::move(held));
  }
}

void RuleEngine::emit(Notice notice, std::int64_t now_ms, bool is_escalation) {
  changed_ = true;
  record(is_escalation ? "escalated" : "notified", notice, to_sinks(notice), now_ms);
  if (!is_escalation) hold_escalations(notice, now_ms);
  // A desktop shows one notice per slot. Notices of other sinks stay open.
  std::erase_if(state_.open,
                [&](const Notice& each) { return each.slot == notice.slot && each.sinks == notice.sinks; });
  recent_[notice.id] = {now_ms, group_key_of(notice)};
  Notice open = notice;
  open.event.clear();
  state_.open.push_back(std::move(open));
  if (state_.open.size() > open_max) state_.open.erase(state_.open.begin());
  notices_.push_back(std::move(notice));
}

void RuleEngine::emit_group(std::vector<EngineState::Held> group, std::int64_t now_ms) {
  const bool is_escalation = group.front().is_escalation;
  if (group.size() == 1) return emit(std::move(group.front().notice), now_ms, is_escalation);
  Notice notice;
  const Notice& first = group.front().notice;
  notice.rule = first.rule;
  notice.sinks = first.sinks;
  notice.slot = "group " + first.rule;
  notice.title = std::to_string(group.size()) + " notices: " + first.rule;
  notice.urgency = first.urgency;
  notice.type = first.type;
  notice.host = first.host;
  notice.link = first.link.substr(0, first.link.find('?'));
  std::string ids;
  std::size_t lines = 0;
  for (const EngineState::Held& each : group) {
    ids += each.notice.id + '\n';
    notice.time_ms = std::max(notice.time_ms, each.notice.time_ms);
    notice.ack_keys.insert(notice.ack_keys.end(), each.notice.ack_keys.begin(), each.notice.ack_keys.end());
    if (lines++ >= group_lines_max) continue;
    const std::string body = each.notice.body.substr(0, each.notice.body.find('\n'));
    notice.body += each.notice.title + (body.empty() ? "" : " — " + body) + '\n';
  }
  if (lines > group_lines_max) notice.body += "and " + std::to_string(lines - group_lines_max) + " more";
  if (notice.body.ends_with('\n')) notice.body.pop_back();
  notice.id = digest(ids);
  emit(std::move(notice), now_ms, is_escalation);
}

void RuleEngine::tick(std::int64_t now_ms) {
  std::vector<EngineState::Held> due;
  const auto split = std::stable_partition(
      state_.held.begin(), state_.held.end(),
      [&](const EngineState::Held& each) { return each.due_ms > now_ms || must_wait(each); });
  due.assign(std::make_move_iterator(split), std::make_move_iterator(state_.held.end()));
  state_.held.erase(split, state_.held.end());
  std::map<std::string, std::vector<EngineState::Held>> groups;
  for (EngineState::Held& each : due) {
    if (each.is_grouped) {
      groups[group_key_of(each.notice)].push_back(std::move(each));
    } else {
      release(std::move(each), now_ms);
    }
  }
  for (auto& [key, group] : groups) {
    emit_group(std::move(group), now_ms);
  }
}

std::optional<std::int64_t> RuleEngine::next_ms() const {
  std::optional<std::int64_t> next;
  for (const EngineState::Held& each : state_.held) {
    if (each.due_ms >= forever || must_wait(each)) continue;
    if (!next || each.due_ms < *next) next = each.due_ms;
  }
  return next;
}

bool RuleEngine::must_wait(const EngineState::Held& held) const {
  if (held.is_escalation && is_replaying_) return true;
  const auto& ack_keys = held.notice.ack_keys;
  if (ack_keys.empty() || !ack_keys.front().is_status) return false;
  const std::string_view away = session_cache_.offline_id(ack_keys.front().session);
  return !away.empty() && ack_keys.front().id != away;
}

std::vector<std::string> RuleEngine::acknowledge(const std::function<bool(const AckKey&)>& is_answered,
                                                 std::string_view how, std::int64_t now_ms) {
  std::vector<std::string> ids;
  std::erase_if(state_.held, [&](EngineState::Held& each) {
    if (std::erase_if(each.notice.ack_keys, is_answered) == 0) return false;
    changed_ = true;
    if (!each.notice.ack_keys.empty()) return false;  // the escalation of a group
    record("answered", each.notice, std::string(how) + ": not sent", now_ms);
    ids.push_back(each.notice.id);
    return true;
  });
  std::erase_if(state_.open, [&](Notice& each) {
    if (std::erase_if(each.ack_keys, is_answered) == 0) return false;
    changed_ = true;
    if (!each.ack_keys.empty()) return false;  // other notices of the group are unanswered
    close(each, std::string(how), now_ms);
    ids.push_back(each.id);
    return true;
  });
  return ids;
}

void RuleEngine::close(const Notice& notice, std::string why, std::int64_t now_ms) {
  changed_ = true;
  record("closed", notice, std::move(why), now_ms);
  recent_.erase(notice.id);
  closings_.push_back({notice.id, notice.slot, notice.sinks});
}

void RuleEngine::caught_up(std::int64_t now_ms) {
  if (!is_replaying_) return;
  is_replaying_ = false;
  acknowledge(
      [&](const AckKey& ack_key) { return ack_key.is_status && !seen_sessions_.contains(ack_key.session); },
      "the session ended", now_ms);
  for (EngineState::Held& each : state_.held) {
    if (each.due_ms < forever) continue;
    const Rule* const rule = find_rule(each.notice.rule);
    std::int64_t hold = default_hold_ms;
    if (rule != nullptr && !each.notice.sinks.empty()) {
      if (const Sink* const sink = rules_.sink(each.notice.sinks.front())) hold = rule->hold_ms_for(*sink);
    }
    const std::int64_t age =
        each.notice.time_ms > 0 ? std::max<std::int64_t>(0, now_ms - each.notice.time_ms) : 0;
    each.due_ms = now_ms + std::max<std::int64_t>(0, hold - age);
  }
  tick(now_ms);
}

void RuleEngine::expire_old(std::int64_t now_ms) {
  if (state_.handled.size() > handled_max) {
    std::vector<std::int64_t> times;
    for (const auto& [id, at_ms] : state_.handled) times.push_back(at_ms);
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(handled_max / 4),
                     times.end());
    const std::int64_t cut_ms = times[handled_max / 4];
    std::erase_if(state_.handled, [&](const auto& each) { return each.second <= cut_ms; });
  }
  if (state_.throttles.size() > throttles_max)
    std::erase_if(state_.throttles, [&](const auto& each) {
      const Rule* const rule = find_rule(each.first.substr(0, each.first.find('\n')));
      return rule == nullptr || each.second.first + rule->throttle_ms <= now_ms;
    });
}

}  // namespace earshot::notifier
