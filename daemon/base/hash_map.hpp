#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace earshot {

__extension__ typedef unsigned __int128 Wide;

/// Maps a hash evenly to one of `slots`.
inline std::size_t slot_of_hash(std::uint64_t hash, std::size_t slots) {
  return static_cast<std::size_t>((static_cast<Wide>(hash) * slots) >> 64);
}

/// A map from 64-bit hashes, evenly spread, to small values. Entries cannot be removed. Linear probing, at
/// most 4/5 full, grown by half: an entry takes about 1.5 times the size of its key and value.
template <class Value>
class HashMap {
 public:
  /// Null if there is none. Valid until the next insert.
  Value* find(std::uint64_t key) {
    if (keys_.empty()) return nullptr;
    const std::size_t at = slot(nonzero(key));
    return keys_[at] ? &values_[at] : nullptr;
  }
  /// The present value or, if `is_new`, the inserted one.
  Value& insert(std::uint64_t key, Value value, bool& is_new) {
    if ((size_ + 1) * 5 > keys_.size() * 4) grow();
    const std::size_t at = slot(nonzero(key));
    is_new = keys_[at] == 0;
    if (is_new) {
      keys_[at] = nonzero(key);
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
  static std::uint64_t nonzero(std::uint64_t key) { return key ? key : 1; }  // 0 marks an empty slot
  std::size_t slot(std::uint64_t key) const {
    std::size_t at = slot_of_hash(key, keys_.size());
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
      const std::size_t at = slot(keys[i]);
      keys_[at] = keys[i];
      values_[at] = values[i];
    }
  }

  std::vector<std::uint64_t> keys_;
  std::vector<Value> values_;
  std::size_t size_ = 0;
};

/// The same without values.
class HashSet {
 public:
  /// Returns whether the key is new.
  bool insert(std::uint64_t key) {
    if ((size_ + 1) * 5 > keys_.size() * 4) grow();
    const std::size_t at = slot(keys_, nonzero(key));
    if (keys_[at]) return false;
    keys_[at] = nonzero(key);
    ++size_;
    return true;
  }
  bool contains(std::uint64_t key) const { return !keys_.empty() && keys_[slot(keys_, nonzero(key))] != 0; }
  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return keys_.capacity() * sizeof(std::uint64_t); }

 private:
  static std::uint64_t nonzero(std::uint64_t key) { return key ? key : 1; }
  static std::size_t slot(const std::vector<std::uint64_t>& keys, std::uint64_t key) {
    std::size_t at = slot_of_hash(key, keys.size());
    while (keys[at] && keys[at] != key) at = at + 1 == keys.size() ? 0 : at + 1;
    return at;
  }
  void grow() {
    std::vector<std::uint64_t> keys(keys_.empty() ? 16 : keys_.size() * 3 / 2);
    for (const std::uint64_t key : keys_)
      if (key) keys[slot(keys, key)] = key;
    keys_.swap(keys);
  }

  std::vector<std::uint64_t> keys_;
  std::size_t size_ = 0;
};

}  // namespace earshot
