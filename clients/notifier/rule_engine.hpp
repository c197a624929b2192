// What to tell, and when: a pure state machine. Frames and moments in; notices, closings and verdicts out. It
// knows no clock, no file and no network.
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

/// Why something was told or not: what `why` shows.
struct Decision {
  std::int64_t at_ms = 0;
  std::string word;  // told, held, answered, no match, too old, throttled, quiet, grouped, closed, twice
  std::string rule, type, session, project, title, why;
};

/// A notice that was told is answered: what shows it need not, and what was not sent yet need not be.
struct Close {
  std::string id, slot;
  std::vector<std::string> sinks;
};

/// What a restart must know: kept in the state file.
struct Memory {
  struct Held {
    Notice notice;
    std::int64_t due_ms = 0;
    bool gathered = false;  // for a group
  };
  std::int64_t since_ms = 0;                    // the very first start: no event from before it is told
  std::map<std::string, std::int64_t> handled;  // rule and matter → when
  std::vector<Held> held;                       // the oldest first
  std::vector<Notice> open;                     // told, and not answered yet; the oldest first
  std::map<std::string, std::pair<std::int64_t, std::string>> throttles;  // → when, and what was told
};

class RuleEngine {
 public:
  static constexpr std::size_t handled_max =
      4096;  // the oldest are forgotten: told again only if a transcript is read anew
  static constexpr std::size_t held_max = 500;  // the oldest is told at once
  static constexpr std::size_t open_max = 500;  // the oldest is no longer closed when answered
  static constexpr std::size_t throttles_max = 4096;
  static constexpr std::size_t group_after = 3;      // of one rule, in group_ms: what comes then is gathered
  static constexpr std::int64_t group_ms = 10'000;   // and told as one when that is over
  static constexpr std::size_t group_lines_max = 6;  // notices that are named in a group

  using Clock = std::function<LocalTime(std::int64_t ms)>;

  /// `rules` outlive this.
  RuleEngine(const Rules& rules, Clock clock, Memory memory = {});

  static constexpr std::int64_t grace_ms =
      10'000;  // after a start, to hear whether what was held is answered

  /// After a start: what memory holds is judged anew.
  void resume(std::int64_t now_ms);
  /// A connection begins: what comes until caught_up() is the past, and nothing of it is told before all of
  /// it is known.
  void begin();
  /// Sessions that no session frame told of since begin() wait no more.
  void caught_up(std::int64_t now_ms);
  /// One frame of the daemon.
  void take(const common::Fields& frame, std::string_view json, std::int64_t now_ms);
  /// Time has passed.
  void tick(std::int64_t now_ms);
  /// When the next tick is wanted.
  std::optional<std::int64_t> next_ms() const;

  std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }
  std::vector<Close> take_closings() { return std::exchange(closings_, {}); }
  std::vector<Decision> take_decisions() { return std::exchange(decisions_, {}); }
  const Memory& memory() const { return memory_; }
  /// Whether memory() is another than when this was last asked.
  bool changed() { return std::exchange(changed_, false); }

  /// What a rule would say of a subject; for `test`, too.
  static Notice made(const Rule& rule, const EventContext& subject, std::vector<std::string> sinks);

 private:
  void consider(const EventContext& subject, std::int64_t now_ms);
  void consider(const Rule& rule, const EventContext& subject, std::int64_t now_ms);
  void release(Memory::Held held, std::int64_t now_ms);
  void tell(Notice notice, std::int64_t now_ms);
  void tell_group(std::vector<Memory::Held> group, std::int64_t now_ms);
  bool is_throttled(const Rule& rule, const Notice& notice, std::int64_t now_ms);
  void answered(const std::function<bool(const AckKey&)>& is_answered, std::string_view how,
                std::int64_t now_ms);
  void take_status(const EventContext& subject, std::int64_t now_ms);
  bool waits_for_host(const Memory::Held& held) const;
  void expire_old(std::int64_t now_ms);
  void decision(std::string_view word, const Notice& notice, std::string why, std::int64_t now_ms);
  const Rule* find_rule(std::string_view name) const;

  const Rules& rules_;
  Clock clock_;
  Memory memory_;
  SessionCache session_cache_;
  bool missed_ = false;                      // what comes now is the past
  std::set<std::string, std::less<>> seen_;  // sessions, since begin()
  struct Told {
    std::int64_t at_ms = 0;
    std::string lane;  // rule and sinks
  };
  std::map<std::string, Told> recent_;  // notices of the last group_ms that nobody answered
  std::vector<Notice> notices_;
  std::vector<Close> closings_;
  std::vector<Decision> decisions_;
  bool changed_ = false;
};

}  // namespace earshot::notifier
