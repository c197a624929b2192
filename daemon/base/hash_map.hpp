#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace earshot {

__extension__ typedef unsigned __int128 Wide;

/// The place that a hash has among `places`, evenly.
inline std::size_t scale(std::uint64_t hash, std::size_t places) {
  return static_cast<std::size_t>((static_cast<Wide>(hash) * places) >> 64);
}

/// From 64-bit hashes to small values; never forgets. About 12 bytes an entry and the value's size half
/// again: linear probing, at most 4/5 full, grown by half. Keys must be evenly spread over 64 bits.
template <class Value>
class HashMap {
 public:
  /// Null when there is none. Valid until the next insert.
  Value* find(std::uint64_t key) {
    if (keys_.empty()) return nullptr;
    const std::size_t at = place(solid(key));
    return keys_[at] ? &values_[at] : nullptr;
  }
  /// The value that was there, or the new one; `fresh` says which.
  Value& insert(std::uint64_t key, Value value, bool& fresh) {
    if ((size_ + 1) * 5 > keys_.size() * 4) grow();
    const std::size_t at = place(solid(key));
    fresh = keys_[at] == 0;
    if (fresh) {
      keys_[at] = solid(key);
      values_[at] = value;
      ++size_;
    }
    return values_[at];
  }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const {
    return keys_.capacity() * sizeof(std::uint64_t) + values_.capacity() * sizeof(Value);
  }

 private:
  static std::uint64_t solid(std::uint64_t key) { return key ? key : 1; }  // 0 marks an empty place
  std::size_t place(std::uint64_t key) const {
    std::size_t at = scale(key, keys_.size());
    while (keys_[at] && keys_[at] != key) at = at + 1 == keys_.size() ? 0 : at + 1;
    return at;
  }
  void grow() {
    std::vector<std::uint64_t> keys(keys_.empty() ? 16 : keys_.size() * 3 / 2);
    std::vector<Value> values(keys.size());
    keys.swap(keys_);
    values.swap(values_);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!keys[i]) continue;
      const std::size_t at = place(keys[i]);
      keys_[at] = keys[i];
      values_[at] = values[i];
    }
  }

  std::vector<std::uint64_t> keys_;
  std::vector<Value> values_;
  std::size_t size_ = 0;
};

/// A set is a map to nothing.
class HashSet {
 public:
  /// Whether it is new.
  bool insert(std::uint64_t key) {
    if ((size_ + 1) * 5 > keys_.size() * 4) grow();
    const std::size_t at = place(keys_, solid(key));
    if (keys_[at]) return false;
    keys_[at] = solid(key);
    ++size_;
    return true;
  }
  bool contains(std::uint64_t key) const { return !keys_.empty() && keys_[place(keys_, solid(key))] != 0; }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return keys_.capacity() * sizeof(std::uint64_t); }

 private:
  static std::uint64_t solid(std::uint64_t key) { return key ? key : 1; }
  static std::size_t place(const std::vector<std::uint64_t>& keys, std::uint64_t key) {
    std::size_t at = scale(key, keys.size());
    while (keys[at] && keys[at] != key) at = at + 1 == keys.size() ? 0 : at + 1;
    return at;
  }
  void grow() {
    std::vector<std::uint64_t> keys(keys_.empty() ? 16 : keys_.size() * 3 / 2);
    for (const std::uint64_t key : keys_)
      if (key) keys[place(keys, key)] = key;
    keys_.swap(keys);
  }

  std::vector<std::uint64_t> keys_;
  std::size_t size_ = 0;
};

}  // namespace earshot
