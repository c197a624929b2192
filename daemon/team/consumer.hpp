// The hub's side of the message broker. All calls are made on one thread, other than the event loop's; they
// may block.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "team/broker_config.hpp"
#include "team/ingest_action.hpp"

namespace earshot::team {

struct Delivery {
  ReceivedMessage received;
  bool is_valid = false;  // consistent with its subject; invalid messages are counted and acknowledged only
  std::string ack;        // the subject that acknowledges it
};

/// A status or a heartbeat.
struct StatusMessage {
  std::string subject, payload;
  std::int64_t time_ms = 0;  // of the broker's clock
  bool is_replayed = false;  // stored before the subscription began
};

/// All messages of `store` up to `sequence` were acknowledged.
struct AckFloor {
  std::string store;
  std::uint64_t sequence = 0;
};

/// The hub's state at the start of a connection.
struct ConsumerStart {
  std::string owner;  // identifies the hub's state directory
  /// Start at the first message: the stored files are missing or incomplete.
  bool from_beginning = false;
  AckFloor ack_floor;  // the stored one; used if the broker has no consumer
  /// The last message that was stored of `store`.
  std::function<StoredPosition(const std::string& store)> last_received;
  /// Stores the floor. Returns an error message, or an empty string.
  std::function<std::string(const AckFloor&)> store_ack_floor;
};

class Consumer {
 public:
  virtual ~Consumer() = default;
  /// Connects and creates missing streams and the durable consumer. Statuses and heartbeats are passed to
  /// `on_status` from then on, on another thread; false from it means that its queue is full. Returns an
  /// error message for users, or an empty string.
  virtual std::string open(const ConsumerStart& start,
                           std::function<bool(StatusMessage message)> on_status) = 0;
  /// Appends at most `count` messages of about `bytes` in total; waits at most `wait` for the first one.
  /// Returns false and sets `error` if the connection is lost.
  virtual bool next(std::vector<Delivery>& into, std::size_t count, std::size_t bytes,
                    std::chrono::milliseconds wait, std::string& error) = 0;
  /// Returns an error message, or an empty string. On error the messages are delivered again.
  virtual std::string ack(const std::vector<std::string>& acks) = 0;
  virtual void close() = 0;
};

/// `durable` is the consumer's name. Returns null in a build without the broker's library.
std::unique_ptr<Consumer> make_consumer(BrokerConfig config, std::string durable);

}  // namespace earshot::team
