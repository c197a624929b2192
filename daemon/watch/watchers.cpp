#include "watch/watchers.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace earshot::watch {
namespace {

std::size_t bit_of(std::string_view path) {
  return std::hash<std::string_view>{}(path) % NotificationProbe::notified_bits;
}

}  // namespace

void NotificationProbe::notified(std::string_view path) {
  notified_.set(bit_of(path));
  if (!suspects_.empty())
    std::erase_if(suspects_, [&](const Suspect& suspect) { return suspect.path == path; });
}

void NotificationProbe::notifications_lost(Clock::duration grace, Clock::time_point now) {
  suspects_.clear();
  grace_until_ = now + grace;
}

void NotificationProbe::swept(std::string_view path, bool entry, Clock::time_point now) {
  if (now < grace_until_) return;
  if (notified_.test(bit_of(path)) || suspects_.size() >= suspects_max) return;
  if (std::any_of(suspects_.begin(), suspects_.end(),
                  [&](const Suspect& suspect) { return suspect.path == path; }))
    return;
  suspects_.push_back({std::string(path), now, entry});
}

bool NotificationProbe::is_suspicious() const {
  return std::any_of(suspects_.begin(), suspects_.end(),
                     [](const Suspect& suspect) { return suspect.entry; });
}

bool NotificationProbe::is_silent(Clock::time_point now) const {
  const auto waited = [&](const Suspect& suspect) { return now - suspect.since >= patience; };
  return static_cast<std::size_t>(std::count_if(suspects_.begin(), suspects_.end(), waited)) >= silent_from;
}

std::string NotificationProbe::problem(Clock::time_point now) const {
  if (!is_silent(now)) return {};
  return "the system does not report changes of some files (a network mount, or hard links), such as " +
         suspects_.front().path + "; these files are polled";
}

Watchers::Watchers(boost::asio::io_context& io, boost::asio::any_io_executor disk, Mode mode,
                   SweepIntervals intervals)
    : grace_(2 * intervals.slow) {
  if (mode != Mode::sweep) {
    inotify_ = std::make_unique<Inotify>(io, [this](const ChangeHint& hint) {
      if (hint.where == ChangeHint::Where::path) {
        probe_.notified(hint.path);
        if (sweep_) sweep_->mark_hot(hint.path);
      } else if (hint.where == ChangeHint::Where::everything) {
        probe_.notifications_lost(grace_);
      }
      mux_.notify(hint);
    });
    mux_.add_backend(*inotify_);
  }
  if (mode != Mode::inotify) {
    const auto on_find = [this](const ChangeHint& hint) {
      if (inotify_ && inotify_->is_limited())
        probe_.notifications_lost(grace_);  // a missing watch proves nothing about the mount
      else if (inotify_ && hint.where == ChangeHint::Where::path)
        probe_.swept(hint.path, hint.entry);
      mux_.notify(hint);
    };
    sweep_ = std::make_unique<Sweep>(io, std::move(disk), on_find, intervals, [this] {
      if (inotify_) inotify_->retry_refused();
      return notifications_unreliable();
    });
    mux_.add_backend(*sweep_);
  }
}

bool Watchers::notifications_unreliable() const {
  return !inotify_ || inotify_->is_limited() || probe_.is_suspicious() || probe_.is_silent();
}

std::string Watchers::problem() const {
  std::string all = mux_.problem();
  if (const std::string silent = probe_.problem(); !silent.empty()) all += (all.empty() ? "" : "; ") + silent;
  return all;
}

}  // namespace earshot::watch
