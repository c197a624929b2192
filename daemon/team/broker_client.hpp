// The publisher's side of the message broker. All calls and callbacks run on the event loop's thread;
// blocking calls and the library's threads are internal.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "team/broker_config.hpp"
#include "team/outbox.hpp"
#include "team/payload.hpp"

namespace earshot::team {

/// The last message of one of the host's event subjects.
struct LastMessage {
  std::string subject, id, type;
  std::string time;   // of the event, RFC 3339; may be empty
  std::string owner;  // Heartbeat::owner of the publisher
  std::uint64_t sequence = 0;
};

/// A request for a complete record.
struct RecordRequest {
  std::string reply, text;  // the reply subject; a `read` frame
};

class BrokerListener {
 public:
  virtual ~BrokerListener() = default;
  /// Connected: the streams exist and the host name is available. `published` is the broker's last message of
  /// each event subject, `heartbeat_sequence` that of the heartbeat (0: none).
  virtual void on_open(std::vector<LastMessage> published, std::uint64_t heartbeat_sequence) = 0;
  /// The connection could not be established. `reason` is a message for users.
  virtual void on_failed(const std::string& reason) = 0;
  /// The connection was lost. Unacknowledged messages may or may not have been stored.
  virtual void on_lost(const std::string& reason) = 0;
  virtual void on_acked(std::uint64_t number, std::uint64_t sequence) = 0;
  virtual void on_refused(std::uint64_t number, int error, const std::string& reason) = 0;
  virtual void on_record_request(RecordRequest request) = 0;
};

/// JetStream's error code for an unexpected last message of the subject.
constexpr int wrong_last_sequence = 10071;
/// JetStream's error code for a message above the stream's size limit. A retry fails as well.
constexpr int message_too_long = 10054;
/// Header of an event: the cursor of the previous event, so that a hub detects gaps.
constexpr char after_header[] = "Earshot-After";
/// Header of an event: Heartbeat::owner of the publisher.
constexpr char owner_header[] = "Earshot-Owner";

class BrokerClient {
 public:
  virtual ~BrokerClient() = default;
  /// Results in one call of on_open() or on_failed().
  virtual void open(const Heartbeat& heartbeat) = 0;
  /// REQUIRES: open. Each message results in on_acked() or on_refused(), unless the connection is lost first.
  virtual void publish(std::vector<Outgoing> messages) = 0;
  virtual void send_reply(std::string reply, std::vector<std::string> parts) = 0;
  /// No callback is made until the next open().
  virtual void close() = 0;
};

/// `listener` must outlive the client. Returns null in a build without the broker's library.
std::unique_ptr<BrokerClient> make_broker_client(boost::asio::io_context& io, BrokerConfig config,
                                                 BrokerListener& listener);

/// An error message if this build has no broker library, otherwise empty.
std::string missing_library();

}  // namespace earshot::team
