// What other threads hand to the loop: of each key the newest, so that it is bounded by the keys, not by the
// rate.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace earshot::team {

template <class Value>
class ConflatingQueue {
 public:
  explicit ConflatingQueue(std::size_t keys_max)
      : keys_max_(keys_max) {}  // of more nothing is taken: put() says so

  enum class Put { first, more, full };
  /// From any thread. `first`: nothing waited, so the loop is to be told.
  Put put(const std::string& key, Value value) {
    const std::lock_guard lock(mutex_);
    if (values_.size() >= keys_max_ && !values_.contains(key)) return Put::full;
    values_.insert_or_assign(key, std::move(value));
    return std::exchange(told_, true) ? Put::more : Put::first;
  }
  /// All that waits.
  std::vector<Value> take() {
    std::vector<Value> all;
    const std::lock_guard lock(mutex_);
    told_ = false;
    all.reserve(values_.size());
    for (auto& [key, value] : values_) all.push_back(std::move(value));
    values_.clear();
    return all;
  }

 private:
  const std::size_t keys_max_;
  std::mutex mutex_;
  std::map<std::string, Value> values_;
  bool told_ = false;
};

}  // namespace earshot::team
