// Small containers with bounds.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace earshot {

__extension__ typedef unsigned __int128 Wide;

/// Maps a hash evenly to one of `slots`.
inline std::size_t slot_of_hash(std::uint64_t hash, std::size_t slots) {
  return static_cast<std::size_t>((static_cast<Wide>(hash) * slots) >> 64);
}

/// A map from 64-bit hashes, evenly spread, to small values. Entries cannot be removed. Linear probing, at
/// most 4/5 full, grown by half: an entry takes about 1.5 times the size of its key and value. Values of an
/// empty type take no memory. An empty map takes 32 bytes: a transcript has many.
template <class Value>
class HashMap {
 public:
  /// Null if there is none. Valid until the next insert.
  Value* find(std::uint64_t key) {
    if (slots_ == 0) return nullptr;
    const std::size_t at = slot(nonzero(key));
    return keys_[at] ? &value(at) : nullptr;
  }
  bool contains(std::uint64_t key) const { return slots_ > 0 && keys_[slot(nonzero(key))] != 0; }
  const Value* find(std::uint64_t key) const { return const_cast<HashMap*>(this)->find(key); }
  /// The present value or, if `is_new`, the inserted one.
  Value& insert(std::uint64_t key, const Value& initial, bool& is_new) {
    if ((size_ + 1) * 5 > slots_ * 4) grow();
    const std::size_t at = slot(nonzero(key));
    is_new = keys_[at] == 0;
    if (is_new) {
      keys_[at] = nonzero(key);
      value(at) = initial;
      ++size_;
    }
    return value(at);
  }
  /// Calls `visit(key, value)` for each entry, in no order.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t at = 0; at < slots_; ++at)
      if (keys_[at]) visit(keys_[at], value(at));
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    const_cast<HashMap*>(this)->for_each([&](std::uint64_t key, const Value& value) { visit(key, value); });
  }
  /// Takes no more memory than its entries and a few more need; for a map that grows rarely from now on.
  void fit() {
    const std::size_t slots = (size_ + entries_spared) * 5 / 4 + 1;
    if (size_ > 0 && slots < slots_) move_to(slots);
  }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const {
    return slots_ * (sizeof(std::uint64_t) + (has_values ? sizeof(Value) : 0));
  }

 private:
  static constexpr bool has_values = !std::is_empty_v<Value>;
  static constexpr std::size_t entries_spared = 8;

  Value& value(std::size_t at) {
    if constexpr (has_values) return values_[at];
    return nothing_;
  }
  static std::uint64_t nonzero(std::uint64_t key) { return key ? key : 1; }  // 0 marks an empty slot
  std::size_t slot(std::uint64_t key) const {
    std::size_t at = slot_of_hash(key, slots_);
    while (keys_[at] && keys_[at] != key) at = at + 1 == slots_ ? 0 : at + 1;
    return at;
  }
  void grow() { move_to(slots_ == 0 ? 16 : slots_ * 3 / 2); }
  void move_to(std::size_t slots) {
    const std::size_t old_slots = std::exchange(slots_, slots);
    const auto keys = std::exchange(keys_, std::make_unique<std::uint64_t[]>(slots_));
    const auto values = std::exchange(values_, has_values ? std::make_unique<Value[]>(slots_) : nullptr);
    for (std::size_t i = 0; i < old_slots; ++i) {
      if (!keys[i]) continue;
      const std::size_t at = slot(keys[i]);
      keys_[at] = keys[i];
      if constexpr (has_values) values_[at] = values[i];
    }
  }

  std::unique_ptr<std::uint64_t[]> keys_;
  std::unique_ptr<Value[]> values_;  // null if they are empty
  std::size_t slots_ = 0, size_ = 0;
  inline static Value nothing_{};  // of an empty type
};

/// The same without values.
class HashSet {
 public:
  /// Returns whether the key is new.
  bool insert(std::uint64_t key) {
    bool is_new = false;
    map_.insert(key, {}, is_new);
    return is_new;
  }
  bool contains(std::uint64_t key) const { return map_.contains(key); }
  void fit() { map_.fit(); }
  std::size_t size() const { return map_.size(); }
  std::size_t memory_bytes() const { return map_.memory_bytes(); }

 private:
  struct Nothing {};
  HashMap<Nothing> map_;
};

/// A value that most owners never change from its default: one pointer until then.
template <class Value>
class Rare {
 public:
  const Value& operator*() const { return value_ ? *value_ : unchanged_; }
  const Value* operator->() const { return &**this; }
  Value& change() {
    if (!value_) value_ = std::make_unique<Value>();
    return *value_;
  }

 private:
  std::unique_ptr<Value> value_;
  inline static const Value unchanged_{};
};

/// A map from strings that drops the key inserted first when it has more than `size_max`.
template <class Value, std::size_t size_max>
class BoundedMap {
 public:
  /// Null if there is none.
  const Value* find(std::string_view key) const {
    if (values_.empty()) return nullptr;
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
    if (values_.empty() || values_.erase(std::string(key)) == 0) return;
    order_.erase(std::find(order_.begin(), order_.end(), key));
  }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::unordered_map<std::string, Value> values_;
  std::list<std::string> order_;  // of insertion; a deque takes 600 bytes before the first
};

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
