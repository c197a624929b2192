#include "tail/follower.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"

namespace earshot::tail {
namespace {

using watch::Clock;

std::size_t open_files_allowed() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return Follower::open_files_max;
  return std::clamp<std::size_t>(limit.rlim_cur / 4, 1, Follower::open_files_max);
}

class Tell final : public EventSink {
 public:
  Tell(StreamObserver& listener, const Stream& stream, std::uint64_t& count)
      : listener_(listener), stream_(stream), count_(count) {}
  void on_event(const Event& event) override {
    ++count_;
    listener_.on_event(stream_, event);
  }

 private:
  StreamObserver& listener_;
  const Stream& stream_;
  std::uint64_t& count_;
};

class Silence final : public EventSink {
 public:
  void on_event(const Event&) override {}
};

}  // namespace

Follower::Follower(IoThread& disk, ReadPool& reads, TimerQueue& later, FileProblems& health,
                   const Options& options, StreamObserver& listener, Counters& counters,
                   std::function<void(FollowedFile&)> removed)
    : disk_(disk),
      reads_(reads),
      later_(later),
      health_(health),
      options_(options),
      listener_(listener),
      counters_(counters),
      removed_(std::move(removed)),
      buffer_(ReadPool::make_buffer()),
      open_max_(open_files_allowed()) {}

void Follower::want(FollowedFile& live) {
  if (live.removed || live.queued) return;
  if (live.busy) {
    live.again = true;
    return;
  }
  live.queued = true;
  queue_.push_back(live.shared_from_this());
  pump_soon();
}

void Follower::doubt(FollowedFile& live) {
  if (!live.unproven) return;
  live.doubted = true;
  want(live);
}

void Follower::prove(FollowedFile& live, const Cursor& told) {
  check(disk_, {live.path(), options_.hash_key, told, 0, 0},
        [this, told, holder = live.shared_from_this()](const PrefixCheckResult& verdict) {
          if (holder->removed) return;
          if (verdict.error || (!verdict.fits && holder->busy))  // it is moving, or cannot be read: once more
            return later_.after(options_.retry_first, [this, told, holder] {
              if (!holder->removed) prove(*holder, told);
            });
          if (verdict.fits) return;
          reset(*holder, verdict.facts, "rewritten");
        });
}

void Follower::pump_soon() {
  if (std::exchange(pumping_, true)) return;
  disk_.soon([this] {
    if (pumping_) pump();
  });
}

void Follower::pump_now() {
  if (pumping_ && !queue_.empty()) pump();
}

void Follower::pump() {
  pumping_ = false;
  spent_ = 0;
  // A turn of bytes for all together, then whatever else waits on this thread: a firehose starves nobody.
  for (std::size_t due = std::min(queue_.size(), looks_max); due > 0 && spent_ < pump_bytes && !stopped_;
       --due) {
    const auto live = std::move(queue_.front());
    queue_.pop_front();
    live->queued = false;
    if (!live->removed) look(*live);
  }
  if (stopped_) return;
  listener_.on_batch_end();
  if (!queue_.empty()) pump_soon();
}

void Follower::look(FollowedFile& live) {
  if (live.busy) {
    live.again = true;
    return;
  }
  ++counters_.checks;
  const Facts now = facts_of(live.path());
  if (now.gone()) return gone(live);
  if (now.error) return trouble(live, now.error);
  if (now.kind != Facts::Kind::regular) return not_a_file(live);
  live.lingers_until.reset();
  const bool other_file = !now.same_file(live.facts);
  if (other_file) release(live);
  if (now.size < live.read()) return reset(live, now, other_file ? "replaced" : "truncated");
  if (live.read() > 0) {
    if (other_file) return verify(live, now, "replaced");
    if (now.size == live.read() && now.changed_ns != live.facts.changed_ns)
      return verify(live, now, "rewritten");
    if (live.doubted) return verify(live, now, "rewritten");
  }
  if (other_file) live.facts = now;
  if (now.size > live.read()) return grow(live, now);
  live.facts = now;
  live.retry = {};
  health_.clear(live.path());
}

void Follower::grow(FollowedFile& live, const Facts& now) {
  live.facts.modified_ns = now.modified_ns;
  const bool is_held = static_cast<bool>(live.file);  // then it is the one of live.facts, and so is `now`
  if (const int error = open(live)) {
    // Deleted since its stat: no trouble, the next look finds out.
    const bool is_gone = error == ENOENT || error == ENOTDIR;
    return is_gone && ++live.misses < misses_max ? want(live) : trouble(live, error);
  }
  if (!is_held) {
    const Facts opened = facts_of(live.file.get());
    if (opened.error || !opened.same_file(now)) {
      release(live);
      return want(live);  // it was replaced just now
    }
  }
  const std::size_t before = live.before();
  const auto wanted =
      before + static_cast<std::size_t>(std::min<std::uint64_t>(pump_bytes, now.size - live.read()));
  const long got = read_at(live.file.get(), buffer_.get(), wanted, live.read() - before, true);
  if (got == -EAGAIN || got == -EOPNOTSUPP || got == -ENOSYS || got == -EINVAL)
    return grow_on_disk(live, now, wanted);
  took(live, now, buffer_.get(), before, got);
}

void Follower::grow_on_disk(FollowedFile& live, const Facts& now, std::size_t wanted) {
  live.busy = true;
  const auto holder = live.shared_from_this();
  const std::size_t before = live.before();
  const std::uint64_t offset = live.read() - before;
  reads_.ask(
      // The descriptor stays open while it is busy.
      [fd = live.file.get(), wanted, offset](char* buffer) {
        return read_at(fd, buffer, wanted, offset, false);
      },
      [this, holder, now, before](const char* buffer, long got) {
        holder->busy = false;
        if (holder->removed) return release(*holder);
        took(*holder, now, buffer, before, got);
        if (std::exchange(holder->again, false)) want(*holder);
        pump_soon();
      });
}

void Follower::took(FollowedFile& live, const Facts& now, const char* buffer, std::size_t before, long got) {
  if (got < 0) return trouble(live, static_cast<int>(-got));
  const auto bytes = static_cast<std::size_t>(got);
  if (bytes <= before) {  // shorter than its stat said: the next look knows more
    if (++live.misses >= misses_max) return trouble(live, EIO);
    return want(live);
  }
  if (take(live, buffer, before, bytes) == Take::differs) return reset(live, now, "rewritten");
  live.misses = 0;
  live.retry = {};
  health_.clear(live.path());
  if (live.read() < now.size)
    want(live);
  else
    live.facts = now;  // what was read is no newer than this: any later change moves the change time
}

Follower::Take Follower::take(FollowedFile& live, const char* buffer, std::size_t before, std::size_t bytes) {
  const std::span<const char> all(buffer, bytes);
  if (!live.continues(all.first(before))) return Take::differs;
  spent_ += bytes - before;
  counters_.bytes_read += bytes - before;
  live.unproven |= before > 0;
  if (!live.appeared) {
    Silence silence;
    live.feed(all, before, workspace_, silence);
    return Take::fed;
  }
  Tell tell(listener_, live, counters_.events);
  if (live.feed(all, before, workspace_, tell) && !stopped_) listener_.on_changed(live);
  return Take::fed;
}

void Follower::verify(FollowedFile& live, const Facts& now, std::string_view reason) {
  ++counters_.verifications;
  live.busy = true;
  const auto holder = live.shared_from_this();
  check(disk_, live.claim(), [this, holder, now, reason](const PrefixCheckResult& verdict) {
    holder->busy = holder->again = false;
    if (holder->removed) return release(*holder);
    if (verdict.error) {
      const bool is_gone = verdict.error == ENOENT || verdict.error == ENOTDIR;
      return is_gone ? want(*holder) : trouble(*holder, verdict.error);
    }
    holder->doubted = holder->unproven = false;
    if (!verdict.fits) {
      reset(*holder, now, reason);
    } else {
      if (!verdict.facts.same_file(holder->facts)) release(*holder);  // the descriptor is of the one before
      holder->facts = verdict.facts;
      holder->retry = {};
      health_.clear(holder->path());
    }
    want(*holder);
  });
}

void Follower::reset(FollowedFile& live, const Facts& now, std::string_view reason) {
  release(live);
  live.restart();
  live.facts = now;
  live.facts.changed_ns = 0;  // of these bytes none was read
  ++counters_.resets;
  listener_.on_reset(live, reason);
  want(live);
  pump_soon();
}

void Follower::gone(FollowedFile& live) {
  if (!live.file) return remove(live);
  const Facts last = facts_of(live.file.get());
  const auto now = Clock::now();
  const std::uint64_t had = live.read();
  if (!last.error && last.size > had && !drained(live, last.size)) return want(live);
  if (last.error || last.links > 0) return remove(live);  // moved away: there it is another stream
  if (!live.lingers_until || live.read() > had) live.lingers_until = now + options_.linger;
  if (now >= *live.lingers_until) return remove(live);
  later_.after(std::max(options_.linger / 10, std::chrono::milliseconds(1)),
               [this, holder = live.shared_from_this()] { want(*holder); });
}

/// Reads what an unlinked file still holds, a turn at most. True when there is no more to be had.
bool Follower::drained(FollowedFile& live, std::uint64_t size) {
  const std::size_t before = live.before();
  const auto wanted =
      before + static_cast<std::size_t>(std::min<std::uint64_t>(pump_bytes, size - live.read()));
  const long got = read_at(live.file.get(), buffer_.get(), wanted, live.read() - before, false);
  if (got <= static_cast<long>(before)) return true;
  if (take(live, buffer_.get(), before, static_cast<std::size_t>(got)) == Take::differs) return true;
  return live.read() >= size;
}

void Follower::drop(FollowedFile& live) {
  if (live.removed) return;
  if (live.file && !live.busy)
    for (Facts last = facts_of(live.file.get()); !last.error && last.size > live.read();)
      if (drained(live, last.size)) break;
  remove(live);
}

void Follower::not_a_file(FollowedFile& live) {
  const std::string path = live.path();
  drop(live);
  health_.set(path, "not a regular file", "transcripts are regular files; this one is left alone");
}

void Follower::trouble(FollowedFile& live, int error) {
  release(live);
  health_.set(live.path(), error);
  live.misses = 0;
  live.retry = std::clamp(live.retry * 2, options_.retry_first, options_.retry_last);
  try_later(live, live.retry);
}

void Follower::try_later(FollowedFile& live, std::chrono::milliseconds delay) {
  if (std::exchange(live.later, true)) return;
  later_.after(delay, [this, holder = live.shared_from_this()] {
    holder->later = false;
    want(*holder);
  });
}

void Follower::appear(FollowedFile& live) {
  live.appeared = true;
  listener_.on_added(live);
  pump_soon();
}

void Follower::remove(FollowedFile& live) {
  if (std::exchange(live.removed, true)) return;
  const auto holder = live.shared_from_this();
  if (!live.busy) release(live);
  health_.clear(live.path());
  removed_(live);
  listener_.on_removed(live);
  for (const auto& waiter : std::exchange(live.waiters, {})) waiter(nullptr);
  pump_soon();
}

/// 0, or the error.
int Follower::open(FollowedFile& live) {
  live.used = Clock::now();
  if (live.file) return 0;
  const auto close_oldest = [&] {
    const auto oldest = std::min_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
      return std::pair(a->busy, a->used) < std::pair(b->busy, b->used);
    });
    if (oldest == open_.end() || (*oldest)->busy) return false;
    release(**oldest);
    return true;
  };
  if (open_.size() >= open_max_) close_oldest();
  live.file = open_transcript(live.path());
  while (!live.file && (errno == EMFILE || errno == ENFILE)) {
    if (!close_oldest()) return EMFILE;
    live.file = open_transcript(live.path());
  }
  if (!live.file) return errno;
  open_.push_back(live.shared_from_this());
  if (!std::exchange(closing_, true)) later_.after(options_.quiet, [this] { close_quiet(); });
  return 0;
}

void Follower::release(FollowedFile& live) {
  if (!live.file) return;
  live.file.close();
  std::erase_if(open_, [&](const auto& each) { return each.get() == &live; });
}

void Follower::close_quiet() {
  const auto since = Clock::now() - options_.quiet;
  for (const auto& live : std::vector(open_))
    if (!live->busy && live->used <= since) release(*live);
  closing_ = !open_.empty();
  if (closing_) later_.after(options_.quiet, [this] { close_quiet(); });
}

}  // namespace earshot::tail
