// The doorbells of this house, wired together: inotify where it works, the sweep always unless it is not
// wanted.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>

#include "watch/inotify.hpp"
#include "watch/notification_probe.hpp"
#include "watch/sweep.hpp"
#include "watch/watch_mux.hpp"

namespace earshot::watch {

enum class Mode { inotify, sweep, both };

class Watchers {
 public:
  Watchers(boost::asio::io_context& io, boost::asio::any_io_executor disk, Mode mode = Mode::both,
           SweepIntervals beats = {});
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;

  WatchMux& mux() { return mux_; }
  /// Empty: all is well. Otherwise for people: what is not watched, why, and what to raise.
  std::string problem() const;
  /// Directories that the kernel reports on.
  std::size_t watches() const { return inotify_ ? inotify_->watches() : 0; }

 private:
  bool deaf() const;

  WatchMux mux_;
  NotificationProbe probe_;
  const Clock::duration amnesty_;  // all has been swept once more by then
  std::unique_ptr<Inotify> inotify_;
  std::unique_ptr<Sweep> sweep_;
};

}  // namespace earshot::watch
