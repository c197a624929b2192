// Finds many short literals in a text in one pass.
//
// Each literal is represented by its three rarest bytes. A table of 64 Ki entries, indexed by a hash of three
// bytes, marks the candidates. Text without candidates costs two loads and a multiplication per byte and one
// untaken branch per eight bytes; literals are compared at candidates only.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::redact {

class Prefilter {
 public:
  static constexpr std::size_t literal_bytes_min = 3;

  /// `id` is passed to the hits of find(). `any_case`: ASCII letters match in either case.
  void add(std::string_view literal, bool any_case, std::size_t id);

  /// Calls hit(id, position, length) for each occurrence, in the order of the positions of their rarest
  /// bytes.
  template <class Hit>
  void find(std::string_view text, Hit&& hit) const {
    if (text.size() < literal_bytes_min) return;
    const char* const data = text.data();
    const std::uint8_t* const maybe = maybe_.data();
    const std::size_t last = text.size() - literal_bytes_min;  // position of the last three bytes
    const auto is_candidate = [&](std::size_t position) { return maybe[hash(load(data + position))]; };
    std::size_t at = 0;
    for (; at + 8 <= last; at += 8) {  // eight positions a turn; the last load ends inside the text
      const int any = is_candidate(at) | is_candidate(at + 1) | is_candidate(at + 2) | is_candidate(at + 3) |
                      is_candidate(at + 4) | is_candidate(at + 5) | is_candidate(at + 6) |
                      is_candidate(at + 7);
      if (!any) [[likely]]
        continue;
      for (std::size_t position = at; position < at + 8; ++position)
        if (is_candidate(position)) compare(text, position, hit);
    }
    for (; at < last; ++at)
      if (is_candidate(at)) compare(text, at, hit);
    if (maybe[hash(three(data + last))]) compare(text, last, hit);
  }

 private:
  struct Entry {
    std::string text;
    std::size_t id = 0;
    std::uint16_t next = 0;  // with the same hash; 0: none
    std::uint8_t rarest = 0;
    bool any_case = false;
  };

  static constexpr unsigned hash_bits = 16;

  static std::uint32_t three(const char* bytes) {
    const auto byte = [&](int at) { return std::uint32_t{static_cast<unsigned char>(bytes[at])}; };
    return byte(0) | byte(1) << 8 | byte(2) << 16;
  }
  static std::uint32_t load(const char* bytes) {  // reads four bytes; hash() ignores the fourth
    if constexpr (std::endian::native != std::endian::little) return three(bytes);
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  // The low three bytes only: the fourth is shifted out by the multiplication.
  static std::uint32_t hash(std::uint32_t bytes) { return bytes * (0x9E3779B1u << 8) >> (32 - hash_bits); }

  template <class Hit>
  [[gnu::noinline]] void compare(std::string_view text, std::size_t position, Hit& hit) const {
    for (std::uint16_t next = heads_[hash(three(text.data() + position))]; next != 0;) {
      const Entry& entry = entries_[next];
      next = entry.next;
      if (position < entry.rarest) continue;
      const std::size_t begin = position - entry.rarest;
      if (matches(text, begin, entry)) hit(entry.id, begin, entry.text.size());
    }
  }
  static bool matches(std::string_view text, std::size_t begin, const Entry& entry);
  void insert(std::uint32_t three_bytes, Entry entry);

  std::vector<std::uint8_t> maybe_ = std::vector<std::uint8_t>(1 << hash_bits);    // by hash; 1: a candidate
  std::vector<std::uint16_t> heads_ = std::vector<std::uint16_t>(1 << hash_bits);  // by hash; 0: none
  std::vector<Entry> entries_ = std::vector<Entry>(1);                             // [0] is not used
};

}  // namespace earshot::redact
