// Decides which notices to send, and when: a state machine without I/O and clock. Input: frames and times.
// Output: notices, closings and decisions.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "notifier/notice.hpp"
#include "notifier/rules.hpp"
#include "notifier/session_cache.hpp"

namespace earshot::notifier {

/// Why a notice was sent or not, for `earshot-notify why`.
struct Decision {
  std::int64_t at_ms = 0;
  std::string
      outcome;  // notified, escalated, refined, held, answered, no match, too old, throttled, quiet, …
  std::string rule, type, session, project, title, why;
  std::string sink = {};     // of a delivery
  std::int64_t next_ms = 0;  // its next attempt; 0: none
};

/// A notice is answered: close it where it is shown and drop deliveries that are still queued.
struct Close {
  std::string id, slot;
  std::vector<std::string> sinks;
};

/// What survives a restart, in the state file.
struct EngineState {
  struct Held {
    Notice notice;
    std::int64_t due_ms = 0;
    bool is_grouped = false;     // waits to be sent as part of a group
    bool is_escalation = false;  // of a notice that was sent
    friend bool operator==(const Held&, const Held&) = default;
  };
  std::int64_t since_ms = 0;                    // the first start; older events cause no notices
  std::map<std::string, std::int64_t> handled;  // notice id → time of the decision
  std::vector<Held> held;                       // oldest first
  std::vector<Notice> open;                     // sent and not answered yet, oldest first
  std::map<std::string, std::pair<std::int64_t, std::string>>
      throttles;  // rule and scope → time and notice id
  friend bool operator==(const EngineState&, const EngineState&) = default;
};

class RuleEngine {
 public:
  static constexpr std::size_t handled_max =
      4096;  // the oldest quarter is dropped; only a transcript that is read a second time could repeat those
  static constexpr std::size_t held_max = 500;  // above it the oldest is sent immediately
  static constexpr std::size_t open_max = 500;  // above it the oldest is no longer closed when answered
  static constexpr std::size_t throttles_max = 4096;
  static constexpr std::size_t group_after =
      5;  // unanswered notices of a rule within group_ms: further ones are grouped
  static constexpr std::int64_t group_ms = 10'000;   // and sent as one notice after this time
  static constexpr std::size_t group_lines_max = 6;  // notices that a group lists by title

  /// A status is held at least this long: the daemon may refine it within 100 ms (reason, detail, project).
  static constexpr std::int64_t refine_ms = 150;
  /// A sent notice is brought up to date this long when facts of its session become known.
  static constexpr std::int64_t replace_ms = 10'000;

  static constexpr std::int64_t figures_ms = 2000;
  static constexpr std::size_t unsettled_sessions_max = 256;  // further ones are evaluated once
  static constexpr std::size_t unsettled_events_max = 4;      // of a session; earlier ones likewise

  using Clock = std::function<LocalTime(std::int64_t ms)>;

  /// `rules` must outlive the engine.
  RuleEngine(const Rules& rules, Clock clock, EngineState state = {});

  static constexpr std::int64_t grace_ms = 10'000;  // after a restart, for frames that answer held notices

  /// See SessionCache::set_page().
  void set_page(std::string url) { session_cache_.set_page(std::move(url)); }

  /// Call after a restart: drops held notices that are too old and gives the others grace_ms.
  void resume(std::int64_t now_ms);
  /// Call when a connection opens: frames until caught_up() are replayed. Notices of replayed events wait
  /// until then, because later events may answer them.
  void begin();
  /// Ends the replay. Sessions without a frame since begin() no longer exist: their notices are closed.
  void caught_up(std::int64_t now_ms);
  /// Handles one frame of the daemon.
  void handle(const common::Fields& frame, std::string_view json, std::int64_t now_ms);
  /// Releases held notices that are due.
  void tick(std::int64_t now_ms);
  /// When tick() must be called next.
  std::optional<std::int64_t> next_ms() const;

  std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
  /// Refined versions of notices that were taken before, with their ids.
  std::vector<Notice> take_refinements() { return std::exchange(refinements_, {}); }
  std::vector<Close> take_closings() { return std::exchange(closings_, {}); }
  /// Sessions with an event that matches a rule but for its conditions on cost or context: only `session`
  /// frames have the present figures. Each at most once in figures_ms; apply_figures() follows.
  std::vector<std::string> take_figures_wanted(std::int64_t now_ms);
  /// When it returns the next one.
  std::optional<std::int64_t> figures_due_ms() const;
  /// The present `session` frame; empty: there was none, or no answer. Evaluates the rules again that are
  /// about its figures.
  void apply_figures(std::string_view session, const common::Fields& frame, std::int64_t now_ms);
  std::vector<Decision> take_decisions() { return std::exchange(decisions_, {}); }
  const EngineState& state() const { return state_; }
  /// Whether state() changed since the last call.
  bool changed() { return std::exchange(changed_, false); }

  /// The notice that a rule makes of an event. Also used by `test`.
  static Notice make_notice(const Rule& rule, const EventContext& context, std::vector<std::string> sinks);

 private:
  void evaluate(const EventContext& context, std::int64_t now_ms);
  void evaluate(const Rule& rule, const EventContext& context, std::int64_t now_ms);
  void release(EngineState::Held held, std::int64_t now_ms);
  void emit(Notice notice, std::int64_t now_ms, bool is_escalation = false);
  void hold_escalations(const Notice& notice, std::int64_t now_ms);
  void emit_group(std::vector<EngineState::Held> group, std::int64_t now_ms);
  bool is_throttled(const Rule& rule, const Notice& notice, std::int64_t now_ms);
  /// Returns the ids of the notices that are answered by it.
  std::vector<std::string> acknowledge(const std::function<bool(const AckKey&)>& is_answered,
                                       std::string_view how, std::int64_t now_ms);
  void keep_for_figures(const EventContext& context);
  void arm_context(std::string_view host, std::string_view session, std::optional<double> percent);
  void apply_status(const EventContext& context, std::int64_t now_ms);
  void evaluate_limits(const common::Fields& frame, std::int64_t now_ms);
  void refine(const EventContext& context, std::int64_t now_ms);
  void close(const Notice& notice, std::string why, std::int64_t now_ms);
  /// Whether it may be answered already, by a frame that is not received yet.
  bool must_wait(const EngineState::Held& held) const;
  void limit_held(std::int64_t now_ms);
  void expire_old(std::int64_t now_ms);
  void record(std::string_view outcome, const Notice& notice, std::string why, std::int64_t now_ms);
  const Rule* find_rule(std::string_view name) const;

  const Rules& rules_;
  Clock clock_;
  EngineState state_;
  SessionCache session_cache_;
  bool is_replaying_ = false;                         // between begin() and caught_up()
  std::set<std::string, std::less<>> seen_sessions_;  // since begin()
  struct Recent {
    std::int64_t at_ms = 0;
    std::string group_key;  // see group_key_of()
  };
  std::map<std::string, Recent> recent_;  // unanswered notices of the last group_ms
  std::vector<Notice> notices_, refinements_;
  std::vector<Close> closings_;
  std::vector<Decision> decisions_;
  /// Events of a session that may match when its present figures are known.
  struct Unsettled {
    std::vector<EventContext> events;  // the latest
    std::size_t asked = 0;             // of these: before the figures were asked for
    std::int64_t asked_ms = 0;
    bool is_asked = false;  // and not answered
  };
  std::map<std::string, Unsettled, std::less<>> unsettled_;
  bool changed_ = false;
};

}  // namespace earshot::notifier
