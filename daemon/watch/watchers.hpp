// The watch backends of the daemon, how often each has to run, and the directories on file systems that may
// stop answering (FUSE, network), for which calls are bounded.
#pragma once
#include <bitset>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "watch/inotify.hpp"
#include "watch/sweep.hpp"
#include "watch/watcher.hpp"

namespace earshot::watch {

// Detects mounts that never send notifications. Nothing may be written below a root, so the evidence is what
// the sweep finds before any notification arrives.
class NotificationProbe {
 public:
  static constexpr std::size_t notified_bits = 1
                                               << 18;  // by hash of the path; a collision counts as notified
  static constexpr std::size_t suspects_max = 16;      // more add no evidence
  /// Hard links and mapped writes elsewhere are silent too: a single silent change proves nothing.
  static constexpr std::size_t silent_from = 3;
  static constexpr std::chrono::seconds patience{2};  // a notification may arrive after the sweep's find

  /// A notification for this path arrived.
  void notified(std::string_view path);
  /// Notifications were dropped or a watch was refused: changes found within `grace` prove nothing.
  void notifications_lost(Clock::duration grace, Clock::time_point now = Clock::now());
  /// The sweep found a change; `entry`: a name was created or removed.
  void swept(std::string_view path, bool entry, Clock::time_point now = Clock::now());
  /// True if enough changes were never notified.
  bool is_silent(Clock::time_point now = Clock::now()) const;
  /// True if a created or removed name was not notified yet: a reason to sweep at the short interval.
  bool is_suspicious() const;
  /// For users. Empty: no problem.
  std::string problem(Clock::time_point now = Clock::now()) const;

 private:
  struct Suspect {
    std::string path;
    Clock::time_point since;
    bool entry;
  };
  std::bitset<notified_bits> notified_;
  std::vector<Suspect> suspects_;
  Clock::time_point grace_until_ = Clock::time_point::min();
};

enum class Mode { inotify, sweep, both };

// Connects the backends: inotify finds changes at once, the sweep finds what inotify does not report, and the
// probe decides how often the sweep has to run.
class Watchers {
 public:
  /// `disk` runs the sweep's file system calls; join it before `io` is destroyed.
  Watchers(boost::asio::io_context& io, boost::asio::any_io_executor disk, Mode mode = Mode::both,
           SweepIntervals intervals = {});
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  WatchMux& mux() { return mux_; }
  /// Sends the hints of what inotify has noticed so far, without waiting, unless that was done within `age`.
  /// Not from a callback.
  void poll(Clock::duration age = {}) {
    if (inotify_ && inotify_->works() && !inotify_->is_posted() && Clock::now() - inotify_->polled() >= age)
      inotify_->poll();
  }
  /// For users: what is not watched, why, and which limit to raise. Empty: no problem.
  std::string problem() const;
  /// Number of directories watched by inotify.
  std::size_t watches() const { return inotify_ ? inotify_->watches() : 0; }

 private:
  bool notifications_unreliable() const;

  WatchMux mux_;
  NotificationProbe probe_;
  const Clock::duration grace_;  // by then everything has been swept once more
  std::unique_ptr<Inotify> inotify_;
  std::unique_ptr<Sweep> sweep_;
};

/// The mount points of file systems of types that may stop answering: the innermost at or above the path, and
/// all below it. `mounts` has the format of /proc/self/mountinfo (proc_pid_mountinfo(5)).
std::vector<std::string> remote_mounts(std::string_view mounts, std::string_view path);

/// Bounds the calls on such file systems (base/bounded_calls.hpp), and follows the mount table. Where there
/// is no /proc, nothing is bounded.
class Mounts {
 public:
  /// `directories` are read; links in their paths are resolved, links below them are not. `on_answer` is
  /// called on the thread of `io` with the mount point of a file system that answers again.
  Mounts(boost::asio::io_context& io, std::vector<std::string> directories,
         std::function<void(const std::string& mount)> on_answer);
  ~Mounts();
  Mounts(const Mounts&) = delete;
  Mounts& operator=(const Mounts&) = delete;

 private:
  struct Target;

  void wait();
  void resolve();
  void update();
  void bound(const std::set<std::string>& paths);

  boost::asio::posix::stream_descriptor table_;
  std::vector<std::string> directories_;  // and what links in their paths lead to
  std::set<std::string> unresolved_;
  std::shared_ptr<Target> target_;  // shared with the threads of the calls
};

}  // namespace earshot::watch
