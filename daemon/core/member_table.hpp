// Reads several members of an object in one pass. Each name has a place of its own in a table, so that a key
// is compared with one name at most.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/line_value.hpp"

namespace earshot {

/// `Fields` is a struct with a Value for each name; at most `slots` / 4 names, without backslashes.
template <class Fields, std::size_t slots>
class MemberTable {
 public:
  struct Entry {
    std::string_view name;
    Value Fields::*member = nullptr;
  };

  template <std::size_t count>
  consteval explicit MemberTable(const Entry (&entries)[count]) {
    static_assert(count * 4 <= slots);
    while (!fill(entries))
      if (++factor_ == factor_max) throw "no factor gives each name a place of its own";
  }

  /// Sets the members that the object has; of repeated ones the last counts.
  void read(const Value& object, Fields& fields) const {
    object.each_named([&](std::string_view key, const Value& value) {
      if (key.empty()) return false;
      const Entry& entry = slots_[slot_of(key)];
      if (!is_same_name(entry.name, key)) return false;
      fields.*entry.member = value;
      return true;
    });
  }

 private:
  static constexpr std::size_t factor_max = 4096;

  constexpr std::size_t slot_of(std::string_view key) const {
    const auto at = [&](std::size_t n) { return std::size_t{static_cast<unsigned char>(key[n])}; };
    return (key.size() * 16 + at(0) * factor_ + at(key.size() / 2) * (factor_ / 4 + 1) +
            at(key.size() - 1) * (factor_ / 16 + 7)) %
           slots;
  }
  template <std::size_t count>
  constexpr bool fill(const Entry (&entries)[count]) {
    slots_ = {};
    for (const Entry& entry : entries) {
      if (entry.name.find('\\') != entry.name.npos) throw "a name has a backslash";
      Entry& slot = slots_[slot_of(entry.name)];
      if (!slot.name.empty()) return false;
      slot = entry;
    }
    return true;
  }

  std::size_t factor_ = 1;
  std::array<Entry, slots> slots_{};
};

}  // namespace earshot
