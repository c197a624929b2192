// The connection to a NATS server with JetStream that publisher and hub share. A build without libnats
// compiles: NatsClient then throws missing_library().
#pragma once
#include <simdjson.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "team/payload.hpp"

namespace earshot::serve {
struct RemoteRecord;
}

namespace earshot::team {

/// How to connect. Each field is an option of libnats.
struct BrokerConfig {
  std::vector<std::string> urls;   // nats://HOST:PORT or tls://…; tried in this order
  std::string stream = "earshot";  // JetStream's stream of events; statuses are in `<stream>_status`
  std::string credentials;         // a .creds file, or empty
  std::string nkey, nkey_seed;     // a user's public key, and the file with its seed; both or neither
  std::string tls_ca;              // a file; empty: the system's certificate authorities
  std::string tls_cert, tls_key;   // files, for a server that requires a client certificate; both or neither
  std::string inbox = "_INBOX";    // prefix of the subjects for replies
  bool operator==(const BrokerConfig&) const = default;

  /// The first URL without credentials, for messages.
  std::string where() const;
  std::string status_stream() const { return stream + "_status"; }
};

/// An error message if this build has no libnats, otherwise empty.
std::string missing_library();

/// what() is a message for users.
struct BrokerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The thread of a broker connection: its tasks may block, and hold all that they use. The owner is on the
/// event loop and never waits for the thread.
class BrokerThread : public std::enable_shared_from_this<BrokerThread> {
 public:
  static constexpr std::chrono::milliseconds exit_wait{1000};

  static std::shared_ptr<BrokerThread> start(boost::asio::io_context& io);
  /// Runs tasks in order. After stop() the waiting ones are dropped.
  void post(std::function<void()> task);
  /// From any thread: calls on the event loop, unless stop() was called before.
  void post_to_loop(std::function<void()> call);
  /// On the event loop's thread. The thread ends after its current task, whose waits end at once. It releases
  /// `state`, which may own a connection.
  void stop(std::shared_ptr<void> state = {});
  bool is_stopping() const;
  /// Returns false if the thread is to stop.
  bool pause(std::chrono::milliseconds time);

  /// Waits until all stopped threads ended, at most `exit_wait`. A call of libnats may block longer with an
  /// unresponsive broker or name server; its thread then ends with the process.
  static void wait_for_all();

 private:
  explicit BrokerThread(boost::asio::io_context& io) : io_(io) {}
  void run();

  boost::asio::io_context& io_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::shared_ptr<void> state_;
  bool stopping_ = false;
};

/// A received message.
class NatsMessage {
 public:
  using Handle = std::unique_ptr<void, void (*)(void*)>;  // a natsMsg
  explicit NatsMessage(Handle handle) : handle_(std::move(handle)) {}

  std::string_view subject() const;
  std::string_view reply() const;  // may be empty
  std::string_view data() const;
  std::string header(const char* key) const;  // empty: there is none
  bool is_no_responders() const;

  /// What JetStream adds to a message that a consumer delivers.
  struct Delivery {
    std::uint64_t sequence = 0, pending = 0;
    std::int64_t time_ns = 0;  // of the broker's clock
  };
  /// Returns nullopt unless a consumer delivered the message.
  std::optional<Delivery> delivery() const;

 private:
  Handle handle_;
};

/// A JSON document that owns its parser.
struct ApiResponse {
  int error = 0;            // JetStream's err_code; 0: none
  std::string description;  // of the error
  std::unique_ptr<simdjson::dom::parser> parser = std::make_unique<simdjson::dom::parser>();
  simdjson::dom::element json;
};

struct StreamInfo {
  bool exists = false;
  std::string created;                // identifies the stream: a recreated one has another time
  std::uint64_t first = 0, last = 0;  // sequences
};

/// The JSON that creates a consumer.
std::string consumer_request(const std::string& stream, std::initializer_list<JsonMember> config);

/// A connection; there is no reconnect. Errors are thrown as BrokerError. Used by one BrokerThread, whose
/// stop() ends its waits.
///
/// libnats 3.4.1 crashes if a subscription is destroyed while a message for it is read. Therefore
/// subscriptions live as long as their connection: one with a wildcard receives all replies, and all are
/// destroyed after the connection was closed and its threads ended.
class NatsClient {
 public:
  using Handler = std::function<void(NatsMessage message)>;  // on a thread of libnats; must not block
  using Headers = std::vector<std::pair<const char*, std::string>>;
  static constexpr std::chrono::milliseconds request_timeout{5000};

  /// Connects. `on_lost` is called once on a thread of libnats if the connection is lost.
  NatsClient(const BrokerConfig& config, std::shared_ptr<BrokerThread> thread,
             std::function<void(std::string reason)> on_lost = {});
  ~NatsClient();
  NatsClient(const NatsClient&) = delete;
  NatsClient& operator=(const NatsClient&) = delete;

  bool is_lost() const;
  /// Returns false if the message exceeds the broker's size limit.
  bool publish(const std::string& subject, const std::string& reply, std::string_view text,
               const Headers& headers = {});
  NatsMessage request(const std::string& subject, std::string_view text);
  /// Sends a request to `$JS.API.<what>`.
  ApiResponse api(const std::string& what, std::string_view request);
  StreamInfo find_stream(const std::string& name);

  /// Until the connection is closed.
  void subscribe(const std::string& subject, Handler handler);
  /// The messages that a consumer delivers keep their subjects and need a subscription; replies share one.
  enum class Source { replies, consumer };
  /// Receives what is sent to the returned subject; replies also to it, `.` and one token.
  std::string receive(Source source, Handler handler);

  /// A queue of the messages that are sent to a reply subject.
  class Inbox {
   public:
    explicit Inbox(NatsClient& client, Source source = Source::replies);
    ~Inbox();
    const std::string& subject() const { return subject_; }
    /// Returns nullopt after `timeout`, or if the thread is to stop. Throws if the connection is lost.
    std::optional<NatsMessage> next(std::chrono::milliseconds timeout);

   private:
    NatsClient& client_;
    std::deque<NatsMessage> messages_;
    std::string subject_;
  };

 private:
  struct Impl;
  explicit NatsClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Requests complete records from the hosts that have them, one at a time.
class RecordClient {
 public:
  static constexpr std::size_t waiting_max = 64;  // further requests fail with `busy`
  static constexpr std::size_t record_bytes_max = 32 << 20;

  RecordClient(boost::asio::io_context& io, BrokerConfig config);
  ~RecordClient();
  /// `event_json` is an event as published by the host. `done` is called on the event loop, unless this
  /// object was destroyed.
  void read(const std::string& event_json, std::function<void(serve::RemoteRecord)> done);

 private:
  struct Worker;
  const std::shared_ptr<BrokerThread> thread_;
  std::shared_ptr<Worker> worker_;
  std::size_t waiting_ = 0;
};

}  // namespace earshot::team
