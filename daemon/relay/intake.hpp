// Fills the hub's files from JetStream, on a thread of its own: fetch, append, make it last, acknowledge.
// What is seen of it elsewhere is posted to the loop.
#pragma once
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "relay/feed.hpp"
#include "relay/latest.hpp"
#include "relay/shelf.hpp"

namespace earshot::relay {

struct IntakeOptions {
  Link link;
  std::string durable = "hub";
  std::string directory;
  std::string owner;  // stands for the state directory
  ShelfLimits shelf;
  bool sync =
      true;  // false: after a power cut the newest lines may be missing, though they were acknowledged
};

struct IntakeFigures {
  bool open = false;
  std::string trouble;
  ShelfFigures shelf;
  std::uint64_t received = 0, unsound = 0, opened = 0;
};

class Intake {
 public:
  static constexpr std::size_t batch_max = 512;                // messages between two writes
  static constexpr std::size_t batch_bytes = 8 << 20;          // likewise, about
  static constexpr std::chrono::milliseconds sync_every{200};  // acknowledged then

  static constexpr std::size_t statuses_max = 200'000;  // that wait for the loop; more: we connect anew

  using OnStatus = std::function<void(const HeardStatus& heard)>;

  /// Reads what the files have. Throws std::runtime_error, for people. `on_status` is called on the loop.
  Intake(boost::asio::io_context& io, IntakeOptions options, OnStatus on_status);
  ~Intake();
  void start();
  void stop();  // on_status is not called any more; its thread ends with what it is at
  const IntakeFigures& figures() const { return figures_; }

 private:
  void run(std::weak_ptr<char> alive);
  void serve(std::string& why, const std::weak_ptr<char>& alive);
  void pause(std::chrono::milliseconds time);
  FeedStart start_of() const;
  std::string floor_path() const { return options_.directory + "/consumer"; }
  bool hand_on(HeardStatus heard, const std::weak_ptr<char>& alive);
  bool read_again(std::string& why);
  void tell(const std::weak_ptr<char>& alive);

  boost::asio::io_context& io_;
  const IntakeOptions options_;
  const OnStatus on_status_;
  bool doubtful_ = false;  // what the files have
  bool anew_;              // the files were thrown away, or never there
  std::unique_ptr<Shelf> shelf_;
  Latest<HeardStatus> statuses_{statuses_max};
  std::unique_ptr<Feed> feed_;
  IntakeFigures figures_;  // the loop's: as the thread last said
  IntakeFigures mine_;     // the thread's
  std::atomic<bool> stopping_{false};
  std::shared_ptr<char> alive_ = std::make_shared<char>();
  std::thread thread_;
};

}  // namespace earshot::relay
