// Schedules deliveries: one at a time per sink, with retries and backoff. Notices that cannot be delivered
// become dead letters. Without I/O except the spool, and without a clock.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "notifier/queued_notice.hpp"
#include "notifier/rules.hpp"
#include "notifier/spool.hpp"

namespace earshot::notifier {

class DeliveryQueue {
 public:
  static constexpr std::size_t notices_max = 500;                 // above it the oldest becomes a dead letter
  static constexpr int attempts_max = 20;                         // then it becomes a dead letter
  static constexpr std::int64_t age_ms_max = 24LL * 3600 * 1000;  // likewise
  static constexpr std::int64_t backoff_first_ms = 1000;
  static constexpr std::int64_t backoff_max_ms = 5 * 60 * 1000;
  static constexpr std::int64_t retry_after_ms_max = 3600LL * 1000;  // longer requests are cut to this

  /// Both references must outlive the queue. Queues the content of the spool.
  DeliveryQueue(const Rules& rules, const Spool& spool, unsigned seed, std::int64_t now_ms);

  void add(const Notice& notice, std::int64_t now_ms);
  /// The deliveries to start now: to sinks that can retract before they are saved, to others after. Each is
  /// in flight until report().
  std::vector<QueuedNotice> take_due(std::int64_t now_ms, bool can_retract);
  /// Writes new deliveries to the spool. Returns an error; empty: done.
  std::string save();
  void report(const std::string& key, const Delivery& delivery, std::int64_t now_ms);
  /// Drops the deliveries of an answered notice that did not start yet.
  void withdraw(const std::string& notice, const std::vector<std::string>& sinks);
  std::optional<std::int64_t> next_ms(std::int64_t now_ms) const;
  std::size_t size() const { return notices_.size(); }

  struct Event {
    enum class What { sent, failed, dead, withdrawn } what;
    QueuedNotice queued;
    std::string why;
  };
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

 private:
  struct Entry {
    QueuedNotice queued;
    std::int64_t due_ms = 0;
    bool saved = false, in_flight = false;
  };
  void add_dead_letter(Entry& entry, std::string why);
  std::int64_t backoff_ms(int attempts);
  bool can_retract(const QueuedNotice& queued) const;

  const Rules& rules_;
  const Spool& spool_;
  std::minstd_rand random_;
  std::deque<Entry> notices_;                         // oldest first
  std::map<std::string, std::int64_t> paused_until_;  // sink → time, after Retry-After
  std::vector<Event> events_;
};

}  // namespace earshot::notifier
