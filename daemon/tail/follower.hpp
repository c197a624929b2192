// Looking at a followed file: what happened to it since, by the file system's word, and the bytes that are
// new.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/transcript.hpp"
#include "tail/followed_file.hpp"
#include "tail/health.hpp"
#include "tail/io_thread.hpp"
#include "tail/stream.hpp"
#include "tail/tail.hpp"

namespace earshot::tail {

class Follower {
 public:
  static constexpr std::size_t open_files_max = 256;   // the least recently used one is closed for another
  static constexpr int misses_max = 3;                 // then the file is tried again later
  static constexpr std::size_t looks_max = 256;        // a pump; the rest waits for the next one
  static constexpr std::size_t pump_bytes = 64 << 10;  // read by a pump, of all together: who appends a line
                                                       // waits for no more of a firehose than that
  static constexpr std::size_t folds_max = 2;  // at a time, each with an open file; the rest waits in line

  /// `removed` hears of each stream that is no more, before the listener does.
  Follower(IoThread& disk, ReadPool& reads, TimerQueue& later, FileProblems& health, const Options& options,
           StreamObserver& listener, Counters& counters, std::function<void(FollowedFile&)> removed);

  void want(FollowedFile& live);  // look at it soon
  void doubt(
      FollowedFile& live);  // and compare all that was read, if anything was appended since that was done
  /// So far somebody was told of the file: if that is gone, it is a reset.
  void prove(FollowedFile& live, const Cursor& told);
  void pump_soon();                 // the listener was told something outside a look: ring it
  void pump_now();                  // a look that waits for the next pump, if any does, waits no longer
  void appear(FollowedFile& live);  // it is as the listener may know it
  void remove(FollowedFile& live);
  void drop(FollowedFile& live);  // its directory is gone: what its descriptor still gives, then the end
  void fold(FollowedFile& live, std::uint64_t upto,
            std::function<void(bool)> then);  // silently; it has not appeared yet
  std::size_t folding() const { return folding_; }
  std::size_t open_files() const { return open_.size(); }
  void stop() { stopped_ = true; }

 private:
  struct Fold;
  enum class Take { fed, differs };

  void pump();
  void look(FollowedFile& live);
  void grow(FollowedFile& live, const Facts& now);
  void grow_on_disk(FollowedFile& live, const Facts& now, std::size_t wanted);
  void took(FollowedFile& live, const Facts& now, const char* buffer, std::size_t before, long bytes);
  Take take(FollowedFile& live, const char* buffer, std::size_t before, std::size_t bytes);
  void verify(FollowedFile& live, const Facts& now, std::string_view reason);
  void reset(FollowedFile& live, const Facts& now, std::string_view reason);
  void gone(FollowedFile& live);
  bool drained(FollowedFile& live, std::uint64_t size);
  void not_a_file(FollowedFile& live);
  void trouble(FollowedFile& live, int error);
  void release(FollowedFile& live);
  int open(FollowedFile& live);
  void close_quiet();
  void try_later(FollowedFile& live, std::chrono::milliseconds delay);
  void start_folds();
  void go_on(const std::shared_ptr<Fold>& fold);
  void folded(Fold& fold, bool read);

  IoThread& disk_;
  ReadPool& reads_;
  TimerQueue& later_;
  FileProblems& health_;
  const Options& options_;
  StreamObserver& listener_;
  Counters& counters_;
  std::function<void(FollowedFile&)> removed_;

  Workspace workspace_;
  ReadPool::Buffer buffer_;
  std::deque<std::shared_ptr<FollowedFile>> queue_;
  std::vector<std::shared_ptr<FollowedFile>> open_;  // those with a descriptor
  std::size_t open_max_;
  std::size_t spent_ = 0;                    // bytes of this pump
  std::deque<std::shared_ptr<Fold>> folds_;  // in line
  std::size_t folding_ = 0;                  // in line and under way
  std::size_t under_way_ = 0;
  bool pumping_ = false, closing_ = false, stopped_ = false;
};

}  // namespace earshot::tail
