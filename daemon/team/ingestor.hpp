// Copies events from JetStream to the event store on its own thread: fetch, append, sync, acknowledge.
// Metrics and statuses are posted to the event loop.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/containers.hpp"
#include "team/consumer.hpp"
#include "team/event_store.hpp"

namespace earshot::team {

struct IngestorOptions {
  BrokerConfig broker;
  std::string durable = "hub";
  std::string directory;
  std::string owner;  // identifies the state directory
  EventStoreLimits store;
  bool sync = true;  // false: a power failure may lose acknowledged events
};

struct IngestorMetrics {
  bool open = false;
  std::string problem;  // for users, or empty
  EventStoreMetrics store;
  std::uint64_t received = 0, invalid = 0, opened = 0;
};

class Ingestor {
 public:
  static constexpr std::size_t batch_max = 512;                // messages between two writes
  static constexpr std::size_t batch_bytes = 8 << 20;          // bytes between two writes, about
  static constexpr std::chrono::milliseconds sync_every{200};  // between two acknowledgements

  static constexpr std::size_t statuses_max = 200'000;  // waiting for the event loop; above it: reconnect

  using OnStatus = std::function<void(const StatusMessage& message)>;

  /// Loads the event store. Throws std::runtime_error with a message for users. `on_status` is called on the
  /// event loop.
  Ingestor(boost::asio::io_context& io, IngestorOptions options, OnStatus on_status);
  ~Ingestor();
  void start();
  /// `on_status` is not called afterwards. The thread ends after its current batch.
  void stop();
  const IngestorMetrics& metrics() const { return metrics_; }

 private:
  void run(std::weak_ptr<char> alive);
  void process(std::string& error, const std::weak_ptr<char>& alive);
  void pause(std::chrono::milliseconds time);
  ConsumerStart consumer_start() const;
  std::string ack_floor_path() const { return options_.directory + "/consumer"; }
  bool enqueue_status(StatusMessage message, const std::weak_ptr<char>& alive);
  bool reload(std::string& error);
  void publish_metrics(const std::weak_ptr<char>& alive);

  boost::asio::io_context& io_;
  const IngestorOptions options_;
  const OnStatus on_status_;
  bool must_reload_ = false;  // the files' durable content is unknown after a failed sync
  bool from_beginning_;       // the files are missing or incomplete
  std::unique_ptr<EventStore> store_;
  ConflatingQueue<StatusMessage> statuses_{statuses_max};
  std::unique_ptr<Consumer> consumer_;
  IngestorMetrics metrics_;         // the event loop's copy
  IngestorMetrics thread_metrics_;  // the thread's
  std::atomic<bool> stopping_{false};
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::thread thread_;
};

}  // namespace earshot::team
