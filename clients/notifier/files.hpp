// Files of the notifier's own: small, private, whole or not there at all.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::notifier {

/// Makes it, and what is above it, for its owner alone. Why not; empty: it is there.
std::string make_directory(const std::string& path);

/// Written beside it, synced, then renamed over it: a reader finds the old text or the new one. Why not;
/// empty: done.
std::string write_whole(const std::string& path, std::string_view text);

/// All of it; nothing when it cannot be read or is larger than `bytes_max`.
std::optional<std::string> read_whole(const std::string& path, std::size_t bytes_max);

/// Held for as long as it lives; a second holder is refused.
class Lock {
 public:
  explicit Lock(const std::string& path);
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool held() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

/// Lines, the newest last, never more than twice `bytes_max` in all: a full file becomes FILE.1, and what was
/// FILE.1 is gone.
class BoundedLog {
 public:
  static constexpr std::size_t bytes_max = 512 << 10;  // of one file
  explicit BoundedLog(std::string path) : path_(std::move(path)) {}
  /// `line` has no line end. A disk that is full loses lines, nothing else.
  void append(std::string_view line);
  /// The last `count` lines, the oldest first.
  std::vector<std::string> last(std::size_t count) const;

 private:
  std::string path_;
};

}  // namespace earshot::notifier
