// Polling: finds changes on any POSIX system without help from the kernel. Slower than notifications, but
// independent of them.
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

class DirectorySnapshot;

struct SweepIntervals {
  std::chrono::milliseconds hot{200};  // files that changed recently
  std::chrono::milliseconds hot_for{60'000};
  /// All files, while notifications are reliable, in turns over this time: no moment costs much.
  std::chrono::milliseconds slow{60'000};
  std::chrono::milliseconds alone{10'000};  // all files, while they are not
  std::chrono::milliseconds turn{4000};     // at least between two turns of `slow`: 60,000 files take longer
};

class Sweep final : public Watcher {
 public:
  static constexpr std::size_t hot_max = 1024;     // more files are left to the slow interval
  static constexpr std::size_t slice_stats = 512;  // per task, so that the disk thread can do other work
  static constexpr std::size_t slow_slices = 8;    // in one turn

  /// `is_alone` is called at each interval: true while no notification is reliable. Files are accessed on
  /// `disk` only, which runs one task at a time, in order; join it before `io` is destroyed.
  Sweep(boost::asio::io_context& io, boost::asio::any_io_executor disk, ChangeCallback on_change,
        SweepIntervals intervals = {}, std::function<bool()> is_alone = {});
  ~Sweep() override;

  /// The directory's content is recorded before any task that is posted to `disk` after this call: call
  /// watch() first, then scan.
  void watch(const std::string& directory) override;
  void unwatch(const std::string& directory) override;
  void watch_before_listing(const std::string& directory) override;
  /// Records what it lists.
  DirectoryLister lister() const override;

  /// Checks this path at the hot interval for a while.
  void mark_hot(const std::string& path);

 private:
  struct HotFile {
    std::uint64_t signature = 0;  // 0: not read yet
    Clock::time_point until;
  };

  void schedule_hot();
  void check_hot();
  void schedule_pass();
  bool is_slow() const { return is_alone_ && !is_alone_(); }
  void run_pass();
  void report(std::vector<ChangeHint> hints);

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  ChangeCallback on_change_;
  SweepIntervals intervals_;
  std::function<bool()> is_alone_;
  Timer hot_timer_, pass_timer_;
  std::unordered_map<std::string, HotFile> hot_files_;
  bool has_directories_ = false;  // no timer runs before the first watch()
  bool hot_scheduled_ = false, pass_scheduled_ = false;
  std::size_t slices_ = 0;                       // of this turn
  bool waits_slow_ = false;                      // the pass timer runs for the next turn of a slow pass
  std::chrono::milliseconds slow_wait_;          // for it
  std::shared_ptr<DirectorySnapshot> snapshot_;  // used on the disk thread only
  std::shared_ptr<Sweep*> alive_;                // results from the disk thread hold it weakly
};

}  // namespace earshot::watch
