#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace earshot {

/// A map from strings that drops the key inserted first when it has more than `size_max`.
template <class Value, std::size_t size_max>
class BoundedMap {
 public:
  /// Null if there is none.
  const Value* find(std::string_view key) const {
    const auto found = values_.find(std::string(key));
    return found == values_.end() ? nullptr : &found->second;
  }
  /// Inserts the key if it is missing.
  Value& operator[](std::string_view key) {
    const auto [entry, is_new] = values_.try_emplace(std::string(key));
    if (!is_new) return entry->second;
    order_.push_back(entry->first);
    if (order_.size() > size_max) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    return entry->second;
  }
  void erase(std::string_view key) {
    if (values_.erase(std::string(key)) == 0) return;
    order_.erase(std::find(order_.begin(), order_.end(), key));
  }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::unordered_map<std::string, Value> values_;
  std::deque<std::string> order_;  // of insertion
};

}  // namespace earshot
