// How the time of a stream was spent, by the times of its records: turns, waits for the user in them, and the
// time between turns. All times are in ms since 1970; 0: unknown.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/quantities.hpp"

namespace earshot {

/// Adds `ms` to a sum, which is limited to `duration_max`: the times of transcripts have any size, and the
/// sum must not overflow.
inline void add_time(std::int64_t& sum, std::int64_t ms) {
  sum = std::min<std::int64_t>(sum + ms, duration_max.count());
}

/// Milliseconds; the first three are limited to `duration_max`.
struct TimeSpent {
  std::int64_t waited = 0, worked = 0, idle = 0;
  std::int64_t turn_waited = 0, turn_worked = 0;  // of the open turn, or of the last one
  friend bool operator==(const TimeSpent&, const TimeSpent&) = default;
};

class TurnTimes {
 public:
  void start_turn(std::int64_t time) {
    if (finished_ && time) add_time(is_asked_ ? spent_.waited : spent_.idle, between(finished_, time));
    started_ = time;
    finished_ = 0;
    is_open_ = true;
    is_asked_ = false;
    is_known_ |= time != 0;
    waits_.clear();
    earlier_waits_ = answered_ = 0;
    turn_waited_.reset();
    spent_.turn_waited = spent_.turn_worked = 0;
  }
  void finish_turn(std::int64_t time) {
    is_open_ = false;
    finished_ = time;
    if (!started_ || !time) return;
    const std::int64_t whole = between(started_, time);
    spent_.turn_waited = std::min(turn_waited_.value_or(0), whole);
    spent_.turn_worked = whole - spent_.turn_waited;
    add_time(spent_.waited, spent_.turn_waited);
    add_time(spent_.worked, spent_.turn_worked);
  }
  /// The turn that finished ends with a question: the time until the next one is a wait.
  void ask_after_turn() { is_asked_ = true; }

  // Waits for the user. Each that began ends once; those that overlap count once.
  void begin_wait(std::int64_t time) {
    if (open_waits_++ == 0 || !open_since_) open_since_ = time;
  }
  /// A wait whose beginning or end is not known is not counted.
  void end_wait(std::int64_t begin, std::int64_t end) {
    if (open_waits_ > 0 && --open_waits_ == 0) open_since_ = 0;
    if (!begin || !end) return;
    add_wait(begin, std::max(begin, end));
    if (between(begin, end) >= noticeable_ms) answered_ = end;
  }
  /// For turns of which only the sum is known, as another host states it.
  void set_turn_waited(std::optional<std::int64_t> ms) {
    turn_waited_ = ms;
    if (ms) turn_waited_ = std::clamp<std::int64_t>(*ms, 0, duration_max.count());
  }

  /// Returns how long the open turn, or else the last one, waited; absent: no wait was recorded.
  std::optional<std::int64_t> turn_waited() const { return turn_waited_; }
  /// When the last noticeable wait of the open turn ended; 0: there is none. Requests that a rule answers at
  /// once are recorded, too.
  std::int64_t answered() const { return is_open_ ? answered_ : 0; }
  /// False: no turn has a time.
  bool is_known() const { return is_known_; }

  /// Up to `time`, where that is later than the last record.
  TimeSpent until(std::int64_t time) const {
    TimeSpent spent = spent_;
    if (is_open_ && started_ && time) {
      const std::int64_t whole = between(started_, time);
      const std::int64_t pending = open_since_ ? between(open_since_, time) : 0;
      spent.turn_waited = std::min(turn_waited_.value_or(0) + pending, whole);
      spent.turn_worked = whole - spent.turn_waited;
      add_time(spent.waited, spent.turn_waited);
      add_time(spent.worked, spent.turn_worked);
    } else if (!is_open_ && finished_ && time) {
      add_time(is_asked_ ? spent.waited : spent.idle, between(finished_, time));
    }
    return spent;
  }

 private:
  static constexpr std::int64_t noticeable_ms = 1000;
  static constexpr std::size_t waits_max = 16;  // earlier ones cannot overlap with a new one
  struct Wait {
    std::int64_t begin = 0, end = 0;
  };

  static std::int64_t between(std::int64_t begin, std::int64_t end) {
    return std::max<std::int64_t>(0, end - begin);
  }
  void add_wait(std::int64_t begin, std::int64_t end) {
    std::erase_if(waits_, [&](const Wait& other) {
      if (other.begin > end || begin > other.end) return false;
      begin = std::min(begin, other.begin);
      end = std::max(end, other.end);
      return true;
    });
    waits_.push_back({begin, end});
    if (waits_.size() > waits_max) {
      add_time(earlier_waits_, between(waits_.front().begin, waits_.front().end));
      waits_.erase(waits_.begin());
    }
    turn_waited_ = earlier_waits_;
    for (const Wait& each : waits_) *turn_waited_ += between(each.begin, each.end);
  }

  TimeSpent spent_;  // of finished turns, and between them
  std::int64_t started_ = 0, finished_ = 0, answered_ = 0;
  std::vector<Wait> waits_;  // of the turn; none overlaps with another
  std::int64_t earlier_waits_ = 0;
  std::optional<std::int64_t> turn_waited_;
  std::uint32_t open_waits_ = 0;
  std::int64_t open_since_ = 0;
  bool is_open_ = false, is_asked_ = false, is_known_ = false;
};

}  // namespace earshot
