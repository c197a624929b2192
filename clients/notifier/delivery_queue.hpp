// The queue of deliveries and the notifier's files. Deliveries start one at a time per sink, with retries and
// backoff; notices that cannot be delivered become dead letters. Queue, decisions and positions are saved in
// one file, state.json, which is replaced as a whole: after a crash it is one consistent earlier state.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/notifier_health.hpp"
#include "notifier/rule_engine.hpp"
#include "notifier/sinks/sinks.hpp"

namespace earshot::notifier {

/// The state that is saved with the queue.
struct SavedState {
  using Cursors = std::vector<std::pair<std::string, std::string>>;  // stream, cursor; latest last
  EngineState engine;
  Cursors cursors;
  ShownNotices shown;
};

class DeliveryQueue {
 public:
  static constexpr std::size_t notices_max = 500;                 // above it the oldest becomes a dead letter
  static constexpr int attempts_max = 20;                         // then it becomes a dead letter
  static constexpr std::int64_t age_ms_max = 24LL * 3600 * 1000;  // likewise
  static constexpr std::int64_t backoff_first_ms = 1000;
  static constexpr std::int64_t backoff_max_ms = 5 * 60 * 1000;
  static constexpr std::int64_t retry_after_ms_max = 3600LL * 1000;  // longer requests are cut to this

  /// `rules` must outlive the queue. `path` is the state file's.
  DeliveryQueue(const Rules& rules, std::string path, unsigned seed)
      : rules_(rules), path_(std::move(path)), random_(seed) {}

  /// Reads the file and queues its deliveries again. A delivery that a crash interrupted is repeated once; if
  /// that was interrupted too, it is a dead letter. Returns an error; empty: done, or there is no file.
  std::string load(SavedState& state, std::int64_t now_ms);
  /// Returns an error; empty: done.
  std::string save(const EngineState& engine, const SavedState::Cursors& cursors, const ShownNotices& shown);
  /// Whether the queue changed since the last call.
  bool changed() { return std::exchange(changed_, false); }

  void add(const Notice& notice, std::int64_t now_ms);
  /// Replaces the content of queued deliveries; where it was sent, sinks that can retract receive the update.
  void update(const Notice& notice, std::int64_t now_ms);
  /// The deliveries to start now, to sinks that can retract or to the others. Save before starting the
  /// latter. Each is in flight until report().
  std::vector<QueuedNotice> take_due(std::int64_t now_ms, bool can_retract);
  void report(const std::string& key, const Delivery& delivery, std::int64_t now_ms);
  /// Drops the deliveries of an answered notice that did not start yet.
  void withdraw(const std::string& notice, const std::vector<std::string>& sinks);
  std::optional<std::int64_t> next_ms(std::int64_t now_ms) const;
  /// How deliveries to each sink went, with the times of the next attempts.
  common::NotifierHealth health() const;
  /// Why the rules of a reload are not used, for the state file.
  void set_rules_problem(std::string why);
  struct Failing {
    std::string sink, why;
    bool is_failing = false;  // false: it was reported, and works again
  };
  /// The sinks that began to fail or work again since the last call.
  std::vector<Failing> take_failing() { return std::exchange(failing_, {}); }
  std::size_t size() const { return notices_.size(); }

  struct Event {
    enum class What { sent, failed, dead, withdrawn } what;
    QueuedNotice queued;
    std::string why;           // or the receiver's answer
    std::int64_t next_ms = 0;  // the next attempt; 0: none
  };
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

 private:
  struct Entry {
    QueuedNotice queued;
    std::int64_t due_ms = 0;
    bool in_flight = false;
  };
  void add_event(Event::What what, const QueuedNotice& queued, std::string why, std::int64_t next_ms = 0);
  void update_health(const std::string& sink, const Delivery& delivery, std::int64_t now_ms);
  std::int64_t backoff_ms(int attempts);
  bool can_retract(const Entry& entry) const;

  const Rules& rules_;
  std::string path_;
  std::minstd_rand random_;
  std::deque<Entry> notices_;                         // oldest first
  std::map<std::string, std::int64_t> paused_until_;  // sink → time, after Retry-After
  std::vector<Event> events_;
  common::NotifierHealth health_;  // without the times of the next attempts
  std::vector<Failing> failing_;
  bool changed_ = false;
};

/// A log of lines with a bounded size: a file of `bytes_max` is renamed to FILE.1, replacing the previous
/// one.
class BoundedLog {
 public:
  static constexpr std::size_t bytes_max = 512 << 10;  // per file
  explicit BoundedLog(std::string path) : path_(std::move(path)) {}
  /// Appends a line, given without line end. Errors are ignored: the log loses lines.
  void append(std::string_view line);
  /// The last `count` lines, oldest first.
  std::vector<std::string> last(std::size_t count) const;

 private:
  std::string path_;
};

}  // namespace earshot::notifier
