#include "base/bounded_calls.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace earshot {
namespace {

thread_local std::chrono::milliseconds patience = call_patience;

/// Runs calls in order on one thread, which ends with the owner's last call.
class Worker : public std::enable_shared_from_this<Worker> {
 public:
  explicit Worker(std::function<void()> on_answer) : on_answer_(std::move(on_answer)) {}

  bool run(std::function<void()> call) {
    std::unique_lock lock(mutex_);
    if (is_stuck_) return false;
    const auto job = add(std::move(call));
    if (done_.wait_for(lock, patience, [&] { return job->is_done; })) return true;
    job->call = nullptr;  // unless it runs already
    is_stuck_ = true;
    return false;
  }

  void post(std::function<void()> call) {
    const std::lock_guard lock(mutex_);
    add(std::move(call));
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    work_.notify_one();
  }

 private:
  struct Job {
    std::function<void()> call;
    bool is_done = false;
  };

  std::shared_ptr<Job> add(std::function<void()> call) {
    const auto job = std::make_shared<Job>(std::move(call));
    jobs_.push_back(job);
    // Detached: a call that never returns must not keep the process from ending.
    if (!std::exchange(has_thread_, true))
      std::thread([self = shared_from_this()] { self->work(); }).detach();
    work_.notify_one();
    return job;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return !jobs_.empty() || is_closed_; });
      if (jobs_.empty()) return;
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      auto call = std::exchange(job->call, nullptr);
      lock.unlock();
      if (call) call();
      call = nullptr;  // may close a descriptor
      lock.lock();
      job->is_done = true;
      done_.notify_all();
      if (!is_stuck_ || !jobs_.empty()) continue;
      is_stuck_ = false;
      lock.unlock();
      on_answer_();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::shared_ptr<Job>> jobs_;
  bool has_thread_ = false, is_stuck_ = false, is_closed_ = false;
  const std::function<void()> on_answer_;
};

}  // namespace

class BoundedDirectory {
 public:
  BoundedDirectory(std::string directory, const std::function<void(const std::string&)>& on_answer)
      : path(std::move(directory)),
        loop_(std::make_shared<Worker>([on_answer, path = path] { on_answer(path); })),
        other_(std::make_shared<Worker>([on_answer, path = path] { on_answer(path); })) {}
  ~BoundedDirectory() {
    loop_->close();
    other_->close();
  }
  BoundedDirectory(const BoundedDirectory&) = delete;
  BoundedDirectory& operator=(const BoundedDirectory&) = delete;

  bool contains(std::string_view each) const {
    return each.starts_with(path) && (each.size() == path.size() || each[path.size()] == '/' || path == "/");
  }
  /// The event loop does not wait behind the calls of other threads.
  Worker& worker() const { return patience < call_patience ? *loop_ : *other_; }

  const std::string path;

 private:
  const std::shared_ptr<Worker> loop_, other_;
};

namespace {

struct Table {
  std::atomic<bool> has_directories = false, has_descriptors = false;
  std::mutex mutex;
  std::vector<std::shared_ptr<BoundedDirectory>> directories;
  std::unordered_map<int, std::shared_ptr<BoundedDirectory>> descriptors;
};

/// Never destroyed: abandoned calls may use it while the process ends.
Table& table() {
  static Table& only = *new Table;
  return only;
}

}  // namespace

void set_call_patience(std::chrono::milliseconds longest) { patience = longest; }

void bound_calls_below(const std::vector<std::string>& directories,
                       std::function<void(const std::string&)> on_answer) {
  std::vector<std::shared_ptr<BoundedDirectory>> bounded;
  for (const std::string& path : directories)
    bounded.push_back(std::make_shared<BoundedDirectory>(path, on_answer));
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  for (auto& each : bounded) {  // a call that is stuck stays known
    const auto same = std::find_if(all.directories.begin(), all.directories.end(),
                                   [&](const auto& known) { return known->path == each->path; });
    if (same != all.directories.end()) each = *same;
  }
  all.directories.swap(bounded);
  all.has_directories = !all.directories.empty();
}

bool has_bounded_directories() { return table().has_directories.load(std::memory_order_relaxed); }

std::shared_ptr<BoundedDirectory> bounded_directory_of(std::string_view path) {
  if (!has_bounded_directories()) return nullptr;
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  const auto found = std::find_if(all.directories.begin(), all.directories.end(),
                                  [&](const auto& each) { return each->contains(path); });
  return found == all.directories.end() ? nullptr : *found;
}

std::shared_ptr<BoundedDirectory> bounded_directory_of(int fd) {
  Table& all = table();
  if (!all.has_descriptors.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(all.mutex);
  const auto found = all.descriptors.find(fd);
  return found == all.descriptors.end() ? nullptr : found->second;
}

void add_bounded_descriptor(int fd, std::shared_ptr<BoundedDirectory> directory) {
  Table& all = table();
  const std::lock_guard lock(all.mutex);
  all.descriptors[fd] = std::move(directory);
  all.has_descriptors = true;
}

std::shared_ptr<BoundedDirectory> forget_bounded_descriptor(int fd) {
  Table& all = table();
  if (!all.has_descriptors.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(all.mutex);
  auto node = all.descriptors.extract(fd);
  all.has_descriptors = !all.descriptors.empty();
  return node ? std::move(node.mapped()) : nullptr;
}

bool run_bounded(BoundedDirectory& directory, std::function<void()> call) {
  return directory.worker().run(std::move(call));
}

void post_bounded(BoundedDirectory& directory, std::function<void()> call) {
  directory.worker().post(std::move(call));
}

}  // namespace earshot
