// The rules and sinks of notify.toml as plain data. Read by rules_file.hpp, applied by
// rule_engine.hpp.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "notifier/session_cache.hpp"

namespace re2 {
class RE2;
}

namespace earshot::notifier {

/// The value of a variable; empty: unknown.
using Lookup = std::function<std::string(std::string_view name)>;

/// `{name}` is replaced by the variable's value. `[…]` is omitted if all its variables are unknown. `{{ }} [[
/// ]]` are literal brackets.
class Template {
 public:
  static constexpr std::size_t bytes_max = 2048;  // longer templates are refused
  static constexpr std::size_t depth_max = 4;     // of nested [ ]

  struct Error {
    std::string why;
  };
  static std::variant<Template, Error> parse(std::string_view text);

  /// The text with values inserted, without trailing blanks.
  std::string fill(const Lookup& lookup) const;
  /// The variables used.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;  // valid
};

/// The longest duration that a rule may contain.
constexpr std::chrono::milliseconds rule_duration_max = std::chrono::hours(24) * 366;

enum class Urgency { low, normal, critical };
constexpr std::string_view urgency_names[] = {"low", "normal", "critical"};
constexpr std::string_view urgency_name(Urgency urgency) {
  return urgency_names[static_cast<std::size_t>(urgency)];
}

enum class SinkKind { desktop, json, slack, discord, teams, ntfy, gotify, command, bell };
constexpr std::string_view sink_kind_names[] = {"desktop", "json",   "slack",   "discord", "teams",
                                                "ntfy",    "gotify", "command", "bell"};

/// Where a secret is stored. The secret itself is never kept in the rules.
struct SecretSource {
  std::string file, variable;  // at most one of them is set
  bool is_set() const { return !file.empty() || !variable.empty(); }
};

struct Sink {
  std::string name;
  SinkKind kind = SinkKind::desktop;
  std::string url;
  SecretSource url_source, token, secret;  // url_source: a URL that is itself a secret
  std::string ca_file;                     // trusted certificates; empty: those of the system
  std::vector<std::string> command;
  std::string tty;  // bell; empty: the controlling terminal
  std::int64_t timeout_ms = 10'000;
  int line = 0;  // in the rules file; 0: built in
  /// Whether a delivered notice can be closed again, which happens when the user has answered.
  bool can_retract() const { return kind == SinkKind::desktop; }
  bool uses_http() const;
};

/// A comparison with a number: `>30s`, `>=1m`, `<5`, `=0`. A bare number means "at least".
struct Comparison {
  std::size_t operation = 0;  // of a table in rules.cpp
  double number = 0;
  bool holds(double value) const;
  /// "more than", "at least", …
  std::string_view words() const;
};
std::optional<Comparison> parse_duration_comparison(std::string_view text);  // in milliseconds
std::optional<Comparison> parse_number_comparison(std::string_view text);
std::optional<Comparison> parse_percent_comparison(std::string_view text);  // `>80%`; the sign may be missing

/// A local time of the week.
struct LocalTime {
  int weekday = 0;  // 0: Monday
  int minute = 0;   // of the day
};

/// Hours without notices: `22:00-07:00`, `sat,sun`, `mon-fri 22:00-07:00`. A range over midnight belongs to
/// the day on which it begins.
struct QuietHours {
  std::uint8_t days = 0x7f;  // bit 0: Monday
  int from = 0, to = 24 * 60;
  bool holds(LocalTime now) const;
};
std::optional<QuietHours> parse_quiet_hours(std::string_view text);

/// One condition of a rule.
struct Condition {
  enum class Kind { globs, duration, cost, percent, context, text, flag };
  std::string key;  // as in the file
  Kind kind = Kind::globs;
  std::vector<std::string> globs;  // matches if any of them does
  Comparison comparison;
  std::string pattern;  // a regular expression, as written
  std::shared_ptr<re2::RE2> expression;
  bool flag = false;
};

/// Further sinks that receive a notice which is still unanswered some time after it was sent.
struct Escalation {
  std::int64_t after_ms = 0;
  std::vector<std::string> sinks;
};

struct Rule {
  static constexpr std::size_t escalations_max = 8;  // more are refused
  std::string name;
  std::string file;  // empty: built in
  int line = 0;
  std::vector<std::string> on;  // globs of types
  std::vector<Condition> conditions;
  bool subagents = false;  // also matches events of subagents
  bool headless = false;   // also matches `done` of runs without a terminal
  std::vector<std::string> sinks;
  Template title, body;
  Urgency urgency = Urgency::normal;
  std::optional<std::int64_t> hold_ms;  // absent: see hold_ms_for()
  std::int64_t throttle_ms = 0;
  enum class Per { session, project, rule } per = Per::session;
  std::vector<QuietHours> quiet;
  bool after_quiet = false;  // notify when quiet hours end, unless answered
  enum class Once { event, turn, session } once = Once::event;
  View view = View::meta;
  std::vector<Escalation> escalations;  // the earliest first; no sink of the rule, none twice

  bool is_status_rule() const;
  /// The condition on the context; null: none. Such a rule notifies once per session and compaction.
  const Condition* context_condition() const;
  /// Whether it has a condition on the cost or the context.
  bool uses_figures() const;
  /// How long a notice is held for the user's answer before it is sent to `sink`. Default: 0 for status rules
  /// on sinks that can retract, default_hold_ms otherwise.
  std::int64_t hold_ms_for(const Sink& sink) const;
};

constexpr std::int64_t default_hold_ms = 5000;

struct Rules {
  static constexpr std::size_t rules_max = 100;  // more are refused
  static constexpr std::size_t sinks_max = 16;   // more are refused
  std::vector<Rule> rules;
  std::map<std::string, Sink, std::less<>> sinks;
  std::int64_t max_age_ms = 5 * 60 * 1000;

  const Sink* sink(std::string_view name) const;
  /// Whether a rule sends notices to it.
  bool is_used(std::string_view sink) const;
  /// Whether any rule sends text or matches on it.
  bool wants_text() const;
  /// Whether any rule has a condition on the context.
  bool uses_context() const;
  /// The event types to subscribe to: those that rules name, and those that answer notices.
  std::vector<std::string> types() const;
};

/// Why a rule does not match; empty: it matches. `near`: the event type fits and only conditions fail.
struct Mismatch {
  std::string why;
  bool near = false;
};
/// Without `by_figures`, conditions on the cost and the context are left out.
Mismatch find_mismatch(const Rule& rule, const EventContext& context, bool by_figures = true);

/// A description for `check`, one sentence per line.
std::string explain(const Rule& rule, const Rules& rules);
std::string explain(const Sink& sink);

}  // namespace earshot::notifier
