// The way to the second thread and back: work that may wait for a disk runs there, what comes of it is
// handled here.
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

class IoThread {
 public:
  IoThread(boost::asio::io_context& io, boost::asio::any_io_executor executor)
      : io_(io), executor_(std::move(executor)), alive_(std::make_shared<char>()) {}

  /// `work()` on the second thread, in the order of the calls; then `done(result)` on this one, unless this
  /// object is gone or closed.
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

  /// `task()` on this thread, after what is already waiting there.
  template <class Task>
  void soon(Task task) {
    boost::asio::post(io_, [task = std::move(task), weak = std::weak_ptr<char>(alive_)]() mutable {
      if (!weak.expired()) task();
    });
  }

  void close() { alive_.reset(); }

 private:
  boost::asio::io_context& io_;
  boost::asio::any_io_executor executor_;
  std::shared_ptr<char> alive_;
};

/// Reads on the second thread into few buffers; who comes when all are in use waits in line.
class ReadPool {
 public:
  static constexpr std::size_t turn_bytes = 256 << 10;  // of one read
  static constexpr std::size_t before_bytes = 4 << 10;  // read again before it, to compare
  static constexpr std::size_t buffers_max = 2;         // in flight: one is read while the other is folded

  using Work = std::function<long(char* buffer)>;              // bytes, or -errno
  using Done = std::function<void(const char* buffer, long)>;  // the buffer is the reader's until it returns

  explicit ReadPool(IoThread& disk) : disk_(disk) {}
  void ask(Work work, Done done);

  using Buffer = std::unique_ptr<char[]>;
  static Buffer make_buffer();  // feed_padding included

 private:
  void next();

  IoThread& disk_;
  std::vector<Buffer> free_;
  std::size_t made_ = 0;
  std::deque<std::pair<Work, Done>> line_;
};

/// Tasks for later, in one timer.
class TimerQueue {
 public:
  explicit TimerQueue(boost::asio::io_context& io) : timer_(io), alive_(std::make_shared<char>()) {}
  void after(std::chrono::milliseconds delay, std::function<void()> task);
  void clear();

 private:
  using Clock = watch::Clock;
  void arm();

  watch::Timer timer_;
  std::multimap<Clock::time_point, std::function<void()>> tasks_;
  std::shared_ptr<char> alive_;  // an expired wait may still be on its way
};

}  // namespace earshot::tail
