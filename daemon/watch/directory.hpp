// Plain calls on directories for the sweep. A seam, like tail/files.hpp: a simulated file system has its own.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::watch {

/// Size, times, inode and mode in one word; 1 when there is nothing. Never 0. Of a directory only what it is,
/// not what it holds: that is its own watch's matter. Never through a link.
std::uint64_t signature_of(const std::string& path);

class OpenDirectory {
 public:
  explicit OpenDirectory(const std::string& path);
  ~OpenDirectory();
  OpenDirectory(const OpenDirectory&) = delete;
  OpenDirectory& operator=(const OpenDirectory&) = delete;

  /// When an entry last came or went; nothing when there is no such directory (any more).
  std::optional<std::int64_t> modified_ns() const;
  /// Each entry's name (a zero follows it) with its signature, in no order. False: it cannot be listed.
  bool list(const std::function<void(std::string_view name, std::uint64_t signature)>& visit) const;
  std::uint64_t signature_of(const char* name) const;

 private:
  const int fd_;
};

}  // namespace earshot::watch
