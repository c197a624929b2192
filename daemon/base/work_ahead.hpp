// Work that another thread may do before its result is needed.
#pragma once
#include <atomic>

namespace earshot {

/// The thread that claims the work first does it. One thread starts and finishes it, any may run it; a run
/// that is late does what was started meanwhile, or nothing.
class WorkAhead {
 public:
  WorkAhead() = default;
  virtual ~WorkAhead() = default;
  WorkAhead(const WorkAhead&) = delete;
  WorkAhead& operator=(const WorkAhead&) = delete;

  /// Does the work unless another thread does or did, or none was started.
  void run() {
    State expected = State::waiting;
    if (!state_.compare_exchange_strong(expected, State::claimed)) return;
    work();
    state_.store(State::done);
    state_.notify_all();
  }
  bool is_done() const { return state_.load(std::memory_order_acquire) == State::done; }

 protected:
  /// What work() needs was set.
  void start() { state_.store(State::waiting, std::memory_order_release); }
  /// Waits only for a thread that has begun.
  void finish() {
    run();
    state_.wait(State::claimed);
  }

 private:
  enum class State { idle, waiting, claimed, done };

  virtual void work() = 0;

  std::atomic<State> state_ = State::idle;
};

}  // namespace earshot
