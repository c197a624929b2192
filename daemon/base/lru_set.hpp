// What was seen last, bounded.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

namespace earshot::common {

/// A map that forgets the oldest key when it holds `size_max`.
template <class Value, std::size_t size_max>
class Recent {
 public:
  const Value* find(std::string_view key) const {
    const auto found = values_.find(std::string(key));
    return found == values_.end() ? nullptr : &found->second;
  }
  Value& operator[](std::string_view key) {
    const auto [place, is_new] = values_.try_emplace(std::string(key));
    if (!is_new) return place->second;
    order_.push_back(place->first);
    if (order_.size() > size_max) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    return place->second;
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
  std::deque<std::string> order_;  // as inserted
};

}  // namespace earshot::common
