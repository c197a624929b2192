#include "watch/sweep.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/clock.hpp"
#include "watch/directory.hpp"
#include "watch/directory_snapshot.hpp"

namespace earshot::watch {

namespace asio = boost::asio;

Sweep::Sweep(asio::io_context& io, asio::any_io_executor disk, ChangeCallback bell, SweepIntervals beats,
             std::function<bool()> alone)
    : io_(io),
      disk_(std::move(disk)),
      bell_(std::move(bell)),
      beats_(beats),
      alone_(std::move(alone)),
      hot_timer_(io),
      slow_timer_(io),
      book_(std::make_shared<DirectorySnapshot>()),
      alive_(std::make_shared<Sweep*>(this)) {}

Sweep::~Sweep() = default;

void Sweep::watch(const std::string& directory) {
  asked_ = true;
  asio::post(disk_, [book = book_, directory] { book->add(directory); });
  // Notifications may have become unreliable with this very directory: nobody waits for the slow beat then.
  if (waits_slow_ && alone_ && alone_()) {
    waits_slow_ = slow_armed_ = false;
    slow_timer_.cancel();
  }
  arm_slow();
}

void Sweep::unwatch(const std::string& directory) {
  asio::post(disk_, [book = book_, directory] { book->remove(directory); });
}

void Sweep::heat(const std::string& path) {
  const auto until = Clock::now() + beats_.hot_for;
  if (const auto at = hot_.find(path); at != hot_.end()) {
    at->second.until = until;
    return;
  }
  if (hot_.size() >= hot_max) return;
  hot_.emplace(path, Hot{0, until});
  arm_hot();
}

void Sweep::arm_hot() {
  if (hot_armed_ || hot_.empty()) return;
  hot_armed_ = true;
  hot_timer_.expires_after(beats_.hot);
  hot_timer_.async_wait(
      [this, weak = std::weak_ptr<Sweep*>(alive_)](const boost::system::error_code& failed) {
        if (!failed && !weak.expired()) look_at_hot();
      });
}

void Sweep::look_at_hot() {
  const auto now = Clock::now();
  std::erase_if(hot_, [&](const auto& each) { return each.second.until < now; });
  std::vector<std::pair<std::string, std::uint64_t>> asked;
  asked.reserve(hot_.size());
  for (const auto& [path, hot] : hot_) asked.emplace_back(path, hot.signature);
  asio::post(disk_, [asked = std::move(asked), weak = std::weak_ptr<Sweep*>(alive_), &io = io_]() mutable {
    std::erase_if(asked, [](auto& each) {
      return std::exchange(each.second, signature_of(each.first)) == each.second;
    });
    asio::post(io, [asked = std::move(asked), weak] {
      if (weak.expired()) return;
      Sweep& self = **weak.lock();
      self.hot_armed_ = false;
      std::vector<ChangeHint> rings;
      for (const auto& [path, signature] : asked) {
        if (const auto at = self.hot_.find(path); at != self.hot_.end()) at->second.signature = signature;
        rings.push_back({ChangeHint::Where::path, path});
      }
      self.found(std::move(rings));
      if (!weak.expired()) self.arm_hot();
    });
  });
}

void Sweep::arm_slow() {
  if (slow_armed_ || !asked_) return;
  slow_armed_ = true;
  waits_slow_ = alone_ && !alone_();
  slow_timer_.expires_after(waits_slow_ ? beats_.slow : beats_.alone);
  slow_timer_.async_wait(
      [this, weak = std::weak_ptr<Sweep*>(alive_)](const boost::system::error_code& failed) {
        if (failed || weak.expired()) return;
        Sweep& self = **weak.lock();
        self.waits_slow_ = false;
        self.pass();
      });
}

void Sweep::pass() {
  asio::post(disk_, [book = book_, weak = std::weak_ptr<Sweep*>(alive_), &io = io_] {
    std::vector<ChangeHint> rings;
    const bool last = book->slice(slice_stats, rings);
    asio::post(io, [rings = std::move(rings), last, weak]() mutable {
      if (weak.expired()) return;
      Sweep& self = **weak.lock();
      if (last)
        self.slow_armed_ = false;
      else
        self.pass();
      self.found(std::move(rings));
      if (last && !weak.expired()) self.arm_slow();
    });
  });
}

void Sweep::found(std::vector<ChangeHint> rings) {
  const std::weak_ptr<Sweep*> weak(alive_);
  for (const ChangeHint& ring : rings) {
    if (ring.where == ChangeHint::Where::path) heat(ring.path);
    bell_(ring);
    if (weak.expired()) return;
  }
}

}  // namespace earshot::watch
