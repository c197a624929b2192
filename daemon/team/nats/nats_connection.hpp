// One connection to the broker, and its answers. libnats' handles, owned.
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
using Options = std::unique_ptr<natsOptions, Destroyer<natsOptions_Destroy>>;
using Message = std::unique_ptr<natsMsg, Destroyer<natsMsg_Destroy>>;
using Subscription = std::unique_ptr<natsSubscription, Destroyer<natsSubscription_Destroy>>;

/// For people.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
void check(natsStatus status, const std::string& what);

/// What JetStream's API answered.
struct ApiAnswer {
  int error = 0;            // its err_code; 0: none
  std::string description;  // of the error
  std::string text;         // the whole answer
};

/// Blocks where it says so: never on the loop's thread.
class NatsConnection {
 public:
  static constexpr std::int64_t wait_ms = 5000;  // for one answer, and for a write; then it is an error

  /// Connects. Throws Failure. `lost` is called once, from libnats' thread, when the connection is over; it
  /// does not come back.
  NatsConnection(const BrokerConfig& link, std::function<void(std::string why)> lost);
  ~NatsConnection();
  NatsConnection(const NatsConnection&) = delete;
  NatsConnection& operator=(const NatsConnection&) = delete;

  natsConnection* get() const { return connection_; }
  /// `$JS.API.<what>`. Throws Failure when there is no answer.
  ApiAnswer api(const std::string& what, const std::string& request) const;
  /// A subject for answers to us alone; `.` and a token may follow it.
  std::string inbox() const;
  /// `call` runs on libnats' thread: it hands on and does nothing else. Not called any more when the returned
  /// object is gone.
  struct Listening;
  std::unique_ptr<Listening> listen(const std::string& subject, std::function<void(natsMsg*)> call) const;
  Subscription subscribe(const std::string& subject) const;
  void publish(const std::string& subject, const std::string& reply, std::string_view data) const;

 private:
  void connect(const BrokerConfig& link);

  natsConnection* connection_ = nullptr;
  std::uint64_t lost_ = 0;  // of what is called when it is over
  const std::string inbox_;
};

struct NatsConnection::Listening {
  Subscription subscription;
  std::uint64_t call = 0;
  ~Listening();
};

/// What a delivered message's reply subject says:
/// `$JS.ACK.<stream>.<consumer>.<delivered>.<sequence>.<…>.<time>.<pending>`
struct Delivered {
  std::uint64_t sequence = 0, pending = 0;
  std::int64_t time_ns = 0;
};
std::optional<Delivered> delivered(const char* reply);

std::string header(natsMsg* message, const char* key);
std::string_view data(natsMsg* message);

/// The state of a stream: when it was made, which tells one from its successor of the same name.
struct StreamFound {
  bool there = false;
  std::string created;
  std::uint64_t first = 0, last = 0;  // sequences
};
/// Throws Failure when the broker does not answer.
StreamFound find_stream(const NatsConnection& line, const std::string& name);

}  // namespace earshot::team::nats
