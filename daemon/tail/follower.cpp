#include "tail/follower.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "agents/transcript_file.hpp"

namespace earshot::tail {
namespace {

using State = FollowedFile::State;

std::size_t open_files_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return Follower::open_files_max;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, Follower::open_files_max);
}

class Delivery final : public EventSink {
 public:
  Delivery(StreamObserver& observer, const Stream& stream, std::uint64_t& count)
      : observer_(observer), stream_(stream), count_(count) {}
  void on_event(const Event& event) override {
    ++count_;
    observer_.on_event(stream_, event);
  }

 private:
  StreamObserver& observer_;
  const Stream& stream_;
  std::uint64_t& count_;
};

}  // namespace

Follower::Follower(IoThread& disk, IoThread& folds, ReadPool& reads, TimerQueue& timers,
                   FileProblems& problems, const Options& options, StreamObserver& observer,
                   Counters& counters, Owner& owner)
    : disk_(disk),
      folds_(folds),
      reads_(reads),
      timers_(timers),
      problems_(problems),
      options_(options),
      observer_(observer),
      counters_(counters),
      owner_(owner),
      buffer_(ReadPool::make_buffer()),
      open_max_(open_files_allowed()) {}

void Follower::check_soon(FollowedFile& file) {
  if (file.is_removed() || std::exchange(file.check_pending, true) || file.is_busy()) return;
  queue_.push_back(file.shared_from_this());
  end_batch_soon();
}

/// The file has more bytes than this batch may read.
void Follower::continue_soon(FollowedFile& file) {
  if (file.is_removed() || std::exchange(file.check_pending, true)) return;
  backlog_.push_back(file.shared_from_this());
  end_batch_soon();
}

void Follower::end_batch_soon() {
  if (!std::exchange(batch_scheduled_, true) && !is_held_) post_batch();
}

void Follower::post_batch() {
  disk_.soon([this] {
    if (batch_scheduled_) run_batch();
  });
}

void Follower::run_batch_now() {
  const bool was_held = std::exchange(is_held_, false);
  if (!batch_scheduled_) return;
  if (!queue_.empty()) return run_batch();
  if (was_held) post_batch();
}

/// Files that changed are read, and their events sent, before the files that have more to read than one
/// batch: an append waits for one part of such a file at most.
void Follower::run_batch() {
  batch_scheduled_ = false;
  batch_read_ = 0;
  check_disk_queue();
  if (!backlog_.empty()) {
    const Clock::time_point now = Clock::now();
    if (!queue_.empty()) shared_until_ = now + shared_for;
    batch_max_ = now < shared_until_ ? shared_batch_bytes : batch_bytes;
  } else {
    batch_max_ = batch_bytes;
  }
  const std::size_t had_backlog = backlog_.size();
  check_queued(queue_, checks_max);
  flush();
  batch_read_ = 0;  // neither kind of file waits for the other
  check_queued(backlog_, had_backlog);
  flush();
  if (stopped_) return;
  observer_.on_batch_end();
  const bool may_read_more = !disk_queue_.empty() && disk_reads_ < disk_reads_max;
  if (!queue_.empty() || !backlog_.empty() || may_read_more) end_batch_soon();
}

void Follower::check_queued(std::deque<std::shared_ptr<FollowedFile>>& queue, std::size_t checks) {
  const std::size_t due = std::min(queue.size(), checks);
  for (std::size_t n = 0; n < due && batch_read_ < batch_max_ && !stopped_; ++n) {
    const auto file = std::move(queue.front());
    queue.pop_front();
    if (file->is_removed() || file->is_busy()) continue;  // a busy one is queued again when it is done
    if (std::exchange(file->check_pending, false)) check(*file);
  }
}

/// Sends what read_first() has delivered, then examines those files.
void Follower::flush() {
  if (unexamined_.empty() || stopped_) return;
  observer_.on_flush();
  for (const auto& file : unexamined_)
    if (!stopped_ && !file->is_removed()) examine(*file, true);
  unexamined_.clear();
}

void Follower::check(FollowedFile& file) {
  ++counters_.checks;
  if (!read_first(file)) examine(file, false);
}

/// Delivers what was appended to an open file before the file is examined, so that the events do not wait for
/// that. What they follow may have changed since the last look; as always, the overlap and the next look
/// decide.
bool Follower::read_first(FollowedFile& file) {
  // A change between this read and the examination has a hint of its own, and verify_when_quiet() finds it.
  const bool is_verifiable = file.bytes_read() > 0 && file.bytes_read() <= options_.verify_bytes_max;
  if (!is_verifiable || !file.fd || file.state != State::idle || file.retry_scheduled) return false;
  const std::size_t overlap = file.overlap_bytes();
  const long got = read_at(file.fd->get(), buffer_.get(), overlap + batch_max_, file.bytes_read() - overlap,
                           ReadMode::no_wait);
  if (got <= static_cast<long>(overlap)) return false;
  if (!feed(file, buffer_.get(), overlap, static_cast<std::size_t>(got))) return false;
  unexamined_.push_back(file.shared_from_this());
  return true;
}

/// `was_read`: read_first() has delivered bytes that `file.stat` does not count.
void Follower::examine(FollowedFile& file, bool was_read) {
  const std::int64_t looked_ns = wall_now().count();
  const bool was_in_tick = file.looked_in_tick;
  const FileStat now = stat_file(file.path());
  if (file.is_left || now.is_missing()) return on_unlinked(file);
  if (now.error) return retry_after_error(file, now.error);
  if (!now.is_regular()) {
    on_unlinked(file);
    if (file.is_removed()) problems_.set_irregular(file.path());
    return;
  }
  file.state = State::idle;
  file.looked_in_tick =
      was_read || std::abs(looked_ns - now.changed_ns) < std::chrono::nanoseconds(change_tick).count();
  const bool is_other_file = !now.is_same_file(file.stat);
  if (is_other_file && now.size < file.bytes_read()) {
    if (is_being_unpacked(file, now)) return;
  } else {
    file.unpacked.reset();
  }
  if (is_other_file) replace(file, now);
  if (now.size < file.bytes_read()) return reset(file, now);
  const bool changed_without_growth =
      !was_read && now.size == file.bytes_read() && now.changed_ns != file.stat.changed_ns;
  if (file.bytes_read() > 0 && (is_other_file || changed_without_growth)) return verify_now(file);
  if (is_other_file) file.stat = now;
  if (now.size > file.bytes_read()) return was_read ? continue_soon(file) : read(file, now);
  file.stat = now;
  mark_current(file);
  if (was_read) {
    file.used = Clock::now();
    file.short_reads = 0;
  } else if (was_in_tick && file.bytes_read() > 0 && file.bytes_read() <= options_.verify_bytes_max) {
    verify_when_quiet(file);
  }
}

std::size_t Follower::next_read_bytes(const FollowedFile& file, std::uint64_t size, std::size_t bytes_max) {
  return file.overlap_bytes() +
         static_cast<std::size_t>(std::min<std::uint64_t>(bytes_max, size - file.bytes_read()));
}

void Follower::read(FollowedFile& file, const FileStat& now) {
  file.stat.modified_ns = now.modified_ns;
  const bool was_open = file.fd != nullptr;  // if so, it is the file of `file.stat` and of `now`
  if (const int error = open(file)) {
    // Removed since it was examined: the next check handles that.
    if (is_missing(error) && ++file.short_reads < short_reads_max) return check_soon(file);
    return retry_after_error(file, error);
  }
  if (!was_open) {
    const FileStat opened = stat_file(file.fd->get());
    if (opened.error || !opened.is_same_file(now)) {  // replaced since it was examined
      close(file);
      return check_soon(file);
    }
  }
  const std::size_t overlap = file.overlap_bytes();
  const std::size_t wanted = next_read_bytes(file, now.size, batch_max_);
  const long got =
      read_at(file.fd->get(), buffer_.get(), wanted, file.bytes_read() - overlap, ReadMode::no_wait);
  // Short at the edge of the page cache: no error, and no sign of the end of the file.
  if (got < static_cast<long>(wanted)) return read_on_disk(file, now);
  on_read(file, now, buffer_.get(), overlap, got);
}

void Follower::read_on_disk(FollowedFile& file, const FileStat& now) {
  if (disk_reads_ >= disk_reads_max) {  // its descriptor may be closed meanwhile
    if (!std::exchange(file.disk_queued, true)) disk_queue_.push_back(file.weak_from_this());
    return;
  }
  ++disk_reads_;
  file.state = State::reading;
  const std::size_t overlap = file.overlap_bytes();
  const std::size_t wanted = next_read_bytes(file, now.size, ReadPool::read_bytes);
  reads_.request([fd = file.fd, wanted, offset = file.bytes_read() - overlap](
                     char* buffer) { return read_fully(fd->get(), buffer, wanted, offset); },
                 [this, holder = file.shared_from_this(), now, overlap](const char* buffer, long got) {
                   --disk_reads_;
                   end_batch_soon();
                   if (holder->is_removed()) return;
                   holder->state = State::idle;
                   const bool check_again = std::exchange(holder->check_pending, false);
                   on_read(*holder, now, buffer, overlap, got);
                   if (check_again) check_soon(*holder);
                 });
}

/// Checks as many waiting files as may read from the disk now.
void Follower::check_disk_queue() {
  for (std::size_t free = disk_reads_max - disk_reads_; free > 0 && !disk_queue_.empty();) {
    const auto file = disk_queue_.front().lock();
    disk_queue_.pop_front();
    if (!file) continue;
    file->disk_queued = false;
    if (file->is_removed()) continue;
    check_soon(*file);
    --free;
  }
}

void Follower::on_read(FollowedFile& file, const FileStat& now, const char* buffer, std::size_t overlap,
                       long result) {
  if (result < 0) return retry_after_error(file, static_cast<int>(-result));
  const auto bytes = static_cast<std::size_t>(result);
  if (bytes <= overlap) {  // shorter than it was when it was examined
    if (++file.short_reads >= short_reads_max) return retry_after_error(file, EIO);
    return check_soon(file);
  }
  if (!feed(file, buffer, overlap, bytes)) return reset(file, now);
  file.short_reads = 0;
  mark_current(file);
  if (file.bytes_read() < now.size)
    continue_soon(file);
  else
    file.stat = now;  // the bytes read are no newer than this: a later change has a later change time
}

/// Delivers the events of new bytes. False if the overlap is not what was read before.
bool Follower::feed(FollowedFile& file, const char* buffer, std::size_t overlap, std::size_t bytes) {
  const std::span<const char> all(buffer, bytes);
  if (!file.matches_overlap(all.first(overlap))) return false;
  batch_read_ += bytes - overlap;
  counters_.bytes_read += bytes - overlap;
  if (!file.is_added) {
    NullSink no_delivery;
    file.feed(all, overlap, workspace_, no_delivery);
    return true;
  }
  observer_.on_growing(file);
  Delivery delivery(observer_, file, counters_.events);
  if (file.feed(all, overlap, workspace_, delivery) && !stopped_) observer_.on_changed(file);
  return true;
}

/// Its descriptor is that of the former file.
void Follower::replace(FollowedFile& file, const FileStat& now) {
  close(file);
  owner_.on_file_replaced(file, now);
}

void Follower::reset(FollowedFile& file, const FileStat& now) {
  const bool is_shorter = now.size < file.bytes_read();
  reset(file, now, !now.is_same_file(file.stat) ? "replaced" : is_shorter ? "truncated" : "rewritten");
}

void Follower::reset(FollowedFile& file, const FileStat& now, std::string_view reason) {
  close(file);
  file.restart();
  file.stat = now;
  file.stat.changed_ns = 0;  // none of its bytes were read
  ++counters_.resets;
  observer_.on_reset(file, reason);
  check_soon(file);
  end_batch_soon();
}

/// The rest of the file is read through its open descriptor, in parts as of any file. It may have another
/// name, which is found meanwhile: see rename().
void Follower::on_unlinked(FollowedFile& file) {
  const FileStat last = file.fd ? stat_file(file.fd->get()) : FileStat{};
  const auto now = Clock::now();
  const bool has_more = file.fd && !last.error && last.size > file.bytes_read();
  const bool is_elsewhere = file.fd && last.links > 0;
  if (std::exchange(file.state, State::draining) != State::draining || (has_more && !is_elsewhere))
    file.drain_until = now + options_.linger;
  if (has_more) {
    read(file, last);
    if (file.state != State::draining || file.bytes_read() < last.size) {
      if (!file.disk_queued) check_soon(file);
      return;
    }
  }
  const auto end = file.drain_until + options_.linger * (owner_.is_looking() ? looking_lingers_max : 0);
  if (last.error || now >= end) return file.is_left || !is_compressed(file) ? remove(file) : rest(file);
  const bool polls = now >= file.drain_until || (file.fd && !is_elsewhere);
  const auto wait = polls ? options_.linger / 10 : file.drain_until - now;
  timers_.after(std::max(std::chrono::ceil<std::chrono::milliseconds>(wait), std::chrono::milliseconds(1)),
                [this, holder = file.shared_from_this()] { check_soon(*holder); });
}

/// Until the file has not grown for a while: then a copy was left, and the file is another one.
bool Follower::is_being_unpacked(FollowedFile& file, const FileStat& now) {
  if (!stat_compressed(file.path()).ok()) {
    const FileStat whole = stat_file(file.path());  // it may have been unpacked since the look
    if (whole.ok() && whole.size == now.size) return false;
    check_soon(file);
    return true;
  }
  const auto time = Clock::now();
  if (!file.unpacked || file.unpacked->first != now.size) file.unpacked.emplace(now.size, time);
  const auto until = file.unpacked->second + options_.linger * unpacking_lingers;
  if (time >= until) return false;
  if (std::exchange(file.retry_scheduled, true)) return true;
  timers_.after(std::chrono::ceil<std::chrono::milliseconds>(until - time),
                [this, holder = file.shared_from_this()] {
                  holder->retry_scheduled = false;
                  check_soon(*holder);
                });
  return true;
}

bool Follower::is_compressed(const FollowedFile& file) {
  return stat_transcript(file.path()).size == unknown_bytes;
}

void Follower::rest(FollowedFile& file) {
  close(file);
  file.state = State::idle;
  file.unpacked.reset();
  mark_current(file);
}

void Follower::rename(FollowedFile& file, std::string name, std::string path, StreamIdentity identity) {
  problems_.clear(file.path());
  file.rename(std::move(name), std::move(path), std::move(identity));
  file.is_left = false;
  if (file.state == State::draining) file.state = State::idle;
  check_soon(file);
}

void Follower::leave(FollowedFile& file) {
  file.is_left = true;
  // At once if it is little: its events precede those of the same file under another name.
  if (file.is_busy() || batch_read_ >= batch_max_) return check_soon(file);
  ++counters_.checks;
  examine(file, false);
  end_batch_soon();
}

void Follower::retry_after_error(FollowedFile& file, int error) {
  close(file);
  if (!is_missing(error)) problems_.set(file.path(), error);  // a removed file is not reported
  file.short_reads = 0;
  file.retry_delay = std::clamp(file.retry_delay * 2, options_.retry_first, options_.retry_last);
  if (std::exchange(file.retry_scheduled, true)) return;
  timers_.after(file.retry_delay, [this, holder = file.shared_from_this()] {
    holder->retry_scheduled = false;
    check_soon(*holder);
  });
}

void Follower::mark_current(FollowedFile& file) {
  file.retry_delay = {};
  if (file.verify_delay.count() == 0) problems_.clear(file.path());
}

void Follower::add(FollowedFile& file) {
  file.is_added = true;
  observer_.on_added(file);
  end_batch_soon();
}

bool Follower::release(FollowedFile& file) {
  const bool is_in_use = file.state != State::idle || file.check_pending || file.retry_scheduled ||
                         file.disk_queued || file.requested_verifications > 0 || !file.waiters.empty();
  if (is_in_use || file.stat.size > file.bytes_read()) return false;
  file.state = State::removed;
  close(file);
  return true;
}

void Follower::remove(FollowedFile& file) {
  if (std::exchange(file.state, State::removed) == State::removed) return;
  const auto holder = file.shared_from_this();
  close(file);
  problems_.clear(file.path());
  owner_.on_file_removed(file);
  observer_.on_removed(file);
  for (const auto& waiter : std::exchange(file.waiters, {})) waiter(nullptr);
  end_batch_soon();
}

/// Returns 0 or the error.
int Follower::open(FollowedFile& file) {
  file.used = Clock::now();
  if (file.fd) return 0;
  if (open_.size() >= open_max_) close_least_recent();
  Fd fd = open_for_reading(file.path());
  while (!fd && (errno == EMFILE || errno == ENFILE)) {
    if (!close_least_recent()) return EMFILE;
    fd = open_for_reading(file.path());
  }
  if (!fd) return errno;
  file.fd = std::make_shared<const Fd>(std::move(fd));
  open_.push_back(file.shared_from_this());
  if (!std::exchange(close_scheduled_, true)) timers_.after(options_.quiet, [this] { close_unused(); });
  return 0;
}

bool Follower::close_least_recent() {
  // A removed file cannot be opened again.
  const auto rank = [](const FollowedFile& file) {
    return file.is_busy() ? 2 : file.state == State::draining || file.is_left ? 1 : 0;
  };
  const auto oldest = std::min_element(open_.begin(), open_.end(), [&](const auto& a, const auto& b) {
    return std::pair(rank(*a), a->used) < std::pair(rank(*b), b->used);
  });
  if (oldest == open_.end() || (*oldest)->is_busy()) return false;
  close(**oldest);
  return true;
}

void Follower::close(FollowedFile& file) {
  if (!file.fd) return;
  // The last descriptor of a removed file frees what it contains: not on this thread.
  if (stat_file(file.fd->get()).links == 0) {
    auto work = [fd = std::move(file.fd)]() mutable {
      fd.reset();
      return true;
    };
    disk_.run(std::move(work), [](bool) {});
  }
  file.fd.reset();
  std::erase_if(open_, [&](const auto& each) { return each.get() == &file; });
}

void Follower::close_unused() {
  const auto since = Clock::now() - options_.quiet;
  for (const auto& file : std::vector(open_))
    if (!file->is_busy() && file->used <= since) close(*file);
  close_scheduled_ = !open_.empty();
  if (close_scheduled_) timers_.after(options_.quiet, [this] { close_unused(); });
}

}  // namespace earshot::tail
