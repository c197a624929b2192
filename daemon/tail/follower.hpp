// Checks followed files for changes, reads new bytes and delivers their events.
//
// A check looks at a file in up to four ways, each of which proves more, and costs more, than the one before:
//   read_first  The open descriptor has bytes behind the position: they are delivered at once.
//   examine     `stat` of the path: is it still this file, and is it longer, shorter, or changed?
//   read        New bytes. The KiB before them must be what was read there (the overlap), else the history
//               ends: `reset`.
//   verify      The disk thread compares everything that was read with the file at the path. Only this proves
//               that the file is what was read.
// A file is verified at once, and not read meanwhile, if another file is at its path, or if it changed
// without growth. Other verifications (struct Verification) wait, and the file is followed meanwhile. What
// does not match, or is shorter, is reset; what cannot be read is tried again. An unlinked file is read to
// its end through its descriptor, then removed, or rests where a compressed copy is left.
#pragma once
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/transcript.hpp"
#include "tail/followed_file.hpp"
#include "tail/io_thread.hpp"
#include "tail/stream.hpp"
#include "tail/tail.hpp"

namespace earshot::tail {

class Follower {
 public:
  static constexpr std::size_t open_files_max = 256;  // the least recently used one is closed for another
  static constexpr int short_reads_max = 3;           // then the file is checked again later
  static constexpr std::size_t checks_max = 64;       // per batch; the rest waits for the next one
  /// Read per batch from all files together, so that a busy file does not delay the others.
  static constexpr std::size_t batch_bytes = 64 << 10;
  /// Read per batch while other files grow, too, and one of them by more than a batch.
  static constexpr std::size_t shared_batch_bytes = 16 << 10;
  static constexpr std::chrono::milliseconds shared_for{100};  // since another file grew
  /// Reads that wait for the disk, at a time, with one open file each; further files are checked again later.
  static constexpr std::size_t disk_reads_max = ReadPool::buffers_max;
  /// Kernels before 6.13 take the change time from a clock that ticks every 1 to 10 ms: a change within this
  /// time of another may have the same one.
  static constexpr std::chrono::milliseconds change_tick{20};
  static constexpr std::chrono::seconds time_granularity{2};  // of change times on FAT
  /// At a time, and one of files that were just folded; the others wait.
  static constexpr std::size_t verifications_max = 2;
  /// A missing file waits for so many lingers more while directories are listed: it may be found there.
  static constexpr int looking_lingers_max = 10;
  /// A file that has not grown for so long is not being unpacked from its compressed copy.
  static constexpr int unpacking_lingers = 10;

  class Owner {
   public:
    virtual ~Owner() = default;
    /// Its path leads to another file.
    virtual void on_file_replaced(FollowedFile& file, const FileStat& now) = 0;
    /// Called before the observer.
    virtual void on_file_removed(FollowedFile& file) = 0;
    /// Files that are missing may be found under other names in a moment.
    virtual bool is_looking() const = 0;
  };

  /// `folds` reads and folds history, on several threads if its executor has them.
  Follower(IoThread& disk, IoThread& folds, ReadPool& reads, TimerQueue& timers, FileProblems& problems,
           const Options& options, StreamObserver& observer, Counters& counters, Owner& owner);

  /// Checks the file in the next batch, or when it is no longer busy.
  void check_soon(FollowedFile& file);
  /// Verifies everything that was read, if anything was appended since the last verification.
  void request_verify(FollowedFile& file);
  /// The file must still begin with the prefix that was published up to `end`, otherwise resets the stream.
  void verify_published(FollowedFile& file, const Cursor& end);
  /// Ends the batch soon: the observer received something outside a check.
  void end_batch_soon();
  /// run_batch_now() follows: the batch needs no turn of the loop.
  void hold_batch() { is_held_ = !batch_scheduled_; }
  /// Runs the next batch now, if checks are queued.
  void run_batch_now();
  /// Announces the stream.
  void add(FollowedFile& file);
  void remove(FollowedFile& file);
  /// Stops following the file without removing the stream. False: it is in use.
  bool release(FollowedFile& file);
  /// The file has another path. An unlinked one is followed again.
  void rename(FollowedFile& file, std::string name, std::string path, StreamIdentity identity);
  /// Its directory was removed: delivers what an open descriptor still provides, and removes the stream
  /// unless it is renamed.
  void leave(FollowedFile& file);
  /// Reads the first `bytes` bytes without delivering events; `then(true)` if they were read. The stream is
  /// not added yet.
  void fold(FollowedFile& file, std::uint64_t bytes, std::function<void(bool)> then);
  std::size_t pending_folds() const { return pending_folds_; }
  std::size_t open_files() const { return open_.size(); }
  std::size_t active_verifications() const { return active_verifications_; }
  ~Follower();
  void stop() { stopped_ = true; }

 private:
  struct Fold;
  struct FoldMemory;
  /// To be verified while the file is followed.
  struct Verification {
    enum class Why : std::uint8_t {
      requested,    // clients resume from what was read
      published,    // they have what was published before the file was folded, up to `published`
      suspected,    // it may have changed again within the tick of its change time, which would not show
      just_folded,  // likewise, but while it was folded; waits for all folds: a start may have thousands
    };
    std::shared_ptr<FollowedFile> file;
    Why why = Why::requested;
    Cursor published;
    std::uint32_t history = 0;  // of the file when it was wanted
    bool is_requested() const { return why == Why::requested || why == Why::published; }
  };

  void post_batch();
  void run_batch();
  void check_queued(std::deque<std::shared_ptr<FollowedFile>>& queue, std::size_t checks);
  void flush();
  void continue_soon(FollowedFile& file);
  void check(FollowedFile& file);
  bool read_first(FollowedFile& file);
  void examine(FollowedFile& file, bool was_read);
  void read(FollowedFile& file, const FileStat& now);
  void read_on_disk(FollowedFile& file, const FileStat& now);
  void check_disk_queue();
  void on_read(FollowedFile& file, const FileStat& now, const char* buffer, std::size_t overlap, long result);
  bool feed(FollowedFile& file, const char* buffer, std::size_t overlap, std::size_t bytes);
  void replace(FollowedFile& file, const FileStat& now);
  void reset(FollowedFile& file, const FileStat& now);
  void reset(FollowedFile& file, const FileStat& now, std::string_view reason);
  void on_unlinked(FollowedFile& file);
  bool is_being_unpacked(FollowedFile& file, const FileStat& now);
  static bool is_compressed(const FollowedFile& file);
  void rest(FollowedFile& file);
  void retry_after_error(FollowedFile& file, int error);
  void mark_current(FollowedFile& file);
  static bool is_missing(int error) { return error == ENOENT || error == ENOTDIR; }
  static std::size_t next_read_bytes(const FollowedFile& file, std::uint64_t size, std::size_t bytes_max);
  int open(FollowedFile& file);
  bool close_least_recent();
  void close(FollowedFile& file);
  void close_unused();
  void start_folds();
  void continue_fold(std::shared_ptr<Fold> fold);
  void finish_fold(Fold& fold);
  void verify_now(FollowedFile& file);
  void on_verified_now(FollowedFile& file, const PrefixCheck::Result& result);
  void verify_when_quiet(FollowedFile& file);
  void verify_after_folds(FollowedFile& file);
  void add_verification(Verification wanted);
  void start_verifications();
  void verify(Verification wanted, std::size_t& active);
  void on_verified(const Verification& wanted, std::uint64_t bytes, const PrefixCheck::Result& result);
  void verify_again(Verification wanted, int error);
  static void finish(const Verification& wanted);

  IoThread& disk_;
  IoThread& folds_;
  ReadPool& reads_;
  TimerQueue& timers_;
  FileProblems& problems_;
  const Options& options_;
  StreamObserver& observer_;
  Counters& counters_;
  Owner& owner_;

  Workspace workspace_;
  ReadPool::Buffer buffer_;
  std::deque<std::shared_ptr<FollowedFile>> queue_;
  std::deque<std::shared_ptr<FollowedFile>> backlog_;  // files with more to read: checked after the others
  Clock::time_point shared_until_;
  std::vector<std::shared_ptr<FollowedFile>> unexamined_;  // of this batch
  std::deque<Verification> verifications_, just_folded_;   // wait
  std::size_t active_verifications_ = 0, active_after_folds_ = 0;
  std::size_t disk_reads_ = 0;                          // in progress
  std::deque<std::weak_ptr<FollowedFile>> disk_queue_;  // files that wait for one of disk_reads_max
  std::vector<std::shared_ptr<FollowedFile>> open_;     // files with a descriptor
  std::size_t open_max_;
  std::size_t batch_max_ = batch_bytes, batch_read_ = 0;            // bytes of this batch
  std::multimap<std::uint64_t, std::shared_ptr<Fold>> fold_queue_;  // waiting, by bytes: the largest is next
  std::vector<std::shared_ptr<FoldMemory>> fold_memory_;            // of folds that have ended
  std::size_t pending_folds_ = 0;                                   // waiting and active
  std::size_t active_folds_ = 0;  // at most Options::folds_max, with one open file each
  bool batch_scheduled_ = false, is_held_ = false, close_scheduled_ = false, stopped_ = false;
};

}  // namespace earshot::tail
