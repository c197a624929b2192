// Folding silently what a file held before anyone listened: read on the second thread, one piece ahead of the
// folding.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "tail/follower.hpp"

namespace earshot::tail {
namespace {

// File systems with times of two seconds exist (FAT).
constexpr std::int64_t coarse_ns = 2'000'000'000;

/// Fewer bytes only at the file's end.
long read_whole(int fd, char* into, std::size_t bytes, std::uint64_t offset) {
  std::size_t have = 0;
  while (have < bytes) {
    const long got = read_at(fd, into + have, bytes - have, offset + have, false);
    if (got < 0) return got;
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  return static_cast<long>(have);
}

}  // namespace

struct Follower::Fold {
  static constexpr std::size_t ahead_max = ReadPool::buffers_max;  // pieces asked for and not yet folded

  std::shared_ptr<FollowedFile> live;
  std::uint64_t upto;
  std::function<void(bool)> then;
  std::uint64_t asked = 0;  // bytes
  std::size_t ahead = 0;    // pieces
  bool over = false;        // read, or given up: late pieces are let go
  /// Why the file is not the one of which `upto` bytes were to be passed over; null: it is. Who resumes
  /// counts on those bytes (Stream::bytes), so what the file holds now is told from its first line, as after
  /// any reset.
  const char* other_history = nullptr;

  // Touched on the second thread only, until what it read is handed over.
  Descriptor file;
  Facts opened;  // of the file, before its first byte was read
};

void Follower::fold(FollowedFile& live, std::uint64_t upto, std::function<void(bool)> then) {
  ++folding_;
  live.busy = true;
  auto fold = std::make_shared<Fold>();
  fold->live = live.shared_from_this();
  fold->upto = upto;
  fold->then = std::move(then);
  folds_.push_back(std::move(fold));
  start_folds();
}

void Follower::start_folds() {
  while (under_way_ < folds_max && !folds_.empty()) {
    ++under_way_;
    const auto fold = std::move(folds_.front());
    folds_.pop_front();
    if (fold->upto > 0)
      go_on(fold);
    else  // nothing to wait for; told from the loop all the same, as the others are
      disk_.soon([this, fold] { folded(*fold, true); });
  }
}

void Follower::go_on(const std::shared_ptr<Fold>& fold) {
  while (!fold->over && fold->ahead < Fold::ahead_max && fold->asked < fold->upto) {
    const std::uint64_t offset = fold->asked;
    const auto before = static_cast<std::size_t>(std::min<std::uint64_t>(offset, ReadPool::before_bytes));
    const auto wanted =
        before + static_cast<std::size_t>(std::min<std::uint64_t>(ReadPool::turn_bytes, fold->upto - offset));
    fold->asked += wanted - before;
    ++fold->ahead;
    const bool last = fold->asked == fold->upto;
    auto read = [fold, path = fold->live->path(), offset, before, wanted, last](char* buffer) -> long {
      if (!fold->file && offset == 0) fold->file = open_transcript(path);
      if (!fold->file) return offset == 0 ? -errno : -EBADF;
      // A directory or a FIFO opens as well: only a regular file is read.
      if (offset == 0) {
        fold->opened = facts_of(fold->file.get());
        if (fold->opened.kind != Facts::Kind::regular) return -EINVAL;
        // A change in the same tick of the file system's clock as the last one could not be told from it.
        if (fold->opened.changed_ns > watch::wall_now().count() - coarse_ns) fold->opened.changed_ns = 0;
      }
      const long got = read_whole(fold->file.get(), buffer, wanted, offset - before);
      if (last) fold->file.close();
      return got;
    };
    reads_.ask(std::move(read), [this, fold, before, wanted](const char* buffer, long got) {
      --fold->ahead;
      if (fold->over) return;
      if (fold->live->removed) return folded(*fold, false);
      if (got < 0) {
        const bool is_gone = got == -ENOENT || got == -ENOTDIR;  // deleted since it was listed: no trouble
        if (!is_gone) health_.set(fold->live->path(), static_cast<int>(-got));
        return folded(*fold, false);
      }
      const auto bytes = static_cast<std::size_t>(got);
      if (bytes > before && take(*fold->live, buffer, before, bytes) == Take::differs) {
        fold->other_history = "rewritten";
        return folded(*fold, true);
      }
      if (bytes < wanted) fold->other_history = "truncated";
      if (bytes < wanted || fold->live->read() >= fold->upto) return folded(*fold, true);
      go_on(fold);
    });
  }
}

void Follower::folded(Fold& fold, bool read) {
  if (std::exchange(fold.over, true)) return;
  --folding_;
  --under_way_;
  FollowedFile& live = *fold.live;
  live.busy = live.again = false;
  const auto holder = fold.live;
  const auto then = std::move(fold.then);
  start_folds();
  // As long as its change time is this one, what was read is what it says.
  if (read && !fold.other_history && fold.upto > 0) live.facts = fold.opened;
  if (then) then(read && !live.removed);
  if (!live.removed && read) {
    if (fold.other_history) reset(live, live.facts, fold.other_history);
    want(live);
  }
  pump_soon();
}

}  // namespace earshot::tail
