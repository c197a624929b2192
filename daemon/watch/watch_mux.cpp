#include "watch/watch_mux.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace earshot::watch {

bool at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

class WatchMux::Line final : public Watcher {
 public:
  Line(WatchMux& board, std::size_t number, std::vector<std::string> prefixes, ChangeCallback bell)
      : board_(board), number_(number), prefixes_(std::move(prefixes)), bell_(std::move(bell)) {}

  void watch(const std::string& directory) override { board_.watch(number_, directory); }
  void unwatch(const std::string& directory) override { board_.unwatch(number_, directory); }
  std::string problem() const override { return board_.problem(); }

  void notify(const ChangeHint& ring) const {
    if (ring.where == ChangeHint::Where::everything ||
        std::any_of(prefixes_.begin(), prefixes_.end(), [&](const auto& prefix) {
          return at_or_below(ring.path, prefix) || at_or_below(prefix, ring.path);
        }))
      bell_(ring);
  }

 private:
  WatchMux& board_;  // owns this line
  std::size_t number_;
  std::vector<std::string> prefixes_;
  ChangeCallback bell_;
};

WatchMux::WatchMux() = default;
WatchMux::~WatchMux() = default;

void WatchMux::add(Watcher& mechanism) { mechanisms_.push_back(&mechanism); }

Watcher& WatchMux::add_client(std::vector<std::string> prefixes, ChangeCallback bell) {
  assert(lines_.size() < lines_max);
  lines_.push_back(std::make_unique<Line>(*this, lines_.size(), std::move(prefixes), std::move(bell)));
  return *lines_.back();
}

void WatchMux::notify(const ChangeHint& ring) const {
  for (const auto& line : lines_) line->notify(ring);
}

std::string WatchMux::problem() const {
  std::string all;
  for (const Watcher* mechanism : mechanisms_) {
    const std::string one = mechanism->problem();
    if (one.empty()) continue;
    if (!all.empty()) all += "; ";
    all += one;
  }
  return all;
}

void WatchMux::watch(std::size_t line, const std::string& directory) {
  watched_[directory] |= std::uint32_t{1} << line;
  // Asked again even when it is known: a directory of that name may be another one by now.
  for (Watcher* mechanism : mechanisms_) mechanism->watch(directory);
}

void WatchMux::unwatch(std::size_t line, const std::string& directory) {
  const std::uint32_t bit = std::uint32_t{1} << line;
  std::vector<std::string> left;  // below, and still wanted by others
  bool wanted = false;
  const auto release = [&](auto at) {
    at->second &= ~bit;
    if (at->second == 0) return watched_.erase(at);
    wanted = true;
    left.push_back(at->first);
    return std::next(at);
  };
  if (auto at = watched_.find(directory); at != watched_.end()) release(at);
  const std::string below = directory + '/';
  for (auto at = watched_.lower_bound(below); at != watched_.end() && at->first.starts_with(below);)
    at = release(at);
  for (Watcher* mechanism : mechanisms_) {
    mechanism->unwatch(directory);
    if (wanted)
      for (const auto& each : left) mechanism->watch(each);
  }
}

}  // namespace earshot::watch
