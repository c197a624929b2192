#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.hpp"
#include "watch/watcher.hpp"

namespace earshot::watch {

/// Inode, mode, size and times of a file as one number; of a directory inode and mode only, because its
/// content has a watch of its own. Links are not followed. 1 if there is no such file; never 0.
std::uint64_t signature_of(const std::string& path);

// The state of all watched directories at the last sweep: names and a 64-bit signature each. Used on the disk
// thread only.
class DirectorySnapshot {
 public:
  /// Records the present content. A known directory is recorded again: the caller scans it next, and a name
  /// that this scan finds must be known here when it disappears.
  void add(const std::string& directory);
  /// Forgets the directory and everything below it. If the directory exists after all, with the same inode,
  /// the next sweep reports it in its parent.
  void remove(const std::string& directory);

  /// Checks the next `stats_max` entries, in turn. True if that completed a pass over all directories.
  bool check_slice(std::size_t stats_max, std::vector<ChangeHint>& hints);

 private:
  struct Entry {
    std::uint64_t signature;
    std::uint32_t name_at, name_bytes;
  };
  struct Content {
    std::string names;           // of all entries, each followed by a NUL
    std::vector<Entry> entries;  // sorted by name
    std::int64_t modified_ns = 0, listed_ns = 0;
    bool exists = false;
    std::string_view name(const Entry& entry) const {
      return std::string_view(names).substr(entry.name_at, entry.name_bytes);
    }
    void mark_missing(std::string_view name);
  };
  using Directories = std::map<std::string, Content, std::less<>>;

  static bool list(const Directory& directory, Content& content);
  static void compare(const std::string& path, const Content& before, const Content& after,
                      std::vector<ChangeHint>& hints);
  static std::size_t check(Directories::value_type& each, std::size_t from, std::size_t stats_max,
                           std::vector<ChangeHint>& hints);

  Directories directories_;
  std::string next_;            // the directory to check next; empty: a pass begins
  std::size_t next_entry_ = 0;  // in that directory
};

}  // namespace earshot::watch
