// A connection to a NATS server, and owners of libnats' handles.
#pragma once
#include <nats/nats.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "team/broker_config.hpp"

namespace earshot::team::nats {

template <auto destroy>
struct Destroyer {
  template <class T>
  void operator()(T* handle) const {
    destroy(handle);
  }
};
using NatsOptions = std::unique_ptr<natsOptions, Destroyer<natsOptions_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, Destroyer<natsMsg_Destroy>>;
using NatsSubscription = std::unique_ptr<natsSubscription, Destroyer<natsSubscription_Destroy>>;

/// what() is a message for users.
struct BrokerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Throws BrokerError unless `status` is NATS_OK. `what` names the object or operation.
void check(natsStatus status, const std::string& what);

/// A response of JetStream's API.
struct ApiResponse {
  int error = 0;            // JetStream's err_code; 0: none
  std::string description;  // of the error
  std::string text;         // the complete JSON
};

/// Its calls block: never use it on the event loop's thread.
class NatsConnection {
 public:
  static constexpr std::int64_t wait_ms = 5000;  // timeout of a response or a write

  /// Connects. Throws BrokerError. `on_lost` is called once, on a thread of libnats, when the connection is
  /// lost; there is no reconnect.
  NatsConnection(const BrokerConfig& config, std::function<void(std::string reason)> on_lost);
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  natsConnection* get() const { return connection_; }
  /// Sends a request to `$JS.API.<what>`. Throws BrokerError if there is no response.
  ApiResponse api(const std::string& what, const std::string& request) const;
  /// A unique subject for replies; `.` and a token may be appended.
  std::string inbox() const;
  struct PushSubscription;
  /// `callback` runs on a thread of libnats and must not block. It is not called after the returned object is
  /// destroyed.
  std::unique_ptr<PushSubscription> subscribe_async(const std::string& subject,
                                                    std::function<void(natsMsg*)> callback) const;
  NatsSubscription subscribe(const std::string& subject) const;
  void publish(const std::string& subject, const std::string& reply, std::string_view data) const;

 private:
  void connect(const BrokerConfig& config);

  natsConnection* connection_ = nullptr;
  std::uint64_t lost_callback_ = 0;  // its number in the callback registry
  const std::string inbox_;
};

struct NatsConnection::PushSubscription {
  NatsSubscription subscription;
  std::uint64_t callback = 0;  // its number in the callback registry
  ~PushSubscription();
};

/// The fields of a delivered message's reply subject:
/// `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<…>.<time>.<pending>`
struct DeliveryInfo {
  std::uint64_t sequence = 0, pending = 0;
  std::int64_t time_ns = 0;
};
/// Returns nullopt unless `reply` has this form. `reply` may be null.
std::optional<DeliveryInfo> parse_ack_subject(const char* reply);

std::string header(natsMsg* message, const char* key);
std::string_view data(natsMsg* message);
/// `text` as a JSON string.
std::string json_string(std::string_view text);

struct StreamInfo {
  bool exists = false;
  std::string created;                // identifies the stream: a recreated one has another time
  std::uint64_t first = 0, last = 0;  // sequences
};
/// Throws BrokerError if there is no response.
StreamInfo find_stream(const NatsConnection& connection, const std::string& name);

}  // namespace earshot::team::nats
