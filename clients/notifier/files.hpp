// The notifier's log files.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::notifier {

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

/// A log of lines with a bounded size: a file of `bytes_max` is renamed to FILE.1, replacing the previous
/// one.
class BoundedLog {
 public:
  static constexpr std::size_t bytes_max = 512 << 10;  // per file
  explicit BoundedLog(std::string path) : path_(std::move(path)) {}
  /// Appends a line, given without line end. Errors are ignored: the log loses lines.
  void append(std::string_view line);
  /// The last `count` lines, oldest first.
  std::vector<std::string> last(std::size_t count) const;

 private:
  std::string path_;
};

}  // namespace earshot::notifier
