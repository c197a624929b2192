// The waits that only the sessions' statuses show, each with the turn that was open when it began. Pure.
//
// A status may be known before the events of its session are read, as after a start: the turn is then found
// when its events follow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otlp/stream_spans.hpp"

namespace earshot::otlp {

class StatusWaits {
 public:
  static constexpr std::size_t waits_max = 4096;  // open, and as many ended ones; further ones have no span

  struct Ended {
    StatusWait wait;
    std::int64_t end_ms = 0;
  };

  void begin(StatusWait wait) {
    if (open_.size() < waits_max) open_.insert_or_assign(wait.session, std::move(wait));
  }
  /// Null: the session does not wait.
  const StatusWait* find(std::string_view session) const {
    const auto open = open_.find(session);
    return open == open_.end() ? nullptr : &open->second;
  }
  void end(std::string_view session, std::int64_t end_ms) {
    const auto open = open_.find(session);
    if (open == open_.end()) return;
    if (ended_.size() < waits_max) ended_.push_back({std::move(open->second), end_ms});
    open_.erase(open);
  }
  /// Of a session's main stream, in its order. `time_ms`: of the event; 0: unknown.
  void on_turn_started(std::string_view session, const SpanContext& turn, std::int64_t time_ms) {
    for_each(session, [&](StatusWait& wait) {
      if (time_ms <= wait.since_ms) wait.turn = turn;
    });
  }
  void on_turn_finished(std::string_view session, std::int64_t time_ms) {
    for_each(session, [&](StatusWait& wait) {
      if (time_ms != 0 && time_ms <= wait.since_ms) wait.turn.reset();
    });
  }
  /// REQUIRES: all events so far were read. Waits that have ended, with the turns that they belong to.
  std::vector<Ended> take_ended() { return std::exchange(ended_, {}); }

 private:
  template <class Call>
  void for_each(std::string_view session, Call call) {
    if (const auto open = open_.find(session); open != open_.end()) call(open->second);
    for (Ended& each : ended_)
      if (each.wait.session == session) call(each.wait);
  }

  std::map<std::string, StatusWait, std::less<>> open_;  // by session
  std::vector<Ended> ended_;
};

}  // namespace earshot::otlp
