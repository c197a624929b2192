// Names and times of many streams, for the pass over all of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::search {

/// The streams of the first pass. Their names are in one block, which returns to the system as a whole: there
/// may be a hundred thousand of them.
class StreamList {
 public:
  void add(std::string_view name, std::int64_t modified_ms);
  /// The newest last.
  void sort();
  std::size_t size() const { return entries_.size(); }
  std::string_view name(std::size_t n) const;

 private:
  struct Entry {
    std::int64_t modified_ms;
    std::size_t name_at, name_bytes;
  };
  std::string names_;
  std::vector<Entry> entries_;
};

}  // namespace earshot::search
