#include "watch/sweep.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "watch/directory_snapshot.hpp"

namespace earshot::watch {

namespace asio = boost::asio;

Sweep::Sweep(asio::io_context& io, asio::any_io_executor disk, ChangeCallback on_change,
             SweepIntervals intervals, std::function<bool()> is_alone)
    : io_(io),
      disk_(std::move(disk)),
      on_change_(std::move(on_change)),
      intervals_(intervals),
      is_alone_(std::move(is_alone)),
      hot_timer_(io),
      pass_timer_(io),
      snapshot_(std::make_shared<DirectorySnapshot>()),
      alive_(std::make_shared<Sweep*>(this)) {}

Sweep::~Sweep() = default;

void Sweep::watch(const std::string& directory) {
  has_directories_ = true;
  asio::post(disk_, [snapshot = snapshot_, directory] { snapshot->add(directory); });
  // Notifications may have become unreliable with this directory: do not wait for the slow interval then.
  if (waits_slow_ && is_alone_ && is_alone_()) {
    waits_slow_ = pass_scheduled_ = false;
    pass_timer_.cancel();
  }
  schedule_pass();
}

void Sweep::unwatch(const std::string& directory) {
  asio::post(disk_, [snapshot = snapshot_, directory] { snapshot->remove(directory); });
}

void Sweep::mark_hot(const std::string& path) {
  const auto until = Clock::now() + intervals_.hot_for;
  if (const auto at = hot_files_.find(path); at != hot_files_.end()) {
    at->second.until = until;
    return;
  }
  if (hot_files_.size() >= hot_max) return;
  hot_files_.emplace(path, HotFile{0, until});
  schedule_hot();
}

void Sweep::schedule_hot() {
  if (hot_scheduled_ || hot_files_.empty()) return;
  hot_scheduled_ = true;
  hot_timer_.expires_after(intervals_.hot);
  hot_timer_.async_wait(
      [this, weak = std::weak_ptr<Sweep*>(alive_)](const boost::system::error_code& failed) {
        if (!failed && !weak.expired()) check_hot();
      });
}

void Sweep::check_hot() {
  const auto now = Clock::now();
  std::erase_if(hot_files_, [&](const auto& each) { return each.second.until < now; });
  std::vector<std::pair<std::string, std::uint64_t>> files;
  files.reserve(hot_files_.size());
  for (const auto& [path, hot] : hot_files_) files.emplace_back(path, hot.signature);
  asio::post(disk_, [files = std::move(files), weak = std::weak_ptr<Sweep*>(alive_), &io = io_]() mutable {
    std::erase_if(files, [](auto& each) {
      return std::exchange(each.second, signature_of(each.first)) == each.second;
    });
    asio::post(io, [changed = std::move(files), weak] {
      if (weak.expired()) return;
      Sweep& self = **weak.lock();
      self.hot_scheduled_ = false;
      std::vector<ChangeHint> hints;
      for (const auto& [path, signature] : changed) {
        if (const auto at = self.hot_files_.find(path); at != self.hot_files_.end())
          at->second.signature = signature;
        hints.push_back({ChangeHint::Where::path, path});
      }
      self.report(std::move(hints));
      if (!weak.expired()) self.schedule_hot();
    });
  });
}

void Sweep::schedule_pass() {
  if (pass_scheduled_ || !has_directories_) return;
  pass_scheduled_ = true;
  waits_slow_ = is_alone_ && !is_alone_();
  pass_timer_.expires_after(waits_slow_ ? intervals_.slow : intervals_.alone);
  pass_timer_.async_wait([weak = std::weak_ptr<Sweep*>(alive_)](const boost::system::error_code& failed) {
    if (failed || weak.expired()) return;
    Sweep& self = **weak.lock();
    self.waits_slow_ = false;
    self.run_pass();
  });
}

void Sweep::run_pass() {
  asio::post(disk_, [snapshot = snapshot_, weak = std::weak_ptr<Sweep*>(alive_), &io = io_] {
    std::vector<ChangeHint> hints;
    const bool completed = snapshot->check_slice(slice_stats, hints);
    asio::post(io, [hints = std::move(hints), completed, weak]() mutable {
      if (weak.expired()) return;
      Sweep& self = **weak.lock();
      if (completed)
        self.pass_scheduled_ = false;
      else
        self.run_pass();
      self.report(std::move(hints));
      if (completed && !weak.expired()) self.schedule_pass();
    });
  });
}

void Sweep::report(std::vector<ChangeHint> hints) {
  const std::weak_ptr<Sweep*> weak(alive_);
  for (const ChangeHint& hint : hints) {
    if (hint.where == ChangeHint::Where::path) mark_hot(hint.path);
    on_change_(hint);
    if (weak.expired()) return;
  }
}

}  // namespace earshot::watch
