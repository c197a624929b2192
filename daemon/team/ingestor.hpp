// Fills the hub's files from JetStream, on a thread of its own: fetch, append, make it last, acknowledge.
// What is seen of it elsewhere is posted to the loop.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/conflating_queue.hpp"
#include "team/consumer.hpp"
#include "team/event_store.hpp"

namespace earshot::team {

struct IngestorOptions {
  BrokerConfig link;
  std::string durable = "hub";
  std::string directory;
  std::string owner;  // stands for the state directory
  EventStoreLimits shelf;
  bool sync =
      true;  // false: after a power cut the newest lines may be missing, though they were acknowledged
};

struct IngestorMetrics {
  bool open = false;
  std::string trouble;
  EventStoreMetrics shelf;
  std::uint64_t received = 0, unsound = 0, opened = 0;
};

class Ingestor {
 public:
  static constexpr std::size_t batch_max = 512;                // messages between two writes
  static constexpr std::size_t batch_bytes = 8 << 20;          // likewise, about
  static constexpr std::chrono::milliseconds sync_every{200};  // acknowledged then

  static constexpr std::size_t statuses_max = 200'000;  // that wait for the loop; more: we connect anew

  using OnStatus = std::function<void(const HeardStatus& heard)>;

  /// Reads what the files have. Throws std::runtime_error, for people. `on_status` is called on the loop.
  Ingestor(boost::asio::io_context& io, IngestorOptions options, OnStatus on_status);
  ~Ingestor();
  void start();
  void stop();  // on_status is not called any more; its thread ends with what it is at
  const IngestorMetrics& figures() const { return figures_; }

 private:
  void run(std::weak_ptr<char> alive);
  void serve(std::string& why, const std::weak_ptr<char>& alive);
  void pause(std::chrono::milliseconds time);
  ConsumerStart start_of() const;
  std::string floor_path() const { return options_.directory + "/consumer"; }
  bool hand_on(HeardStatus heard, const std::weak_ptr<char>& alive);
  bool read_again(std::string& why);
  void tell(const std::weak_ptr<char>& alive);

  boost::asio::io_context& io_;
  const IngestorOptions options_;
  const OnStatus on_status_;
  bool doubtful_ = false;  // what the files have
  bool anew_;              // the files were thrown away, or never there
  std::unique_ptr<EventStore> shelf_;
  ConflatingQueue<HeardStatus> statuses_{statuses_max};
  std::unique_ptr<Consumer> feed_;
  IngestorMetrics figures_;  // the loop's: as the thread last said
  IngestorMetrics mine_;     // the thread's
  std::atomic<bool> stopping_{false};
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::thread thread_;
};

}  // namespace earshot::team
