// The disk thread, which runs whatever may block on a disk, and timers.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "core/transcript.hpp"

namespace earshot::tail {

/// Runs work on the disk thread and its completions on the thread of `io`.
class IoThread {
 public:
  /// `executor` runs one task at a time, in order.
  IoThread(boost::asio::io_context& io, boost::asio::any_io_executor executor)
      : io_(io), executor_(std::move(executor)), alive_(std::make_shared<char>()) {}

  /// Runs `work()` on the disk thread, in the order of the calls, then `done(result)` on this one, unless
  /// this object was destroyed or closed.
  template <class Work, class Done>
  void run(Work work, Done done) {
    boost::asio::post(executor_, [work = std::move(work), done = std::move(done),
                                  weak = std::weak_ptr<char>(alive_), &io = io_]() mutable {
      auto result = work();
      boost::asio::post(io, [result = std::move(result), done = std::move(done), weak]() mutable {
        if (!weak.expired()) done(std::move(result));
      });
    });
  }

  /// Runs `task()` on this thread after the handlers that are already queued.
  template <class Task>
  void soon(Task task) {
    boost::asio::post(io_, [task = std::move(task), weak = std::weak_ptr<char>(alive_)]() mutable {
      if (!weak.expired()) task();
    });
  }

  /// Returns the executor of the disk thread.
  const boost::asio::any_io_executor& executor() const { return executor_; }

  void close() { alive_.reset(); }

 private:
  boost::asio::io_context& io_;
  boost::asio::any_io_executor executor_;
  std::shared_ptr<char> alive_;
};

/// read_at() that returns fewer bytes only at the end of the file.
long read_fully(int fd, char* buffer, std::size_t bytes, std::uint64_t offset);

/// Reads on the disk thread into a fixed number of buffers; requests beyond that wait.
class ReadPool {
 public:
  static constexpr std::size_t read_bytes = 256 << 10;   // new bytes per read
  static constexpr std::size_t overlap_bytes = 1 << 10;  // before them, read again to detect a rewrite
  static constexpr std::size_t buffers_max = 2;          // one is read while the other is processed

  using Read = std::function<long(char* buffer)>;  // returns the number of bytes, or -errno
  using Done = std::function<void(const char* buffer, long result)>;  // the buffer is valid during the call

  explicit ReadPool(IoThread& disk) : disk_(disk) {}
  void request(Read read, Done done);

  using Buffer = std::unique_ptr<char[]>;
  static Buffer make_buffer();  // feed_padding included

 private:
  void start_next();

  IoThread& disk_;
  std::vector<Buffer> free_;
  std::size_t buffers_ = 0;
  std::deque<std::pair<Read, Done>> waiting_;
};

/// Delayed tasks, on one timer.
class TimerQueue {
 public:
  explicit TimerQueue(boost::asio::io_context& io) : timer_(io), alive_(std::make_shared<char>()) {}
  void after(std::chrono::milliseconds delay, std::function<void()> task);
  void clear();

 private:
  void start();

  Timer timer_;
  std::multimap<Clock::time_point, std::function<void()>> tasks_;
  std::shared_ptr<char> alive_;  // a completed wait may still be queued
};

}  // namespace earshot::tail
