#include "notifier/rules.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "base/quantities.hpp"
#include "base/text.hpp"
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

std::string join(const std::vector<std::string>& items, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " " + std::string(last) + " " : ", ";
    text += items[i];
  }
  return text;
}

std::string number_text(const Condition& condition) {
  if (condition.kind == Condition::Kind::duration)
    return duration_literal(common::Ms(static_cast<std::int64_t>(condition.comparison.number)));
  std::string text = std::to_string(condition.comparison.number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return "$" + text;
}

// Matches the path or its last component.
bool matches_project(const std::vector<std::string>& globs, const EventContext& context) {
  return any_matches(globs, context.value("project", View::meta)) ||
         any_matches(globs, context.value("name", View::meta));
}

std::string condition_mismatch(const Condition& condition, const EventContext& context) {
  switch (condition.kind) {
    case Condition::Kind::globs: {
      const bool fits = condition.key == "project"
                            ? matches_project(condition.globs, context)
                            : any_matches(condition.globs,
                                          context.value(condition.key == "status" ? std::string_view("state")
                                                                                  : condition.key,
                                                        View::meta));
      if (fits) return {};
      const std::string value =
          context.value(condition.key == "status" ? "state" : condition.key, View::meta);
      return condition.key + " is " + (value.empty() ? "unknown" : value) + ", not " +
             join(condition.globs, "or");
    }
    case Condition::Kind::duration:
      if (!context.duration_ms) return "it has no duration";
      if (condition.comparison.holds(*context.duration_ms)) return {};
      return "it took " + format_duration(common::Ms(static_cast<std::int64_t>(*context.duration_ms))) +
             ", not " + std::string(operator_text(condition.comparison.op)) + " " + number_text(condition);
    case Condition::Kind::cost:
      if (!context.cost_usd) return "the cost is unknown";
      if (condition.comparison.holds(*context.cost_usd)) return {};
      return "the cost is " + context.value("cost", View::meta) + ", not " +
             std::string(operator_text(condition.comparison.op)) + " " + number_text(condition);
    case Condition::Kind::text:
      for (const Variable& variable : variables()) {
        if (variable.text &&
            re2::RE2::PartialMatch(context.value(variable.name, View::full), *condition.expression))
          return {};
      }
      return "no text matches " + condition.pattern;
    case Condition::Kind::flag:
      if (context.fatal == condition.flag) return {};
      return condition.key + " is " + (context.fatal ? "true" : "false");
  }
  return {};
}

std::string condition_text(const Condition& condition) {
  switch (condition.kind) {
    case Condition::Kind::globs:
      return "the " + condition.key + " is " + join(condition.globs, "or");
    case Condition::Kind::duration:
      return "it took " + std::string(operator_text(condition.comparison.op)) + " " + number_text(condition);
    case Condition::Kind::cost:
      return "the session has cost " + std::string(operator_text(condition.comparison.op)) + " " +
             number_text(condition);
    case Condition::Kind::text:
      return "a text matches /" + condition.pattern + "/";
    case Condition::Kind::flag:
      return condition.key + " is " + (condition.flag ? "true" : "false");
  }
  return {};
}

std::string quiet_hours_text(const QuietHours& hours) {
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
  std::string text = days.size() == 7 ? "" : join(days, "and") + " ";
  return text + clock(hours.from) + "–" + clock(hours.to);
}

}  // namespace

std::string_view urgency_name(Urgency urgency) { return urgencies[static_cast<std::size_t>(urgency)]; }
std::string_view kind_name(SinkKind kind) { return kinds[static_cast<std::size_t>(kind)]; }

bool Sink::uses_http() const {
  return kind != SinkKind::desktop && kind != SinkKind::command && kind != SinkKind::bell;
}

bool Rule::is_status_rule() const { return on.size() == 1 && on.front() == "status"; }

std::int64_t Rule::hold_ms_for(const Sink& sink) const {
  if (hold_ms) return *hold_ms;
  return is_status_rule() && sink.can_retract() ? 0 : default_hold_ms;
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

Mismatch find_mismatch(const Rule& rule, const EventContext& context) {
  if (!any_matches(rule.on, context.type)) return {"it is not " + join(rule.on, "or"), false};
  if (!rule.subagents && !context.agent.empty()) return {"it is an event of a subagent", false};
  std::string why;
  std::size_t mismatch_count = 0;
  for (const Condition& condition : rule.conditions) {
    const std::string reason = condition_mismatch(condition, context);
    if (reason.empty()) continue;
    if (mismatch_count++ == 0) why = reason;
  }
  return {why, mismatch_count > 0};
}

std::string explain(const Rule& rule, const Rules& rules) {
  std::string text =
      rule.name +
      (rule.file.empty() ? " (built in)" : " (" + rule.file + ":" + std::to_string(rule.line) + ")");
  text += "\n  When " + (rule.is_status_rule() ? std::string("a session's status changes")
                                               : join(rule.on, "or") + " arrives");
  for (const Condition& condition : rule.conditions) text += ", " + condition_text(condition);
  text += rule.subagents ? ", subagents included:" : ":";
  for (const std::string& name : rule.sinks) {
    const Sink* const sink = rules.sink(name);
    if (sink == nullptr) continue;
    const std::int64_t hold = rule.hold_ms_for(*sink);
    text += "\n    notify " + name;
    text += hold == 0 ? " immediately" : " after " + duration_literal(common::Ms(hold)) + " unless answered";
    if (sink->can_retract()) text += "; close when answered";
  }
  text += "\n    title “" + rule.title.text() + "”, body “" + rule.body.text() + "”, urgency " +
          std::string(urgency_name(rule.urgency));
  text += rule.view == View::full
              ? "\n    with text: prompts, messages and tool output may be sent (view = \"full\")"
              : "\n    without text: only names, times and numbers are sent";
  if (rule.throttle_ms > 0) {
    constexpr const char* per[] = {"session", "project", "rule"};
    text += "\n    at most once per " + duration_literal(common::Ms(rule.throttle_ms)) + " and " +
            per[static_cast<int>(rule.per)];
  }
  if (rule.once != Rule::Once::event)
    text += std::string("\n    once per ") + (rule.once == Rule::Once::turn ? "turn" : "session");
  std::vector<std::string> quiet;
  for (const QuietHours& hours : rule.quiet) quiet.push_back(quiet_hours_text(hours));
  if (!quiet.empty()) {
    text += "\n    not in quiet hours: " + join(quiet, "and");
    if (rule.after_quiet) text += "; sent when they end, unless answered";
  }
  return text + "\n";
}

std::string explain(const Sink& sink) {
  const auto source_text = [](const SecretSource& source) {
    return source.file.empty() ? "environment variable " + source.variable : source.file;
  };
  std::string text = sink.name + ": " + std::string(kind_name(sink.kind));
  if (sink.uses_http())
    text += ", to " + (sink.url_source.is_set() ? "the URL in " + source_text(sink.url_source) : sink.url);
  if (!sink.command.empty()) text += ", runs";
  for (const std::string& argument : sink.command) text += " " + argument;
  if (sink.token.is_set()) text += ", with the token in " + source_text(sink.token);
  if (sink.secret.is_set()) text += ", signed with the secret in " + source_text(sink.secret);
  return text + "\n";
}

}  // namespace earshot::notifier
