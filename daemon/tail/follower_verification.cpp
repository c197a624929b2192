// Verifications: everything that was read of a file is compared with the file, on the disk thread.
#include <algorithm>
#include <utility>

#include "tail/follower.hpp"

namespace earshot::tail {
namespace {

/// A file whose change time proves nothing is verified once it did not grow for a while, in proportion to its
/// size (Options::verify_bytes_max).
constexpr std::uint64_t verified_bytes_per_ms = 32 << 10;  // less than 1 % of a processor

}  // namespace

void Follower::request_verify(FollowedFile& file) {
  if (file.verified_bytes == file.bytes_read() || std::exchange(file.is_verification_requested, true)) return;
  add_verification({file.shared_from_this(), Verification::Why::requested, {}, file.history});
}

void Follower::verify_published(FollowedFile& file, const Cursor& end) {
  if (end != begin_cursor)
    add_verification({file.shared_from_this(), Verification::Why::published, end, file.history});
}

void Follower::verify_when_quiet(FollowedFile& file) {
  if (std::exchange(file.is_verification_due, true)) return;
  const std::uint64_t bytes = file.bytes_read();
  const auto quiet = change_tick + std::chrono::milliseconds(bytes / verified_bytes_per_ms);
  timers_.after(quiet, [this, bytes, holder = file.shared_from_this()] {
    if (holder->is_removed()) return;
    if (bytes == holder->bytes_read())
      return add_verification({holder, Verification::Why::suspected, {}, holder->history});
    holder->is_verification_due = false;
    verify_when_quiet(*holder);
  });
}

void Follower::verify_after_folds(FollowedFile& file) {
  if (std::exchange(file.is_verification_due, true)) return;
  timers_.after(time_granularity, [this, holder = file.shared_from_this()] {
    if (!holder->is_removed())
      add_verification({holder, Verification::Why::just_folded, {}, holder->history});
  });
}

void Follower::add_verification(Verification wanted) {
  if (wanted.is_requested()) ++wanted.file->requested_verifications;
  wanted.why == Verification::Why::just_folded ? just_folded_.push_back(std::move(wanted))
                                               : verifications_.push_back(std::move(wanted));
  start_verifications();
}

void Follower::start_verifications() {
  const auto start = [this](std::deque<Verification>& queue, std::size_t& active) {
    Verification next = std::move(queue.front());
    queue.pop_front();
    if (next.why == Verification::Why::requested) next.file->is_verification_requested = false;
    if (!next.is_requested()) next.file->is_verification_due = false;
    verify(std::move(next), active);
  };
  while (active_verifications_ < verifications_max && !verifications_.empty() && !stopped_)
    start(verifications_, active_verifications_);
  while (active_after_folds_ == 0 && pending_folds_ == 0 && !just_folded_.empty() && !stopped_)
    start(just_folded_, active_after_folds_);
}

/// Counts it in `active` while it lasts.
void Follower::verify(Verification wanted, std::size_t& active) {
  FollowedFile& file = *wanted.file;
  const bool is_done = wanted.why == Verification::Why::requested && file.verified_bytes == file.bytes_read();
  if (file.is_removed() || file.history != wanted.history || is_done) return finish(wanted);
  ++counters_.verifications;
  ++active;
  auto check = wanted.why == Verification::Why::published
                   ? PrefixCheck{file.path(), options_.hash_key, wanted.published, 0, 0}
                   : file.prefix();
  check_prefix(disk_, std::move(check),
               [this, wanted = std::move(wanted), bytes = file.bytes_read(),
                &active](const PrefixCheck::Result& result) {
                 --active;
                 on_verified(wanted, bytes, result);
                 start_verifications();
               });
}

/// `bytes`: what was read when it began.
void Follower::on_verified(const Verification& wanted, std::uint64_t bytes,
                           const PrefixCheck::Result& result) {
  FollowedFile& file = *wanted.file;
  if (file.is_removed() || file.history != wanted.history) return finish(wanted);
  if (!result.matches && result.is_compressed && !result.error && is_compressed(file)) {
    finish(wanted);  // the copy is of another history
    return remove(file);
  }
  const bool is_same_file = result.stat.is_same_file(file.stat);
  // The rest of another file's predecessor is read before: its check, too, ends the history.
  const bool is_undecided = !result.matches && (file.state != FollowedFile::State::idle || !is_same_file);
  if (result.error || is_undecided) return verify_again(wanted, result.error);
  finish(wanted);
  if (file.verify_delay.count() > 0) problems_.clear(file.path());
  file.verify_delay = {};
  if (!result.matches) return reset(file, result.stat);
  if (wanted.why != Verification::Why::published) file.verified_bytes = std::max(file.verified_bytes, bytes);
  if (!is_same_file || result.stat.size != file.bytes_read()) check_soon(file);
}

void Follower::verify_again(Verification wanted, int error) {
  FollowedFile& file = *wanted.file;
  auto delay = options_.retry_first;
  check_soon(file);
  if (error && !is_missing(error)) {
    problems_.set(file.path(), error);
    delay = file.verify_delay = std::clamp(file.verify_delay * 2, options_.retry_first, options_.retry_last);
    bool& waits = wanted.is_requested() ? file.is_verification_requested : file.is_verification_due;
    if (wanted.why != Verification::Why::published && std::exchange(waits, true)) return finish(wanted);
  }
  timers_.after(delay, [this, again = std::move(wanted)]() mutable {
    verifications_.push_back(std::move(again));
    start_verifications();
  });
}

void Follower::finish(const Verification& wanted) {
  if (wanted.is_requested()) --wanted.file->requested_verifications;
}

void Follower::verify_now(FollowedFile& file) {
  ++counters_.verifications;
  file.state = FollowedFile::State::verifying;
  check_prefix(disk_, file.prefix(),
               [this, holder = file.shared_from_this()](const PrefixCheck::Result& result) {
                 if (!holder->is_removed()) on_verified_now(*holder, result);
               });
}

void Follower::on_verified_now(FollowedFile& file, const PrefixCheck::Result& result) {
  file.state = FollowedFile::State::idle;
  file.check_pending = false;
  if (result.error)
    return is_missing(result.error) ? check_soon(file) : retry_after_error(file, result.error);
  if (!result.matches && result.is_compressed) return is_compressed(file) ? remove(file) : check_soon(file);
  if (!result.matches) return reset(file, result.stat);
  file.verified_bytes = file.bytes_read();
  file.verify_delay = {};
  if (!result.stat.is_same_file(file.stat)) replace(file, result.stat);
  file.stat = result.stat;
  mark_current(file);
  check_soon(file);
}

}  // namespace earshot::tail
