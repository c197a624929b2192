// Looking in turn: a watcher that needs no help from the kernel, on any POSIX system. Slower than a
// notification, never deaf.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "watch/watcher.hpp"

namespace earshot::watch {

struct SweepIntervals {
  std::chrono::milliseconds hot{200};  // files that changed lately
  std::chrono::milliseconds hot_for{60'000};
  std::chrono::milliseconds slow{60'000};   // every known file, while notifications can be relied upon
  std::chrono::milliseconds alone{10'000};  // every known file, while they cannot
};

class Sweep final : public Watcher {
 public:
  static constexpr std::size_t hot_max = 1024;  // more are left to the slow beat
  static constexpr std::size_t slice_stats =
      512;  // stats a slice: the disk thread does other work in between

  /// `alone` is asked at each beat: true while this is the only doorbell that can be relied upon. Files are
  /// touched on `disk` only, which runs one task at a time, in order; join it before `io` is destroyed.
  Sweep(boost::asio::io_context& io, boost::asio::any_io_executor disk, ChangeCallback bell,
        SweepIntervals beats = {}, std::function<bool()> alone = {});
  ~Sweep() override;

  /// What the directory holds is taken down before any task that is given to `disk` after this call: watch,
  /// then scan.
  void watch(const std::string& directory) override;
  void unwatch(const std::string& directory) override;

  /// Something rang for this path: look at it at the hot beat for a while.
  void heat(const std::string& path);

 private:
  struct Hot {
    std::uint64_t signature = 0;  // 0: not taken yet
    Clock::time_point until;
  };
  class DirectorySnapshot;  // what is known of every directory; touched on the disk thread only

  void arm_hot();
  void look_at_hot();
  void arm_slow();
  void pass();
  void found(std::vector<ChangeHint> rings);

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  ChangeCallback bell_;
  SweepIntervals beats_;
  std::function<bool()> alone_;
  Timer hot_timer_, slow_timer_;
  std::unordered_map<std::string, Hot> hot_;
  bool asked_ = false;  // until a directory is watched there is no beat at all
  bool hot_armed_ = false, slow_armed_ = false;
  bool waits_slow_ = false;  // the timer runs for the slow beat
  std::shared_ptr<DirectorySnapshot> book_;
  std::shared_ptr<Sweep*> alive_;  // tasks that come back hold it weakly
};

}  // namespace earshot::watch
