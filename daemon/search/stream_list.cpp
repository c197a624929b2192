#include "search/stream_list.hpp"

#include <algorithm>

namespace earshot::search {

void StreamList::add(std::string_view name, std::int64_t modified_ms) {
  entries_.push_back({modified_ms, names_.size(), name.size()});
  names_ += name;
}

void StreamList::sort() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.modified_ms < b.modified_ms; });
}

std::string_view StreamList::name(std::size_t n) const {
  return std::string_view(names_).substr(entries_[n].name_at, entries_[n].name_bytes);
}

}  // namespace earshot::search
