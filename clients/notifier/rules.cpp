#include "notifier/rules.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "base/text.hpp"
#include "common/format.hpp"

namespace earshot::notifier {
namespace {

constexpr int day_minutes = 24 * 60;
constexpr std::array<std::string_view, 7> weekdays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

struct Operation {
  std::string_view sign, words;
  bool (*holds)(double value, double number);
};
constexpr Operation operations[] = {
    // the first is the default
    {">=", "at least", [](double value, double number) { return value >= number; }},
    {"<=", "at most", [](double value, double number) { return value <= number; }},
    {"==", "exactly", [](double value, double number) { return value == number; }},
    {"<", "less than", [](double value, double number) { return value < number; }},
    {">", "more than", [](double value, double number) { return value > number; }},
    {"=", "exactly", [](double value, double number) { return value == number; }},
};

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

common::Ms milliseconds(double number) { return common::Ms(static_cast<std::int64_t>(number)); }

// `more than 30s`, `at least $2.5`.
std::string comparison_text(const Condition& condition) {
  std::string text(condition.comparison.words());
  if (condition.kind == Condition::Kind::duration)
    return text + " " + duration_literal(milliseconds(condition.comparison.number));
  text += condition.kind == Condition::Kind::cost ? " $" : " ";
  append_json_number(text, condition.comparison.number);
  const bool is_share =
      condition.kind == Condition::Kind::percent || condition.kind == Condition::Kind::context;
  return is_share ? text + "%" : text;
}

std::string condition_mismatch(const Condition& condition, const EventContext& context) {
  switch (condition.kind) {
    case Condition::Kind::globs: {
      const std::string value =
          context.value(condition.key == "status" ? std::string_view("state") : condition.key, View::meta);
      const bool fits =
          any_matches(condition.globs, value) ||  // a project also by its last component
          (condition.key == "project" && any_matches(condition.globs, context.value("name", View::meta)));
      if (fits) return {};
      return condition.key + " is " + (value.empty() ? "unknown" : value) + ", not " +
             join(condition.globs, "or");
    }
    case Condition::Kind::duration:
      if (!context.duration_ms) return "it has no duration";
      if (condition.comparison.holds(*context.duration_ms)) return {};
      return "it took " + format_duration(milliseconds(*context.duration_ms)) + ", not " +
             comparison_text(condition);
    case Condition::Kind::cost:
      if (!context.cost_usd) return "the cost is unknown";
      if (condition.comparison.holds(*context.cost_usd)) return {};
      return "the cost is " + context.value("cost", View::meta) + ", not " + comparison_text(condition);
    case Condition::Kind::context:
      if (!context.context_percent) return "the size of the context is unknown";
      if (condition.comparison.holds(*context.context_percent)) return {};
      return context.value("context", View::meta) + " of the context is used, not " +
             comparison_text(condition);
    case Condition::Kind::percent:
      if (!context.used_percent) return "it states no share";
      if (condition.comparison.holds(*context.used_percent)) return {};
      return context.value("used", View::meta) + " is used, not " + comparison_text(condition);
    case Condition::Kind::text:
      for (const std::string_view name : text_variables) {
        if (re2::RE2::PartialMatch(context.value(name, View::full), *condition.expression)) return {};
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
      return "it took " + comparison_text(condition);
    case Condition::Kind::cost:
      return "the session has cost " + comparison_text(condition);
    case Condition::Kind::context:
      return comparison_text(condition) + " of the context is used";
    case Condition::Kind::percent:
      return comparison_text(condition) + " of a limit is used";
    case Condition::Kind::text:
      return "a text matches /" + condition.pattern + "/";
    case Condition::Kind::flag:
      return condition.key + " is " + (condition.flag ? "true" : "false");
  }
  return {};
}

// On one line.
std::string as_written(const Template& value) {
  std::string text;
  for (const char c : value.text()) text += c == '\n' ? std::string("\\n") : std::string(1, c);
  return text;
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

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1e15))
    return std::nullopt;
  return value;
}

template <class Parse>
std::optional<Comparison> parse_comparison(std::string_view text, Parse parse) {
  Comparison comparison;
  text = trim(text);
  const auto found = std::find_if(std::begin(operations), std::end(operations),
                                  [&](const Operation& each) { return text.starts_with(each.sign); });
  if (found != std::end(operations)) {
    comparison.operation = static_cast<std::size_t>(found - std::begin(operations));
    text = trim(text.substr(found->sign.size()));
  }
  const auto number = parse(text);
  if (!number) return std::nullopt;
  comparison.number = static_cast<double>(*number);
  return comparison;
}

// `mon`, `mon-fri`, `fri-mon`: bits.
std::optional<std::uint8_t> parse_days(std::string_view text) {
  const auto index_of = [](std::string_view day) {
    return static_cast<std::size_t>(std::find(weekdays.begin(), weekdays.end(), day) - weekdays.begin());
  };
  unsigned days = 0;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t dash = part.find('-');
    const std::size_t first = index_of(part.substr(0, dash));
    const std::size_t last = dash == part.npos ? first : index_of(part.substr(dash + 1));
    if (std::max(first, last) >= weekdays.size()) return std::nullopt;
    for (std::size_t day = first;; day = (day + 1) % weekdays.size()) {
      days |= 1U << day;
      if (day == last) break;
    }
  }
  if (days == 0) return std::nullopt;
  return static_cast<std::uint8_t>(days);
}

// `22:00`, `7:30`, `24:00`: minutes of the day.
std::optional<int> parse_clock(const std::string& text) {
  int hour = 0, minute = 0;
  if (!re2::RE2::FullMatch(text, R"((\d{1,2}):(\d\d))", &hour, &minute)) return std::nullopt;
  const int minutes = hour * 60 + minute;
  if (minute > 59 || minutes > day_minutes) return std::nullopt;
  return minutes;
}

struct Expansion {
  const Lookup& lookup;
  std::string_view rest;
  std::string error = {};

  // Appends the text up to the closing `]`, or to the end. False: it has variables, and all are unknown.
  bool expand(std::size_t depth, std::string& out) {
    bool has_variables = false, any_known = false, closed = depth == 0;
    while (!rest.empty() && error.empty()) {
      const char c = rest.front();
      if (std::string_view("{}[]").find(c) == std::string_view::npos) {
        const std::string_view text = rest.substr(0, rest.find_first_of("{}[]"));
        out += text;
        rest.remove_prefix(text.size());
      } else if (rest.substr(1, 1) == rest.substr(0, 1) && !(c == ']' && depth > 0)) {
        out += c;
        rest.remove_prefix(2);
      } else if (c == '{') {
        const std::size_t end = rest.find('}');
        if (end == rest.npos || end == 1) {
          error = end == 1 ? "{} has no name" : "a } is missing";
          break;
        }
        const std::string value = lookup(rest.substr(1, end - 1));
        has_variables = true;
        any_known = any_known || !value.empty();
        out += value;
        rest.remove_prefix(end + 1);
      } else if (c == '[') {
        if (depth == Template::depth_max) {
          error = "[ ] is nested too deeply";
          break;
        }
        rest.remove_prefix(1);
        std::string inner;
        if (!expand(depth + 1, inner)) continue;
        out += inner;
        has_variables = any_known = true;
      } else if (c == ']' && depth > 0) {
        rest.remove_prefix(1);
        closed = true;
        break;
      } else {
        error = std::string("a ") + c + " without an opening bracket; write " + c + c + " for a literal one";
      }
    }
    if (!closed && error.empty()) error = "a ] is missing";
    return any_known || !has_variables;
  }
};

}  // namespace

std::variant<Template, Template::Error> Template::parse(std::string_view text) {
  if (text.size() > bytes_max) return Error{"is longer than " + std::to_string(bytes_max) + " bytes"};
  std::string ignored;
  const Lookup unknown = [](std::string_view) { return std::string(); };
  Expansion expansion{unknown, text};
  expansion.expand(0, ignored);
  if (!expansion.error.empty()) return Error{expansion.error};
  Template parsed;
  parsed.text_ = text;
  return parsed;
}

std::string Template::fill(const Lookup& lookup) const {
  std::string out;
  Expansion{lookup, text_}.expand(0, out);
  out.erase(out.find_last_not_of(" \t\n") + 1);
  return out;
}

std::vector<std::string> Template::names() const {
  std::vector<std::string> names;
  fill([&](std::string_view name) {
    names.emplace_back(name);
    return std::string();
  });
  return names;
}

bool Comparison::holds(double value) const { return operations[operation].holds(value, number); }
std::string_view Comparison::words() const { return operations[operation].words; }

std::optional<Comparison> parse_duration_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) -> std::optional<std::int64_t> {
    const auto duration = parse_duration(rest, rule_duration_max);
    if (!duration) return std::nullopt;
    return duration->count();
  });
}

std::optional<Comparison> parse_number_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) {
    if (rest.starts_with('$')) rest.remove_prefix(1);
    return parse_number(rest);
  });
}

std::optional<Comparison> parse_percent_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) {
    if (rest.ends_with('%')) rest.remove_suffix(1);
    return parse_number(trim(rest));
  });
}

bool QuietHours::holds(LocalTime now) const {
  const auto on = [&](int weekday) { return (days >> weekday & 1) != 0; };
  if (from < to) return on(now.weekday) && now.minute >= from && now.minute < to;
  return (on(now.weekday) && now.minute >= from) || (on((now.weekday + 6) % 7) && now.minute < to);
}

std::optional<QuietHours> parse_quiet_hours(std::string_view text) {
  static const re2::RE2 format(R"(\s*(?:([a-z,-]+)(?:\s+|$))?(?:(\d{1,2}:\d\d)\s*-\s*(\d{1,2}:\d\d)\s*)?)");
  QuietHours hours;
  std::string days, from, to;
  if (!re2::RE2::FullMatch(std::string(text), format, &days, &from, &to)) return std::nullopt;
  if (!days.empty()) {
    const auto parsed = parse_days(days);
    if (!parsed) return std::nullopt;
    hours.days = *parsed;
    if (from.empty()) return hours;
  }
  const auto begin = parse_clock(from), end = parse_clock(to);
  if (!begin || !end || *begin == *end || *begin == day_minutes) return std::nullopt;
  hours.from = *begin;
  hours.to = *end;
  return hours;
}

bool Sink::uses_http() const {
  return kind != SinkKind::desktop && kind != SinkKind::command && kind != SinkKind::bell;
}

bool Rule::is_status_rule() const { return on.size() == 1 && on.front() == "status"; }

const Condition* Rule::context_condition() const {
  const auto found = std::find_if(conditions.begin(), conditions.end(), [](const Condition& each) {
    return each.kind == Condition::Kind::context;
  });
  return found == conditions.end() ? nullptr : &*found;
}

std::int64_t Rule::hold_ms_for(const Sink& sink) const {
  if (hold_ms) return *hold_ms;
  return is_status_rule() && sink.can_retract() ? 0 : default_hold_ms;
}

const Sink* Rules::sink(std::string_view name) const {
  const auto found = sinks.find(name);
  return found == sinks.end() ? nullptr : &found->second;
}

bool Rules::is_used(std::string_view sink) const {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), sink) != names.end();
  };
  return std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) {
    return has(rule.sinks) || std::any_of(rule.escalations.begin(), rule.escalations.end(),
                                          [&](const Escalation& each) { return has(each.sinks); });
  });
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
          type == "status" || type == "done" ||
          std::any_of(types.begin(), types.end(), [&](const auto& each) { return matches_glob(each, type); });
      if (!is_covered) types.push_back(type);
    }
  }
  for (const char* const type : {"usage.updated", "compaction.finished"}) {
    if (uses_context() &&
        std::none_of(types.begin(), types.end(), [&](const auto& each) { return matches_glob(each, type); }))
      types.emplace_back(type);
  }
  return types;
}

static bool is_about_figures(const Condition& condition) {
  return condition.kind == Condition::Kind::cost || condition.kind == Condition::Kind::context;
}

bool Rule::uses_figures() const {
  return std::any_of(conditions.begin(), conditions.end(), is_about_figures);
}

bool Rules::uses_context() const {
  return std::any_of(rules.begin(), rules.end(),
                     [](const Rule& rule) { return rule.context_condition() != nullptr; });
}

Mismatch find_mismatch(const Rule& rule, const EventContext& context, bool by_figures) {
  if (!any_matches(rule.on, context.type)) return {"it is not " + join(rule.on, "or"), false};
  if (!rule.subagents && !context.agent.empty()) return {"it is an event of a subagent", false};
  if (!rule.headless && context.is_headless) return {"it runs without a terminal", true};
  std::string why;
  std::size_t mismatch_count = 0;
  for (const Condition& condition : rule.conditions) {
    if (!by_figures && is_about_figures(condition)) continue;
    const std::string reason = condition_mismatch(condition, context);
    if (reason.empty()) continue;
    // A rule for failed turns is not about the others.
    if (condition.key == "outcome" && context.type == "turn.finished") return {reason, false};
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
  for (const Escalation& each : rule.escalations)
    text += "\n    notify " + join(each.sinks, "and") + " if it is unanswered " +
            duration_literal(common::Ms(each.after_ms)) + " after it was sent";
  text += "\n    title “" + as_written(rule.title) + "”, body “" + as_written(rule.body) + "”, urgency " +
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
  if (rule.context_condition() != nullptr)
    text += "\n    once per session, and again after its context was compacted";
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
  std::string text = sink.name + ": " + std::string(sink_kind_names[static_cast<std::size_t>(sink.kind)]);
  if (sink.uses_http())
    text += ", to " + (sink.url_source.is_set() ? "the URL in " + source_text(sink.url_source) : sink.url);
  if (!sink.command.empty()) text += ", runs";
  for (const std::string& argument : sink.command) text += " " + argument;
  if (sink.token.is_set()) text += ", with the token in " + source_text(sink.token);
  if (sink.secret.is_set()) text += ", signed with the secret in " + source_text(sink.secret);
  return text + "\n";
}

}  // namespace earshot::notifier
