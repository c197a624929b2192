// Long work on the event loop, a slice per turn.
#pragma once
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include "base/clock.hpp"

namespace earshot::serve {

/// What one turn of the loop may be used for.
class Slice {
 public:
  static constexpr std::size_t steps_max = 1024;
  static constexpr std::chrono::microseconds time_max{1000};

  /// After each step, which is short: the others are left to the next slice.
  bool is_over() { return ++steps_ >= steps_max || Clock::now() >= end_; }

 private:
  std::size_t steps_ = 0;
  const Clock::time_point end_ = Clock::now() + time_max;
};

/// Works for several owners in turn, one slice per turn of the loop, so that none delays the other clients.
class Slices {
 public:
  /// Works until the slice is over; true: all is done.
  using Work = std::function<bool(Slice& slice)>;

  explicit Slices(boost::asio::io_context& io) : io_(io) {}
  Slices(const Slices&) = delete;
  Slices& operator=(const Slices&) = delete;

  /// Works, then calls `done`, both during the call if one slice is enough. One work per owner.
  void begin(const void* owner, Work work, std::function<void()> done);
  /// Of another owner than the one whose work is running.
  void cancel(const void* owner);
  std::size_t pending() const { return begun_.size(); }

 private:
  struct Begun {
    const void* owner;
    Work work;
    std::function<void()> done;
  };
  void run_soon();

  boost::asio::io_context& io_;
  std::deque<Begun> begun_;
  bool posted_ = false;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace earshot::serve
