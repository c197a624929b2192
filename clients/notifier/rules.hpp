// What the rules file says, understood. Plain data; rules_file.hpp makes it, decider.hpp follows it.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"
#include "notifier/event_context.hpp"
#include "notifier/template.hpp"
#include "notifier/value_parsers.hpp"

namespace re2 {
class RE2;
}

namespace earshot::notifier {

enum class Urgency { low, normal, critical };
std::string_view say_urgency(Urgency urgency);

enum class SinkKind { desktop, json, slack, discord, teams, ntfy, gotify, command, bell };

/// What is said of a secret: where it is, never what it is.
struct SecretPlace {
  std::string file, variable;  // one of them, or none
  bool given() const { return !file.empty() || !variable.empty(); }
};

struct Sink {
  std::string name;
  SinkKind kind = SinkKind::desktop;
  std::string url;
  SecretPlace url_at, token, secret;  // the url where it is itself a secret
  std::string ca_file;                // who is trusted, besides the usual ones; empty: nobody
  std::vector<std::string> command;
  std::string tty;  // bell; empty: the terminal that the program was started from
  std::int64_t timeout_ms = 10'000;
  int line = 0;  // in the file; 0: built in
  /// What was shown can be taken back: it is closed once answered.
  bool can_retract() const { return kind == SinkKind::desktop; }
  bool is_web() const;
};
std::string_view say_kind(SinkKind kind);

/// One thing that a rule asks of a happening.
struct Condition {
  enum class Kind { globs, duration, cost, text, flag };
  std::string key;  // as in the file
  Kind kind = Kind::globs;
  std::vector<std::string> globs;  // any of them
  Comparison comparison;
  std::string pattern;  // a regular expression, as written
  std::shared_ptr<re2::RE2> expression;
  bool flag = false;
};

struct Rule {
  std::string name;
  std::string file;  // empty: built in
  int line = 0;
  std::vector<std::string> on;  // globs of types
  std::vector<Condition> conditions;
  bool subagents = false;  // what subagents' own transcripts tell, too
  std::vector<std::string> sinks;
  Template title, body;
  Urgency urgency = Urgency::normal;
  std::optional<std::int64_t> hold_ms;  // not said: hold_of() says
  std::int64_t throttle_ms = 0;
  enum class Per { session, project, rule } per = Per::session;
  std::vector<QuietHours> quiet;
  bool after_quiet = false;  // told when they end, if it still holds
  enum class Once { event, turn, session } once = Once::event;
  View view = View::meta;

  bool of_status() const;
  /// How long a notice waits for you to answer first: what can be taken back is told at once where an agent
  /// waits; all else is held back.
  std::int64_t hold_of(const Sink& sink) const;
};

constexpr std::int64_t default_hold_ms = 5000;

struct Rules {
  static constexpr std::size_t rules_max = 100;  // more are refused
  static constexpr std::size_t sinks_max = 16;   // more are refused
  std::vector<Rule> rules;
  std::map<std::string, Sink, std::less<>> sinks;
  std::int64_t max_age_ms = 5 * 60 * 1000;

  const Sink* sink(std::string_view name) const;
  /// Whether some rule shows text, or looks for some.
  bool wants_text() const;
  /// The types of events that are to be subscribed to: those that rules name, and those that answer them.
  std::vector<std::string> types() const;
};

/// Why a rule does not match; empty: it matches. `near`: all but a condition fits, so that people ask why.
struct Mismatch {
  std::string why;
  bool near = false;
};
Mismatch miss_of(const Rule& rule, const EventContext& subject);

/// In plain words, one sentence a line.
std::string explain(const Rule& rule, const Rules& rules);
std::string explain(const Sink& sink);

}  // namespace earshot::notifier
