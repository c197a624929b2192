// Messages that are waiting for JetStream or for its acknowledgement, in one queue per subject. Pure.
//
// An event subject has one message in flight at a time, with the expected last sequence of the subject. This
// prevents duplicates and gaps and detects a second publisher, independently of the broker's duplicate
// window. Subjects do not block each other. A status subject keeps the latest message only and expects no
// sequence.
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
  enum class Target { events, statuses } target = Target::events;
  std::string subject, id, type, time, payload;
  std::string after;  // of an event: the cursor of the previous event of its stream
};

/// A message to send.
struct Outgoing : Message {
  std::uint64_t number = 0;               // identifies it in the acknowledgement
  std::optional<std::uint64_t> expected;  // the sequence of the subject's last message; 0: none
};

class Outbox {
 public:
  // Above either limit has_room() is false; the publisher reads further events from the files later.
  static constexpr std::size_t messages_max = 4096;
  static constexpr std::size_t bytes_max = 16 << 20;
  static constexpr std::size_t in_flight_max = 1024;  // sent and not acknowledged

  Outbox() = default;
  bool has_room() const { return pending_ + in_flight_.size() < messages_max && bytes_ < bytes_max; }
  bool empty() const { return pending_ == 0 && in_flight_.empty(); }
  std::size_t in_flight() const { return in_flight_.size(); }
  std::size_t bytes() const { return bytes_; }

  /// Sets the sequence of the broker's last message of the subject.
  void set_sequence(const std::string& subject, std::uint64_t sequence) {
    queues_[subject].sequence = sequence;
  }
  /// True if the broker has messages of the subject, or will have.
  bool has_subject(const std::string& subject) const;
  void add(Message message);
  /// Replaces a waiting message of the same subject. `is_ordered`: expects the last sequence, as events do.
  void add_latest(Message message, bool is_ordered = false);

  /// Removes and returns the messages to send now, in order.
  std::vector<Outgoing> take_ready();
  /// The broker stored the message. Returns false for an unknown number.
  bool on_ack(std::uint64_t number, std::uint64_t sequence);
  /// Drops a message that the broker refuses permanently; its subject continues. Returns false for an unknown
  /// number.
  bool drop(std::uint64_t number);
  struct InFlight {
    std::string subject, id;
    std::size_t bytes = 0;
  };
  /// Returns null for an unknown number.
  const InFlight* find(std::uint64_t number) const;

  /// Drops all messages and sequences after a lost connection.
  void clear() { *this = Outbox(next_number_); }

 private:
  struct SubjectQueue {
    std::uint64_t sequence = 0;
    bool is_in_flight = false;  // a message is sent and not acknowledged
    bool is_ready = false;      // in ready_subjects_
    bool is_ordered = true;
    std::deque<Message> pending;
  };
  explicit Outbox(std::uint64_t next_number) : next_number_(next_number) {}
  void mark_ready(const std::string& subject, SubjectQueue& queue);
  SubjectQueue* complete(std::uint64_t number, std::string& subject);

  std::uint64_t next_number_ = 1;  // never reused, so that a late acknowledgement matches nothing
  std::unordered_map<std::string, SubjectQueue> queues_;
  std::deque<std::string> ready_subjects_;
  std::unordered_map<std::uint64_t, InFlight> in_flight_;
  std::size_t pending_ = 0, bytes_ = 0;
};

}  // namespace earshot::team
