#include "notifier/rules.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "common/format.hpp"

namespace earshot::notifier {
namespace {

constexpr std::array<std::string_view, 3> urgencies{"low", "normal", "critical"};
constexpr std::array<std::string_view, 9> kinds{"desktop", "json",   "slack",   "discord", "teams",
                                                "ntfy",    "gotify", "command", "bell"};
// Events that answer earlier notices or name sessions.
constexpr const char* needed_types[] = {"session.*", "turn.*", "tool.*", "api.failed"};

bool any_matches(const std::vector<std::string>& globs, std::string_view text) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return matches_glob(glob, text); });
}

std::string listed(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " " + std::string(last) + " " : ", ";
    text += words[i];
  }
  return text;
}

std::string said_number(const Condition& condition) {
  if (condition.kind == Condition::Kind::duration)
    return say_duration(static_cast<std::int64_t>(condition.comparison.number));
  std::string text = std::to_string(condition.comparison.number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return "$" + text;
}

// Matches the path or its last component.
bool matches_project(const std::vector<std::string>& globs, const EventContext& subject) {
  return any_matches(globs, subject.word("project", View::meta)) ||
         any_matches(globs, subject.word("name", View::meta));
}

std::string miss(const Condition& condition, const EventContext& subject) {
  switch (condition.kind) {
    case Condition::Kind::globs: {
      const bool fits = condition.key == "project"
                            ? matches_project(condition.globs, subject)
                            : any_matches(condition.globs,
                                          subject.word(condition.key == "status" ? std::string_view("state")
                                                                                 : condition.key,
                                                       View::meta));
      if (fits) return {};
      const std::string is = subject.word(condition.key == "status" ? "state" : condition.key, View::meta);
      return condition.key + " is " + (is.empty() ? "unknown" : is) + ", not " +
             listed(condition.globs, "or");
    }
    case Condition::Kind::duration:
      if (!subject.duration_ms) return "it has no duration";
      if (condition.comparison.holds(*subject.duration_ms)) return {};
      return "it took " + format_duration(common::Ms(static_cast<std::int64_t>(*subject.duration_ms))) +
             ", not " + std::string(say_how(condition.comparison.how)) + " " + said_number(condition);
    case Condition::Kind::cost:
      if (!subject.cost_usd) return "the cost is unknown";
      if (condition.comparison.holds(*subject.cost_usd)) return {};
      return "the cost is " + subject.word("cost", View::meta) + ", not " +
             std::string(say_how(condition.comparison.how)) + " " + said_number(condition);
    case Condition::Kind::text:
      for (const Variable& variable : variables()) {
        if (variable.text &&
            re2::RE2::PartialMatch(subject.word(variable.name, View::full), *condition.expression))
          return {};
      }
      return "no text matches " + condition.pattern;
    case Condition::Kind::flag:
      if (subject.fatal == condition.flag) return {};
      return condition.key + " is " + (subject.fatal ? "true" : "false");
  }
  return {};
}

std::string said_condition(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::globs:
      return "the " + condition.key + " is " + listed(condition.globs, "or");
    case Condition::Kind::duration:
      return "it took " + std::string(say_how(condition.comparison.how)) + " " + said_number(condition);
    case Condition::Kind::cost:
      return "the session has cost " + std::string(say_how(condition.comparison.how)) + " " +
             said_number(condition);
    case Condition::Kind::text:
      return "a text matches /" + condition.pattern + "/";
    case Condition::Kind::flag:
      return condition.key + " is " + (condition.flag ? "true" : "false");
  }
  return {};
}

std::string said_quiet(const QuietHours& hours) {
  constexpr const char* names[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
  std::vector<std::string> days;
  for (int day = 0; day < 7; ++day) {
    if ((hours.days >> day & 1) != 0) days.emplace_back(names[day]);
  }
  const auto clock = [](int minutes) {
    char text[8];
    std::snprintf(text, sizeof text, "%02d:%02d", minutes / 60 % 100, minutes % 60);
    return std::string(text);
  };
  std::string text = days.size() == 7 ? "" : listed(days, "and") + " ";
  return text + clock(hours.from) + "–" + clock(hours.to);
}

}  // namespace

std::string_view say_urgency(Urgency urgency) { return urgencies[static_cast<std::size_t>(urgency)]; }
std::string_view say_kind(SinkKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

bool Sink::is_web() const {
  return kind != SinkKind::desktop && kind != SinkKind::command && kind != SinkKind::bell;
}

bool Rule::of_status() const { return on.size() == 1 && on.front() == "status"; }

std::int64_t Rule::hold_of(const Sink& sink) const {
  if (hold_ms) return *hold_ms;
  return of_status() && sink.can_retract() ? 0 : default_hold_ms;
}

const Sink* Rules::sink(std::string_view name) const {
  const auto found = sinks.find(name);
  return found == sinks.end() ? nullptr : &found->second;
}

bool Rules::wants_text() const {
  return std::any_of(rules.begin(), rules.end(), [](const Rule& rule) {
    return rule.view == View::full ||
           std::any_of(rule.conditions.begin(), rule.conditions.end(),
                       [](const Condition& each) { return each.kind == Condition::Kind::text; });
  });
}

std::vector<std::string> Rules::types() const {
  std::vector<std::string> types(std::begin(needed_types), std::end(needed_types));
  for (const Rule& rule : rules) {
    for (const std::string& type : rule.on) {
      const bool is_covered =
          type == "status" ||
          std::any_of(types.begin(), types.end(), [&](const auto& each) { return matches_glob(each, type); });
      if (!is_covered) types.push_back(type);
    }
  }
  return types;
}

Mismatch miss_of(const Rule& rule, const EventContext& subject) {
  if (!any_matches(rule.on, subject.type)) return {"it is not " + listed(rule.on, "or"), false};
  if (!rule.subagents && !subject.agent.empty()) return {"it is an event of a subagent", false};
  std::string why;
  std::size_t misses = 0;
  for (const Condition& condition : rule.conditions) {
    const std::string missed = miss(condition, subject);
    if (missed.empty()) continue;
    if (misses++ == 0) why = missed;
  }
  return {why, misses > 0};
}

std::string explain(const Rule& rule, const Rules& rules) {
  std::string text =
      rule.name +
      (rule.file.empty() ? " (built in)" : " (" + rule.file + ":" + std::to_string(rule.line) + ")");
  text += "\n  When " + (rule.of_status() ? std::string("a session's status changes")
                                          : listed(rule.on, "or") + " arrives");
  for (const Condition& condition : rule.conditions) text += ", " + said_condition(condition);
  text += rule.subagents ? ", subagents included:" : ":";
  for (const std::string& name : rule.sinks) {
    const Sink* const sink = rules.sink(name);
    if (sink == nullptr) continue;
    const std::int64_t hold = rule.hold_of(*sink);
    text += "\n    notify " + name;
    text += hold == 0 ? " immediately" : " after " + say_duration(hold) + " unless answered";
    if (sink->can_retract()) text += "; close when answered";
  }
  text += "\n    title “" + rule.title.text() + "”, body “" + rule.body.text() + "”, urgency " +
          std::string(say_urgency(rule.urgency));
  text += rule.view == View::full ? "\n    with text: prompts, messages and tool output may be sent (view = \"full\")"
                                  : "\n    without text: only names, times and numbers are sent";
  if (rule.throttle_ms > 0) {
    constexpr const char* per[] = {"session", "project", "rule"};
    text += "\n    at most once per " + say_duration(rule.throttle_ms) + " and " +
            per[static_cast<int>(rule.per)];
  }
  if (rule.once != Rule::Once::event)
    text += std::string("\n    once per ") + (rule.once == Rule::Once::turn ? "turn" : "session");
  std::vector<std::string> quiet;
  for (const QuietHours& hours : rule.quiet) quiet.push_back(said_quiet(hours));
  if (!quiet.empty()) {
    text += "\n    not in quiet hours: " + listed(quiet, "and");
    if (rule.after_quiet) text += "; sent when they end, unless answered";
  }
  return text + "\n";
}

std::string explain(const Sink& sink) {
  const auto place = [](const SecretPlace& at) {
    return at.file.empty() ? "environment variable " + at.variable : at.file;
  };
  std::string text = sink.name + ": " + std::string(say_kind(sink.kind));
  if (sink.is_web())
    text += ", to " + (sink.url_at.given() ? "the URL in " + place(sink.url_at) : sink.url);
  if (!sink.command.empty()) text += ", runs";
  for (const std::string& word : sink.command) text += " " + word;
  if (sink.token.given()) text += ", with the token in " + place(sink.token);
  if (sink.secret.given()) text += ", signed with the secret in " + place(sink.secret);
  return text + "\n";
}

}  // namespace earshot::notifier
