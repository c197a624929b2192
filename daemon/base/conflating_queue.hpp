#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace earshot {

/// Passes values from any thread to the event loop. Only the newest value of each key is kept, so that the
/// size depends on the number of keys and not on the rate.
template <class Value>
class ConflatingQueue {
 public:
  /// Beyond `keys_max` keys, put() returns `full`.
  explicit ConflatingQueue(std::size_t keys_max) : keys_max_(keys_max) {}

  enum class Put { first, more, full };
  /// From any thread. `first`: the queue was empty since take(), so notify the loop.
  Put put(const std::string& key, Value value) {
    const std::lock_guard lock(mutex_);
    if (values_.size() >= keys_max_ && !values_.contains(key)) return Put::full;
    values_.insert_or_assign(key, std::move(value));
    return std::exchange(is_notified_, true) ? Put::more : Put::first;
  }
  /// Removes and returns all values.
  std::vector<Value> take() {
    std::vector<Value> all;
    const std::lock_guard lock(mutex_);
    is_notified_ = false;
    all.reserve(values_.size());
    for (auto& [key, value] : values_) all.push_back(std::move(value));
    values_.clear();
    return all;
  }

 private:
  const std::size_t keys_max_;
  std::mutex mutex_;
  std::map<std::string, Value> values_;
  bool is_notified_ = false;
};

}  // namespace earshot
