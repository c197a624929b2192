#include "tail/io_thread.hpp"

namespace earshot::tail {

ReadPool::Buffer ReadPool::make_buffer() {
  return std::make_unique<char[]>(before_bytes + turn_bytes + feed_padding);
}

void ReadPool::ask(Work work, Done done) {
  line_.emplace_back(std::move(work), std::move(done));
  next();
}

void ReadPool::next() {
  while (!line_.empty()) {
    if (free_.empty() && made_ < buffers_max) {
      free_.push_back(make_buffer());
      ++made_;
    }
    if (free_.empty()) return;
    auto [work, done] = std::move(line_.front());
    line_.pop_front();
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    struct Result {
      Buffer buffer;
      long bytes;
    };
    auto read = [work = std::move(work), buffer = std::move(buffer)]() mutable {
      const long bytes = work(buffer.get());
      return Result{std::move(buffer), bytes};
    };
    disk_.run(std::move(read), [this, done = std::move(done)](Result result) {
      done(result.buffer.get(), result.bytes);
      free_.push_back(std::move(result.buffer));
      next();
    });
  }
}

void TimerQueue::after(std::chrono::milliseconds delay, std::function<void()> task) {
  const auto at = tasks_.emplace(Clock::now() + delay, std::move(task));
  if (at == tasks_.begin()) arm();
}

void TimerQueue::clear() {
  tasks_.clear();
  timer_.cancel();
  alive_ = std::make_shared<char>();
}

void TimerQueue::arm() {
  if (tasks_.empty()) return;
  timer_.expires_at(tasks_.begin()->first);  // cancels the wait for a later one
  timer_.async_wait([this, weak = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
    if (failed || weak.expired()) return;
    const auto now = Clock::now();
    while (!tasks_.empty() && tasks_.begin()->first <= now) {
      const auto task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      task();
      if (weak.expired()) return;
    }
    arm();
  });
}

}  // namespace earshot::tail
