// A whole small file at once: for files that are rewritten whole.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace earshot::status {

struct SmallFile {
  enum class Outcome {
    read,
    gone,      // no such file
    unusable,  // not a regular file, too long, or not readable now
  };
  Outcome outcome = Outcome::unusable;
  std::string text;
  std::int64_t modified_ms = 0;  // since 1970
};

std::int64_t modified_ms_of(const struct stat& about);

/// Of a directory: device and inode. Zeros: there is none.
using Identity = std::pair<std::uint64_t, std::uint64_t>;
Identity directory_at(const std::string& path);

/// Follows no symlink and waits for no pipe.
SmallFile read_small_file(const std::string& path, std::size_t bytes_max);

}  // namespace earshot::status
