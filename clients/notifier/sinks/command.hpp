// The command and bell sinks, and the thread on which they run: both block.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "notifier/notice.hpp"

namespace earshot::notifier {

/// Runs the sink's command without a shell, with the notice as JSON on stdin and in EARSHOT_* variables. An
/// error includes the beginning of its stderr. After the sink's timeout it is killed with its children.
Delivery run_command(const Sink& sink, const Notice& notice);

/// Runs any program the same way.
Delivery run_program(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                     std::string_view input, std::int64_t timeout_ms);

/// Writes BEL to the sink's terminal or the controlling terminal.
Delivery write_bell(const Sink& sink);

/// One thread for blocking work, in order: commands, the bell, requests to the daemon.
class Worker {
 public:
  Worker();
  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  void post(std::function<void()> work);  // ignored after stop()
  /// Waits for the running task; queued tasks are dropped.
  void stop();

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace earshot::notifier
