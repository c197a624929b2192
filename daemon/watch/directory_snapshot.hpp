// What the sweep remembers of every watched directory: names and one 64-bit signature each. Touched on the
// disk thread only.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "watch/directory.hpp"
#include "watch/sweep.hpp"

namespace earshot::watch {

class Sweep::DirectorySnapshot {
 public:
  /// Takes down what the directory holds now; of one that is known already, too: whoever asks scans it next,
  /// and what that scan finds must be known here when it goes again.
  void add(const std::string& directory);
  /// And what is below it. Whoever forgets it believes that it went: one that is there again by now, with the
  /// inode that it had, rings in the directory above.
  void remove(const std::string& directory);

  /// Looks at the next `stats_max` entries, in turn. True when that was the last of this pass.
  bool slice(std::size_t stats_max, std::vector<ChangeHint>& rings);

 private:
  struct Entry {
    std::uint64_t signature;
    std::uint32_t name_at, name_bytes;
  };
  struct Directory {
    std::string names;           // of all entries, one after the other
    std::vector<Entry> entries;  // by name
    std::int64_t modified_ns = 0, listed_ns = 0;
    bool there = false;
    std::string_view name(const Entry& entry) const {
      return std::string_view(names).substr(entry.name_at, entry.name_bytes);
    }
    void doubt(std::string_view name);  // as if it had been seen to be away
  };
  using Directories = std::map<std::string, Directory, std::less<>>;

  static bool list(const OpenDirectory& directory, Directory& into);
  static void compare(const std::string& path, const Directory& before, const Directory& after,
                      std::vector<ChangeHint>& rings);
  static std::size_t look(Directories::value_type& each, std::size_t from, std::size_t stats_max,
                          std::vector<ChangeHint>& rings);

  Directories directories_;
  std::string turn_;      // the directory whose turn it is; empty: the pass begins
  std::size_t from_ = 0;  // its next entry
};

}  // namespace earshot::watch
