// The publisher's messages that wait for JetStream or for its acknowledgement, and the connection that sends
// them.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "team/nats_client.hpp"
#include "team/payload.hpp"

namespace earshot::team {

struct Message {
  enum class Target { events, statuses } target = Target::events;
  std::string subject, id, type, time, payload;
  std::string source;       // CloudEvents' `source`
  std::string after;        // of an event: the cursor of the previous event of its stream
  std::string follows;      // a subject whose earlier messages must be stored first; empty: none
  std::uint64_t order = 0;  // of Outbox::add()
};

/// A message to send.
struct Outgoing : Message {
  std::uint64_t number = 0;               // identifies it in the acknowledgement
  std::optional<std::uint64_t> expected;  // the sequence of the subject's last message; 0: none
};

/// Queues messages by subject. Pure.
///
/// An event subject has one message in flight at a time, with the expected last sequence of the subject. This
/// prevents duplicates and gaps and detects a second publisher, independently of the broker's duplicate
/// window. Subjects do not block each other. A status subject keeps the latest message only and expects no
/// sequence. A message that follows another subject waits for what that one had when it was added.
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
    std::uint64_t order = 0;    // of that one
    bool is_ready = false;      // in ready_subjects_
    bool is_ordered = true;
    std::deque<Message> pending;
  };
  explicit Outbox(std::uint64_t next_number) : next_number_(next_number) {}
  void mark_ready(const std::string& subject, SubjectQueue& queue);
  bool must_wait(const Message& message) const;
  SubjectQueue* complete(std::uint64_t number, std::string& subject);

  std::uint64_t next_number_ = 1;  // never reused, so that a late acknowledgement matches nothing
  std::unordered_map<std::string, SubjectQueue> queues_;
  std::deque<std::string> ready_subjects_;
  std::set<std::string> following_;  // subjects whose next message follows another
  std::uint64_t next_order_ = 0;
  std::unordered_map<std::uint64_t, InFlight> in_flight_;
  std::size_t pending_ = 0, bytes_ = 0;
};

/// The last message of one of the host's event subjects.
struct LastMessage {
  std::string subject, id, type;
  std::string time;   // of the event, RFC 3339; may be empty
  std::string owner;  // Heartbeat::owner of the publisher
  std::uint64_t sequence = 0;
};

/// The connection is open: the streams exist and the host name is available.
struct BrokerOpened {
  std::vector<LastMessage> published;    // of each event subject
  std::uint64_t heartbeat_sequence = 0;  // 0: none
};
/// The connection could not be established or was lost. Unacknowledged messages may have been stored.
struct BrokerFailed {
  std::string reason;  // for users
};
struct MessageAcked {
  std::uint64_t number = 0, sequence = 0;
};
struct MessageRefused {
  std::uint64_t number = 0;
  int error = 0;  // of JetStream
  std::string reason;
};
/// A hub requests a complete record.
struct RecordRequest {
  std::string reply, text;  // the reply subject; a `read` frame
};
using BrokerEvent = std::variant<BrokerOpened, BrokerFailed, MessageAcked, MessageRefused, RecordRequest>;

/// JetStream's error code for an unexpected last message of the subject.
constexpr int wrong_last_sequence = 10071;
/// JetStream's error code for a message above the stream's size limit. A retry fails as well.
constexpr int message_too_long = 10054;

/// One connection to the broker. All calls and callbacks run on the event loop's thread and do not block.
class PublisherConnection {
 public:
  static constexpr std::size_t requests_max = 64;  // waiting for the event loop; further ones are dropped

  /// Connects. `on_event` is not called after the destruction, nor after BrokerFailed.
  PublisherConnection(boost::asio::io_context& io, BrokerConfig config, Heartbeat heartbeat,
                      std::function<void(BrokerEvent)> on_event);
  ~PublisherConnection();
  /// REQUIRES: open. Each message results in MessageAcked or MessageRefused, unless the connection is lost.
  void publish(std::vector<Outgoing> messages);
  void send_reply(std::string reply, std::string text);

 private:
  struct Worker;
  const std::shared_ptr<BrokerThread> thread_;
  std::shared_ptr<Worker> worker_;
};

}  // namespace earshot::team
