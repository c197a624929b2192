// Counts a transcript's records by type.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "core/record_counts.hpp"

namespace earshot {

class TypeCounts {
 public:
  static constexpr std::size_t names_max = 512;      // counted separately; further ones as "(other)"
  static constexpr std::size_t name_bytes_max = 64;  // of a name; the rest is cut

  /// `counts` outlives this object.
  explicit TypeCounts(RecordCounts& counts) : counts_(counts) {}
  TypeCounts(const TypeCounts&) = delete;
  TypeCounts& operator=(const TypeCounts&) = delete;

  void add(std::string_view type, bool unknown) {
    type = cut_utf8(type.empty() ? "(no type)" : type, name_bytes_max);
    ++count_of(type);
    if (unknown) ++entry(counts_.unknown_types, type)->second;
  }

 private:
  using Entry = std::pair<const std::string, std::uint64_t>;

  // A session has few types: they are found in the table, without a search in the map.
  std::uint64_t& count_of(std::string_view type) {
    const auto at = [&](std::size_t n) { return std::size_t{static_cast<unsigned char>(type[n])}; };
    std::size_t slot = type.size() * 7 + at(type.size() - 1) * 3 + at(type.size() / 2);
    for (std::size_t tries = 0; tries < tries_max; ++tries, ++slot) {
      std::uint8_t& known = known_[slot % known_.size()];
      if (known == 0) {
        Entry* const found = entry(counts_.types, type);
        if (found->first == type) {
          if (entries_.empty()) entries_.reserve(8);
          entries_.push_back(found);
          known = static_cast<std::uint8_t>(entries_.size());
        }
        return found->second;
      }
      if (is_same_name(entries_[known - 1u]->first, type)) return entries_[known - 1u]->second;
    }
    return entry(counts_.types, type)->second;
  }
  template <class Table>
  static Entry* entry(Table& table, std::string_view type) {
    const auto found = table.lower_bound(type);
    if (found != table.end() && found->first == type) return &*found;
    if (table.size() >= names_max) return &*table.emplace("(other)", 0).first;
    return &*table.emplace_hint(found, type, 0);
  }

  static constexpr std::size_t tries_max = 8;
  RecordCounts& counts_;
  std::array<std::uint8_t, 32> known_{};  // a number in entries_, by linear probing; 0: none
  std::vector<Entry*> entries_;           // of counts_.types, as many as known_ has
};

}  // namespace earshot
