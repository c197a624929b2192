// Folding: reads what a file contained before it was followed without delivering events. The disk thread
// reads one chunk ahead.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "tail/follower.hpp"

namespace earshot::tail {
namespace {

// Some file systems record times in units of two seconds (FAT).
constexpr std::int64_t time_granularity_ns = 2'000'000'000;

/// Returns fewer bytes only at the end of the file.
long read_fully(int fd, char* buffer, std::size_t bytes, std::uint64_t offset) {
  std::size_t filled = 0;
  while (filled < bytes) {
    const long got = read_at(fd, buffer + filled, bytes - filled, offset + filled);
    if (got < 0) return got;
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return static_cast<long>(filled);
}

}  // namespace

struct Follower::Fold {
  static constexpr std::size_t chunks_ahead_max = ReadPool::buffers_max;

  std::shared_ptr<FollowedFile> file;
  std::uint64_t bytes;  // to fold
  std::function<void(bool)> then;
  std::uint64_t requested = 0;  // bytes
  std::size_t chunks_ahead = 0;
  bool is_finished = false;  // late chunks are ignored
  /// Set if the file is not the one whose first `bytes` bytes were known: the reason of the reset that
  /// follows. Clients that resume count on those bytes (Stream::published_bytes).
  const char* reset_reason = nullptr;

  // Used on the disk thread only, until the last chunk is handed over.
  Fd fd;
  FileStat opened;  // before its first byte was read

  long read(const std::string& path, char* buffer, std::size_t wanted, std::uint64_t begin, bool is_first,
            bool is_last) {
    if (is_first) {
      fd = open_for_reading(path);
      if (!fd) return -errno;
      opened = stat_file(fd.get());
      if (!opened.is_regular()) return -EINVAL;  // directories and FIFOs can be opened too
      // A later change in the same tick of the file system's clock would have the same change time.
      if (opened.changed_ns > wall_now().count() - time_granularity_ns) opened.changed_ns = 0;
    }
    if (!fd) return -EBADF;
    const long got = read_fully(fd.get(), buffer, wanted, begin);
    if (is_last) fd.reset();
    return got;
  }
};

void Follower::fold(FollowedFile& file, std::uint64_t bytes, std::function<void(bool)> then) {
  ++pending_folds_;
  file.state = FollowedFile::State::folding;
  auto fold = std::make_shared<Fold>();
  fold->file = file.shared_from_this();
  fold->bytes = bytes;
  fold->then = std::move(then);
  fold_queue_.push_back(std::move(fold));
  start_folds();
}

void Follower::start_folds() {
  while (active_folds_ < folds_max && !fold_queue_.empty()) {
    ++active_folds_;
    const auto fold = std::move(fold_queue_.front());
    fold_queue_.pop_front();
    if (fold->bytes > 0)
      continue_fold(fold);
    else  // nothing to read; completes from the loop like the others
      disk_.soon([this, fold] { finish_fold(*fold, true); });
  }
}

void Follower::continue_fold(const std::shared_ptr<Fold>& fold) {
  while (!fold->is_finished && fold->chunks_ahead < Fold::chunks_ahead_max && fold->requested < fold->bytes) {
    const std::uint64_t offset = fold->requested;
    const auto overlap = static_cast<std::size_t>(std::min<std::uint64_t>(offset, ReadPool::overlap_bytes));
    const auto fresh =
        static_cast<std::size_t>(std::min<std::uint64_t>(ReadPool::read_bytes, fold->bytes - offset));
    fold->requested += fresh;
    ++fold->chunks_ahead;
    const std::size_t wanted = overlap + fresh;
    const bool is_last = fold->requested == fold->bytes;
    auto read = [fold, path = fold->file->path(), offset, overlap, wanted, is_last](char* buffer) {
      return fold->read(path, buffer, wanted, offset - overlap, offset == 0, is_last);
    };
    reads_.request(std::move(read), [this, fold, overlap, wanted](const char* buffer, long result) {
      --fold->chunks_ahead;
      if (!fold->is_finished) on_fold_read(fold, buffer, overlap, wanted, result);
    });
  }
}

void Follower::on_fold_read(const std::shared_ptr<Fold>& fold, const char* buffer, std::size_t overlap,
                            std::size_t wanted, long result) {
  FollowedFile& file = *fold->file;
  if (file.is_removed()) return finish_fold(*fold, false);
  if (result < 0) {
    const bool is_missing = result == -ENOENT || result == -ENOTDIR;  // deleted since it was listed
    if (!is_missing) problems_.set(file.path(), static_cast<int>(-result));
    return finish_fold(*fold, false);
  }
  const auto bytes = static_cast<std::size_t>(result);
  if (bytes > overlap && !feed(file, buffer, overlap, bytes)) {
    fold->reset_reason = "rewritten";
    return finish_fold(*fold, true);
  }
  if (bytes < wanted) fold->reset_reason = "truncated";
  if (bytes < wanted || file.bytes_read() >= fold->bytes) return finish_fold(*fold, true);
  continue_fold(fold);
}

void Follower::finish_fold(Fold& fold, bool is_read) {
  if (std::exchange(fold.is_finished, true)) return;
  --pending_folds_;
  --active_folds_;
  const auto file = fold.file;
  if (!file->is_removed()) file->state = FollowedFile::State::idle;
  file->check_pending = false;
  const auto then = std::move(fold.then);
  start_folds();
  // While the change time is this one, the file contains what was read.
  if (is_read && !fold.reset_reason && fold.bytes > 0) file->stat = fold.opened;
  if (then) then(is_read && !file->is_removed());
  if (!file->is_removed() && is_read) {
    if (fold.reset_reason) reset(*file, file->stat, fold.reset_reason);
    check_soon(*file);
  }
  end_batch_soon();
}

}  // namespace earshot::tail
