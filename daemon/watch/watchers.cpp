#include "watch/watchers.hpp"

#include <utility>

namespace earshot::watch {

Watchers::Watchers(boost::asio::io_context& io, boost::asio::any_io_executor disk, Mode mode,
                   SweepIntervals beats)
    : amnesty_(2 * beats.slow) {
  if (mode != Mode::sweep) {
    inotify_ = std::make_unique<Inotify>(io, [this](const ChangeHint& ring) {
      if (ring.where == ChangeHint::Where::path) {
        probe_.heard(ring.path);
        if (sweep_) sweep_->heat(ring.path);
      } else if (ring.where == ChangeHint::Where::everything) {
        probe_.lost(amnesty_);
      }
      mux_.notify(ring);
    });
    mux_.add(*inotify_);
  }
  if (mode != Mode::inotify) {
    const auto on_find = [this](const ChangeHint& ring) {
      if (inotify_ && inotify_->refused())
        probe_.lost(amnesty_);  // what is not watched is not heard of: that says nothing about the mount
      else if (inotify_ && ring.where == ChangeHint::Where::path)
        probe_.found(ring.path, ring.entry);
      mux_.notify(ring);
    };
    sweep_ = std::make_unique<Sweep>(io, std::move(disk), on_find, beats, [this] {
      if (inotify_) inotify_->try_again();
      return deaf();
    });
    mux_.add(*sweep_);
  }
}

bool Watchers::deaf() const {
  return !inotify_ || inotify_->refused() || probe_.suspicious() || probe_.deaf();
}

std::string Watchers::problem() const {
  std::string all = mux_.problem();
  if (const std::string unheard = probe_.problem(); !unheard.empty())
    all += (all.empty() ? "" : "; ") + unheard;
  return all;
}

}  // namespace earshot::watch
