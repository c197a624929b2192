// The notifier's log files.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::notifier {

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
