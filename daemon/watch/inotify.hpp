// Linux notifications: one inotify instance, directories only. Events become hints and carry no other
// information. On other systems it only reports that files are polled.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "watch/watcher.hpp"

struct inotify_event;

namespace earshot::watch {

class Inotify final : public Watcher {
 public:
  static constexpr std::size_t buffer_bytes = 64 << 10;
  /// Sent by one poll(); the rest waits for the next one so that other handlers can run.
  static constexpr std::size_t hints_per_poll = 16;
  static constexpr std::size_t pending_max = 16'384;  // then notifications wait in the kernel's queue

  /// Does not throw for system limits: without an instance works() is false and problem() names the limit to
  /// raise.
  Inotify(boost::asio::io_context& io, ChangeCallback on_change);
  ~Inotify() override;

  /// Watches directories that were refused, as far as the limit allows now, and sends a hint for each from
  /// the loop. Costs one system call if nothing has changed.
  void retry_refused();

  /// Reads what has happened and sends the hints, without waiting. Not from a callback.
  void poll();
  /// Another poll() follows: hints are left.
  bool is_posted() const { return is_posted_; }
  /// When poll() began to read last.
  Clock::time_point polled() const { return polled_; }

  bool works() const { return works_; }
  /// True if some directories are not watched; problem() names the reason.
  bool is_limited() const { return !error_.empty() || !refused_.empty(); }
  std::size_t watches() const { return watches_.size(); }
  void watch(const std::string& directory) override;
  void unwatch(const std::string& directory) override;
  std::string problem() const override;

 private:
  using Watches = std::map<std::string, int, std::less<>>;  // directory → watch descriptor
  struct Pending;

  void wait();
  void read();
  void add_event(const inotify_event& event, const char* name);
  void remove(Watches::iterator at);

  boost::asio::posix::stream_descriptor descriptor_;
  ChangeCallback on_change_;
  std::unique_ptr<Pending> pending_;
  bool is_posted_ = false;
  Clock::time_point polled_;
  bool works_ = false;
  std::string error_;  // of the instance
  Watches watches_;
  // A directory that is watched by two paths has one watch descriptor.
  std::unordered_map<int, std::vector<Watches::iterator>> directories_;
  std::set<std::string> refused_;  // at the limit of watches
  std::shared_ptr<char> alive_;    // a callback may destroy this object
};

}  // namespace earshot::watch
