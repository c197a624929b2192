// Who is told of a ring: several subscribers share the mechanisms (inotify, the sweep) through one
// mux.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "watch/watcher.hpp"

namespace earshot::watch {

class WatchMux {
 public:
  static constexpr std::size_t lines_max =
      32;  // a directory keeps one bit a subscriber; a 33rd is our own bug

  WatchMux();
  ~WatchMux();
  WatchMux(const WatchMux&) = delete;
  WatchMux& operator=(const WatchMux&) = delete;

  /// A mechanism that does the watching; it outlives the last use of the lines. Add all before the first
  /// watch().
  void add(Watcher& mechanism);

  /// A subscriber: `bell` rings for paths at, below or above one of `prefixes` (absolute), and for
  /// everything. The line that comes back is where it says which directories it wants watched; it lives as
  /// long as the mux. A directory that two lines watch is forgotten when both have forgotten it.
  Watcher& add_client(std::vector<std::string> prefixes, ChangeCallback bell);

  /// What the mechanisms ring.
  void notify(const ChangeHint& ring) const;

  /// Every mechanism's trouble, one sentence after the other.
  std::string problem() const;

 private:
  class Line;
  void watch(std::size_t line, const std::string& directory);
  void unwatch(std::size_t line, const std::string& directory);

  std::vector<Watcher*> mechanisms_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::map<std::string, std::uint32_t, std::less<>>
      watched_;  // directory → a bit for each line that wants it
};

/// `path` is `directory` or lies below it.
bool at_or_below(std::string_view path, std::string_view directory);

}  // namespace earshot::watch
