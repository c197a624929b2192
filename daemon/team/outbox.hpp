// What is on its way to JetStream and what waits for it: one lane a subject. Pure: no broker, no clock.
//
// Of an event lane one message is on its way at a time, and it says what the broker must have as the last one
// of its subject: so nothing comes twice, nothing is left out, and a second publisher is noticed, whatever
// the window in which the broker remembers ids. Lanes are independent: many streams go at once. Of a status
// only the newest waits, and nothing is expected.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace earshot::team {

struct Message {
  enum class To { events, statuses } to = To::events;
  std::string subject, id, type, time, payload;
  std::string after;  // of an event: the cursor of the one before it in its stream
};

/// A message with its place in line.
struct Outgoing : Message {
  std::uint64_t number = 0;               // its answer brings it back
  std::optional<std::uint64_t> expected;  // the sequence of the last message of its subject; 0: there is none
};

class Outbox {
 public:
  // Beyond either no more is taken: what follows waits in the files.
  static constexpr std::size_t messages_max = 4096;
  static constexpr std::size_t bytes_max = 16 << 20;
  static constexpr std::size_t on_the_way_max = 1024;  // sent and not answered; more wait here

  Outbox() = default;
  bool has_room() const { return waiting_ + on_the_way_.size() < messages_max && bytes_ < bytes_max; }
  bool empty() const { return waiting_ == 0 && on_the_way_.empty(); }
  std::size_t on_the_way() const { return on_the_way_.size(); }
  std::size_t bytes() const { return bytes_; }

  /// The broker's last message of this subject.
  void begin_at(const std::string& subject, std::uint64_t sequence) { lanes_[subject].sequence = sequence; }
  /// The broker has, or will have, something of it.
  bool knows(const std::string& subject) const;
  void add(Message message);
  /// Only the newest of its subject is worth sending. `chained`: the last one is expected, as for events.
  void add_newest(Message message, bool chained = false);

  /// What may go out now, in order.
  std::vector<Outgoing> take();
  /// The broker has it. False: nobody waits for this number.
  bool acked(std::uint64_t number, std::uint64_t sequence);
  /// The broker will never take it: what follows it in its lane goes on. False: nobody waits for this number.
  bool given_up(std::uint64_t number);
  /// Which message it is; null: none.
  struct OnTheWay {
    std::string subject, id;
    std::size_t bytes = 0;
  };
  const OnTheWay* find(std::uint64_t number) const;

  /// The broker is away: nothing of it is known any more.
  void clear() { *this = Outbox(next_); }

 private:
  struct Lane {
    std::uint64_t sequence = 0;
    bool busy = false;    // one is on its way
    bool queued = false;  // in ready_
    bool chained = true;
    std::deque<Message> waiting;
  };
  explicit Outbox(std::uint64_t next) : next_(next) {}
  void ready(const std::string& subject, Lane& lane);
  Lane* answered(std::uint64_t number, std::string& subject);

  std::uint64_t next_ = 1;  // never used twice: a late answer finds nothing
  std::unordered_map<std::string, Lane> lanes_;
  std::deque<std::string> ready_;  // subjects whose first may go
  std::unordered_map<std::uint64_t, OnTheWay> on_the_way_;
  std::size_t waiting_ = 0, bytes_ = 0;
};

}  // namespace earshot::team
