#include "notifier/rule_engine.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "common/format.hpp"

namespace earshot::notifier {
namespace {

constexpr std::int64_t minute_ms = 60'000;
constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max() / 2;  // until the replay ends

std::string lane_of(const Notice& notice) {
  std::string lane = notice.rule;
  for (const std::string& sink : notice.sinks) lane += '\n' + sink;
  return lane;
}

// Users ask why these caused no notice, so mismatches are recorded.
bool is_asked_after(const EventContext& subject) {
  return subject.agent.empty() && (subject.type == "turn.finished" || subject.words.contains("reason"));
}

bool is_quiet(const Rule& rule, LocalTime now) {
  return std::any_of(rule.quiet.begin(), rule.quiet.end(),
                     [&](const QuietHours& each) { return each.holds(now); });
}

}  // namespace

RuleEngine::RuleEngine(const Rules& rules, Clock clock, Memory memory)
    : rules_(rules), clock_(std::move(clock)), memory_(std::move(memory)) {}

const Rule* RuleEngine::find_rule(std::string_view name) const {
  const auto found = std::find_if(rules_.rules.begin(), rules_.rules.end(),
                                  [&](const Rule& rule) { return rule.name == name; });
  return found == rules_.rules.end() ? nullptr : &*found;
}

void RuleEngine::decision(std::string_view word, const Notice& notice, std::string why, std::int64_t now_ms) {
  decisions_.push_back({now_ms, std::string(word), notice.rule, notice.type, notice.session, notice.project,
                        notice.title, std::move(why)});
}

Notice RuleEngine::made(const Rule& rule, const EventContext& subject, std::vector<std::string> sinks) {
  const Lookup lookup = [&](std::string_view name) { return subject.word(name, rule.view); };
  Notice notice;
  std::string about = subject.id;
  if (rule.once == Rule::Once::session) about = subject.host + '\n' + subject.session;
  if (rule.once == Rule::Once::turn) about = subject.stream + '\n' + subject.word("turn", View::meta);
  notice.id = digest(rule.name + '\n' + about);
  notice.rule = rule.name;
  notice.sinks = std::move(sinks);
  notice.slot = subject.session;
  notice.title = clean_line(rule.title.fill(lookup), Notice::title_columns_max);
  notice.body = clean_lines(rule.body.fill(lookup));
  notice.urgency = rule.urgency;
  notice.time_ms = subject.time_ms;
  notice.type = subject.type;
  notice.host = subject.host;
  notice.session = subject.session;
  notice.project = subject.word("project", View::meta);
  notice.event = frame_for(subject.frame, rule.view);
  if (notice.event.size() > Notice::event_bytes_max) notice.event.clear();
  notice.matters = {{subject.id, subject.session, subject.type == "status"}};
  return notice;
}

void RuleEngine::resume(std::int64_t now_ms) {
  std::erase_if(memory_.held, [&](Memory::Held& each) {
    const Rule* const rule = find_rule(each.notice.rule);
    const std::int64_t age = each.notice.time_ms > 0 ? now_ms - each.notice.time_ms : 0;
    const bool may_be_old = rule != nullptr && rule->after_quiet;
    if (age > rules_.max_age_ms && !may_be_old) {
      decision("too old", each.notice, "it happened " + format_duration(common::Ms(age)) + " ago", now_ms);
      changed_ = true;
      return true;
    }
    each.due_ms = each.due_ms >= forever ? now_ms + grace_ms : std::max(each.due_ms, now_ms + grace_ms);
    return false;
  });
}

void RuleEngine::begin() {
  missed_ = true;
  seen_.clear();
}

void RuleEngine::take(const common::Fields& frame, std::string_view json, std::int64_t now_ms) {
  const std::string_view type = frame.text("type"), session = frame.text("session");
  session_cache_.update(frame);
  if (session.empty()) return;
  if (type == "session") {
    seen_.emplace(session);
    if (frame.object("status")) take_status(session_cache_.status_of(frame, json, now_ms), now_ms);
    return;
  }
  if (type == "status") {
    seen_.emplace(session);
    return take_status(session_cache_.subject(frame, json, now_ms), now_ms);
  }
  if (frame.text("cursor").empty()) return;
  if (type == "turn.started" && frame.text("agent").empty())
    answered([&](const AckKey& matter) { return !matter.of_status && matter.session == session; },
             "the next turn began", now_ms);
  const bool wanted = std::any_of(rules_.rules.begin(), rules_.rules.end(), [&](const Rule& rule) {
    return std::any_of(rule.on.begin(), rule.on.end(),
                       [&](const auto& on) { return matches_glob(on, type); });
  });
  if (wanted) consider(session_cache_.subject(frame, json, now_ms), now_ms);
}

// An offline host answers nothing: sent notices stay open, held ones wait for the host.
void RuleEngine::take_status(const EventContext& subject, std::int64_t now_ms) {
  if (session_cache_.away_id(subject.session) == subject.id) return consider(subject, now_ms);
  answered(
      [&](const AckKey& matter) {
        return matter.of_status && matter.session == subject.session && matter.id != subject.id;
      },
      "the session is " + subject.word("state", View::meta), now_ms);
  consider(subject, now_ms);
}

void RuleEngine::consider(const EventContext& subject, std::int64_t now_ms) {
  std::size_t none = decisions_.size();
  for (const Rule& rule : rules_.rules) {
    const Mismatch miss = miss_of(rule, subject);
    if (!miss.why.empty()) {
      // One line is enough: the mismatch of the rule that came closest.
      if (miss.near && is_asked_after(subject) && decisions_.size() == none) {
        Notice notice;
        notice.rule = rule.name;
        notice.type = subject.type;
        notice.session = subject.session;
        notice.project = subject.word("project", View::meta);
        if (!missed_) decision("no match", notice, miss.why, now_ms);
      }
      continue;
    }
    if (decisions_.size() > none && decisions_.back().word == "no match") decisions_.pop_back();
    consider(rule, subject, now_ms);
    none = decisions_.size() + 1;  // a rule matched: mismatches of others are not of interest
  }
}

void RuleEngine::consider(const Rule& rule, const EventContext& subject, std::int64_t now_ms) {
  std::map<std::int64_t, std::vector<std::string>> lanes;  // hold → sinks
  for (const std::string& name : rule.sinks) {
    if (const Sink* const sink = rules_.sink(name)) lanes[rule.hold_of(*sink)].push_back(name);
  }
  if (lanes.empty()) return;
  const Notice whole = made(rule, subject, {});
  if (!memory_.handled.emplace(whole.id, now_ms).second) {
    if (subject.type != "status" && rule.once == Rule::Once::event)
      decision("twice", whole, "it is a duplicate", now_ms);
    return;
  }
  changed_ = true;
  const std::int64_t age = subject.time_ms > 0 ? std::max<std::int64_t>(0, now_ms - subject.time_ms) : 0;
  const bool is_event = subject.type != "status";
  std::string why;
  if (age > rules_.max_age_ms)
    why = "it happened " + format_duration(common::Ms(age)) + " ago, more than " +
          say_duration(rules_.max_age_ms);
  else if (is_event && missed_ && subject.time_ms == 0)
    why = "it has no time";
  else if (is_event && subject.time_ms > 0 && subject.time_ms < memory_.since_ms)
    why = "it happened before the notifier was first started";
  if (!why.empty()) return decision("too old", whole, std::move(why), now_ms);
  const bool is_past = missed_ && is_event;  // a later event may answer it
  for (auto& [hold, sinks] : lanes) {
    Memory::Held held{made(rule, subject, std::move(sinks)),
                      is_past ? forever : now_ms + std::max<std::int64_t>(0, hold - age)};
    if (held.due_ms <= now_ms) {
      release(std::move(held), now_ms);
      continue;
    }
    decision(
        "held", held.notice,
        is_past ? "until missed events are read" : "for " + say_duration(hold) + " after it happened",
        now_ms);
    memory_.held.push_back(std::move(held));
  }
  while (memory_.held.size() > held_max) {
    Memory::Held first = std::move(memory_.held.front());
    memory_.held.erase(memory_.held.begin());
    tell(std::move(first.notice), now_ms);
  }
  expire_old(now_ms);
}

bool RuleEngine::is_throttled(const Rule& rule, const Notice& notice, std::int64_t now_ms) {
  if (rule.throttle_ms == 0) return false;
  const std::string of = rule.per == Rule::Per::rule      ? ""
                         : rule.per == Rule::Per::project ? notice.project
                                                          : notice.session;
  auto& last = memory_.throttles[rule.name + '\n' + of];
  if (last.second == notice.id || last.first + rule.throttle_ms <= now_ms) {
    if (last.second != notice.id) last = {now_ms, notice.id};
    return false;
  }
  return true;
}

// A held notice is due: applies quiet hours, throttling and grouping.
void RuleEngine::release(Memory::Held held, std::int64_t now_ms) {
  changed_ = true;
  const Rule* const rule = find_rule(held.notice.rule);
  if (rule == nullptr)
    return tell(std::move(held.notice), now_ms);  // the rule was removed before a restart
  if (is_quiet(*rule, clock_(now_ms))) {
    if (!rule->after_quiet) return decision("quiet", held.notice, "these are quiet hours", now_ms);
    held.due_ms = now_ms - now_ms % minute_ms + minute_ms;
    memory_.held.push_back(std::move(held));
    return;
  }
  if (is_throttled(*rule, held.notice, now_ms))
    return decision("throttled", held.notice,
                    "less than " + say_duration(rule->throttle_ms) + " after the last one", now_ms);
  const std::string lane = lane_of(held.notice);
  std::erase_if(recent_, [&](const auto& each) { return each.second.at_ms + group_ms <= now_ms; });
  const auto many = std::count_if(recent_.begin(), recent_.end(),
                                  [&](const auto& each) { return each.second.lane == lane; });
  const auto gathering =
      std::find_if(memory_.held.begin(), memory_.held.end(),
                   [&](const Memory::Held& each) { return each.gathered && lane_of(each.notice) == lane; });
  if (static_cast<std::size_t>(many) < group_after && gathering == memory_.held.end())
    return tell(std::move(held.notice), now_ms);
  held.gathered = true;
  held.due_ms = gathering != memory_.held.end() ? gathering->due_ms : now_ms + group_ms;
  decision("grouped", held.notice, "too many at once: sent as one notice", now_ms);
  memory_.held.push_back(std::move(held));
}

void RuleEngine::tell(Notice notice, std::int64_t now_ms) {
  changed_ = true;
  std::string to;
  for (const std::string& sink : notice.sinks) to += (to.empty() ? "to " : ", ") + sink;
  decision("told", notice, to, now_ms);
  // A desktop shows one notice per slot. Notices of other sinks stay open.
  std::erase_if(memory_.open,
                [&](const Notice& each) { return each.slot == notice.slot && each.sinks == notice.sinks; });
  recent_[notice.id] = {now_ms, lane_of(notice)};
  Notice open = notice;
  open.event.clear();
  open.body.clear();
  memory_.open.push_back(std::move(open));
  if (memory_.open.size() > open_max) memory_.open.erase(memory_.open.begin());
  notices_.push_back(std::move(notice));
}

void RuleEngine::tell_group(std::vector<Memory::Held> group, std::int64_t now_ms) {
  if (group.size() == 1) return tell(std::move(group.front().notice), now_ms);
  Notice whole;
  const Notice& first = group.front().notice;
  whole.rule = first.rule;
  whole.sinks = first.sinks;
  whole.slot = "group " + first.rule;
  whole.title = std::to_string(group.size()) + " notices: " + first.rule;
  whole.urgency = first.urgency;
  whole.type = first.type;
  whole.host = first.host;
  std::string ids;
  std::size_t lines = 0;
  for (const Memory::Held& each : group) {
    ids += each.notice.id + '\n';
    whole.time_ms = std::max(whole.time_ms, each.notice.time_ms);
    whole.matters.insert(whole.matters.end(), each.notice.matters.begin(), each.notice.matters.end());
    if (lines++ >= group_lines_max) continue;
    const std::string body = each.notice.body.substr(0, each.notice.body.find('\n'));
    whole.body += each.notice.title + (body.empty() ? "" : " — " + body) + '\n';
  }
  if (lines > group_lines_max) whole.body += "and " + std::to_string(lines - group_lines_max) + " more";
  if (whole.body.ends_with('\n')) whole.body.pop_back();
  whole.id = digest(ids);
  tell(std::move(whole), now_ms);
}

void RuleEngine::tick(std::int64_t now_ms) {
  std::vector<Memory::Held> due;
  const auto split = std::stable_partition(
      memory_.held.begin(), memory_.held.end(),
      [&](const Memory::Held& each) { return each.due_ms > now_ms || waits_for_host(each); });
  due.assign(std::make_move_iterator(split), std::make_move_iterator(memory_.held.end()));
  memory_.held.erase(split, memory_.held.end());
  std::map<std::string, std::vector<Memory::Held>> groups;
  for (Memory::Held& each : due) {
    if (each.gathered) {
      groups[lane_of(each.notice)].push_back(std::move(each));
    } else {
      release(std::move(each), now_ms);
    }
  }
  for (auto& [lane, group] : groups) {
    tell_group(std::move(group), now_ms);
  }
}

std::optional<std::int64_t> RuleEngine::next_ms() const {
  std::optional<std::int64_t> next;
  for (const Memory::Held& each : memory_.held) {
    if (each.due_ms >= forever || waits_for_host(each)) continue;
    if (!next || each.due_ms < *next) next = each.due_ms;
  }
  return next;
}

bool RuleEngine::waits_for_host(const Memory::Held& held) const {
  const auto& matters = held.notice.matters;
  if (matters.empty() || !matters.front().of_status) return false;
  const std::string_view away = session_cache_.away_id(matters.front().session);
  return !away.empty() && matters.front().id != away;
}

void RuleEngine::answered(const std::function<bool(const AckKey&)>& is_answered, std::string_view how,
                          std::int64_t now_ms) {
  std::erase_if(memory_.held, [&](const Memory::Held& each) {
    if (each.notice.matters.empty() || !is_answered(each.notice.matters.front())) return false;
    decision("answered", each.notice, std::string(how) + ": not sent", now_ms);
    changed_ = true;
    return true;
  });
  std::erase_if(memory_.open, [&](Notice& each) {
    if (std::erase_if(each.matters, is_answered) == 0) return false;
    changed_ = true;
    if (!each.matters.empty()) return false;  // other notices of the group are unanswered
    decision("closed", each, std::string(how), now_ms);
    recent_.erase(each.id);
    closings_.push_back({each.id, each.slot, each.sinks});
    return true;
  });
}

void RuleEngine::caught_up(std::int64_t now_ms) {
  if (!missed_) return;
  missed_ = false;
  answered([&](const AckKey& matter) { return matter.of_status && !seen_.contains(matter.session); },
           "the session ended", now_ms);
  for (Memory::Held& each : memory_.held) {
    if (each.due_ms < forever) continue;
    const Rule* const rule = find_rule(each.notice.rule);
    std::int64_t hold = default_hold_ms;
    if (rule != nullptr && !each.notice.sinks.empty()) {
      if (const Sink* const sink = rules_.sink(each.notice.sinks.front())) hold = rule->hold_of(*sink);
    }
    const std::int64_t age =
        each.notice.time_ms > 0 ? std::max<std::int64_t>(0, now_ms - each.notice.time_ms) : 0;
    each.due_ms = now_ms + std::max<std::int64_t>(0, hold - age);
  }
  tick(now_ms);
}

void RuleEngine::expire_old(std::int64_t now_ms) {
  if (memory_.handled.size() > handled_max) {
    std::vector<std::int64_t> times;
    for (const auto& [id, at_ms] : memory_.handled) times.push_back(at_ms);
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(handled_max / 4),
                     times.end());
    const std::int64_t cut_ms = times[handled_max / 4];
    std::erase_if(memory_.handled, [&](const auto& each) { return each.second <= cut_ms; });
  }
  if (memory_.throttles.size() > throttles_max)
    std::erase_if(memory_.throttles, [&](const auto& each) {
      const Rule* const rule = find_rule(each.first.substr(0, each.first.find('\n')));
      return rule == nullptr || each.second.first + rule->throttle_ms <= now_ms;
    });
}

}  // namespace earshot::notifier
