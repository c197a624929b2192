// Copies events from JetStream to the event store on its own thread: fetch, append, sync, acknowledge.
// Metrics and statuses are posted to the event loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/containers.hpp"
#include "serve/slices.hpp"
#include "team/event_store.hpp"
#include "team/host_registry.hpp"
#include "team/nats_client.hpp"

namespace earshot::team {

struct IngestorOptions {
  BrokerConfig broker;
  std::string durable = "hub";  // the consumer's name
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

/// All calls and callbacks run on the event loop's thread and do not block.
class Ingestor {
 public:
  static constexpr std::size_t batch_max = 512;                // messages between two writes
  static constexpr std::size_t batch_bytes = 8 << 20;          // bytes between two writes, about
  static constexpr std::chrono::milliseconds sync_every{200};  // between two acknowledgements

  // Events and statuses with longer names are invalid, and statuses longer than team::status_bytes_max.
  static constexpr std::size_t stream_bytes_max = 2 << 10, session_bytes_max = 256;

  using OnStatus = std::function<void(const StatusMessage& message)>;

  /// Loads the event store. Throws std::runtime_error with a message for users.
  Ingestor(boost::asio::io_context& io, IngestorOptions options, OnStatus on_status);
  ~Ingestor();
  void start();
  /// `on_status` is not called afterwards. The thread ends after its current batch.
  void stop();
  const IngestorMetrics& metrics() const { return metrics_; }

 private:
  struct Worker;
  void take_statuses();

  const OnStatus on_status_;
  serve::Slices slices_;
  IngestorMetrics metrics_;
  const std::shared_ptr<BrokerThread> thread_;
  std::shared_ptr<Worker> worker_;
};

}  // namespace earshot::team
