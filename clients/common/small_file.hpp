// One-line files: addresses, tokens, keys, what the kernel says in /proc.
#pragma once
#include <sys/types.h>

#include <string>

namespace earshot::common {

struct SmallFile {
  static constexpr std::size_t bytes_max = 64 << 10;  // more is not read

  std::string text;   // without white space around it
  std::string error;  // empty: read
  mode_t mode = 0;    // permissions
  uid_t owner = 0;
  /// Others than the owner may read it.
  bool shared() const { return (mode & 044) != 0; }
};

/// Regular files only; a pipe or a device is an error, and nothing waits for one.
SmallFile read_small_file(const std::string& path);

}  // namespace earshot::common
