#include "tail/io_thread.hpp"

#include "base/system.hpp"

namespace earshot::tail {

long read_fully(int fd, char* buffer, std::size_t bytes, std::uint64_t offset) {
  std::size_t filled = 0;
  while (filled < bytes) {
    const long got = read_at(fd, buffer + filled, bytes - filled, offset + filled);
    if (got < 0) return got;
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return static_cast<long>(filled);
}

ReadPool::Buffer ReadPool::make_buffer() {
  return std::make_unique<char[]>(overlap_bytes + read_bytes + feed_padding);
}

void ReadPool::request(Read read, Done done) {
  waiting_.emplace_back(std::move(read), std::move(done));
  start_next();
}

void ReadPool::start_next() {
  while (!waiting_.empty()) {
    if (free_.empty() && buffers_ < buffers_max) {
      free_.push_back(make_buffer());
      ++buffers_;
    }
    if (free_.empty()) return;
    auto [read, done] = std::move(waiting_.front());
    waiting_.pop_front();
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    struct Result {
      Buffer buffer;
      long bytes;
    };
    auto work = [read = std::move(read), buffer = std::move(buffer)]() mutable {
      const long bytes = read(buffer.get());
      return Result{std::move(buffer), bytes};
    };
    disk_.run(std::move(work), [this, done = std::move(done)](Result result) {
      done(result.buffer.get(), result.bytes);
      free_.push_back(std::move(result.buffer));
      start_next();
    });
  }
}

void TimerQueue::after(std::chrono::milliseconds delay, std::function<void()> task) {
  const auto at = tasks_.emplace(Clock::now() + delay, std::move(task));
  if (at == tasks_.begin()) start();
}

void TimerQueue::clear() {
  tasks_.clear();
  timer_.cancel();
  alive_ = std::make_shared<char>();
}

void TimerQueue::start() {
  if (tasks_.empty()) return;
  timer_.expires_at(tasks_.begin()->first);  // cancels the wait for a later task
  timer_.async_wait([this, weak = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
    if (failed || weak.expired()) return;
    const auto now = Clock::now();
    while (!tasks_.empty() && tasks_.begin()->first <= now) {
      const auto task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      task();
      if (weak.expired()) return;
    }
    start();
  });
}

}  // namespace earshot::tail
