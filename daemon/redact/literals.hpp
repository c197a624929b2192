// Where any of many short literals stands in a text, found in one pass.
//
// Of each literal its rarest three bytes are taken; a table of 64 K entries, of which text touches few, says
// for each place of the text whether three such bytes may begin there. Clean text costs two loads and a
// multiplication a byte, and one branch that is not taken every eight; only where the table says yes is a
// literal compared.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::redact {

class Literals {
 public:
  static constexpr std::size_t literal_bytes_min = 3;

  /// Calls of find() name it by `id`. Of letters either case counts when `any_case`.
  void add(std::string_view literal, bool any_case, std::size_t id);

  /// Calls hit(id, place, length) for each literal that stands in the text, in the order of the places of
  /// their rarest bytes.
  template <class Hit>
  void find(std::string_view text, Hit&& hit) const {
    if (text.size() < literal_bytes_min) return;
    const char* const data = text.data();
    const std::uint8_t* const maybe = maybe_.data();
    const std::size_t last = text.size() - literal_bytes_min;  // where the last three bytes begin
    const auto at_place = [&](std::size_t place) { return maybe[hash(load(data + place))]; };
    std::size_t at = 0;
    for (; at + 8 <= last; at += 8) {  // eight places a turn: the last one's load ends inside the text
      const int any = at_place(at) | at_place(at + 1) | at_place(at + 2) | at_place(at + 3) |
                      at_place(at + 4) | at_place(at + 5) | at_place(at + 6) | at_place(at + 7);
      if (!any) [[likely]]
        continue;
      for (std::size_t place = at; place < at + 8; ++place)
        if (at_place(place)) look(text, place, hit);
    }
    for (; at < last; ++at)
      if (at_place(at)) look(text, at, hit);
    if (maybe[hash(three(data + last))]) look(text, last, hit);
  }

 private:
  struct Entry {
    std::string text;
    std::size_t id = 0;
    std::uint16_t next = 0;  // in the chain of its hash; 0: none
    std::uint8_t rarest = 0;
    bool any_case = false;
  };

  static constexpr unsigned hash_bits = 16;

  static std::uint32_t three(const char* bytes) {
    const auto byte = [&](int at) { return std::uint32_t{static_cast<unsigned char>(bytes[at])}; };
    return byte(0) | byte(1) << 8 | byte(2) << 16;
  }
  static std::uint32_t load(
      const char* bytes) {  // four bytes must be readable; hash() leaves the last one out
    if constexpr (std::endian::native != std::endian::little) return three(bytes);
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  // The low three bytes only: the fourth is shifted out by the multiplication.
  static std::uint32_t hash(std::uint32_t bytes) { return bytes * (0x9E3779B1u << 8) >> (32 - hash_bits); }

  template <class Hit>
  [[gnu::noinline]] void look(std::string_view text, std::size_t place, Hit& hit) const {
    for (std::uint16_t next = heads_[hash(three(text.data() + place))]; next != 0;) {
      const Entry& entry = entries_[next];
      next = entry.next;
      if (place < entry.rarest) continue;
      const std::size_t begin = place - entry.rarest;
      if (stands_at(text, begin, entry)) hit(entry.id, begin, entry.text.size());
    }
  }
  static bool stands_at(std::string_view text, std::size_t begin, const Entry& entry);
  void put(std::uint32_t three_bytes, Entry entry);

  std::vector<std::uint8_t> maybe_ = std::vector<std::uint8_t>(1 << hash_bits);    // by hash; 0: no
  std::vector<std::uint16_t> heads_ = std::vector<std::uint16_t>(1 << hash_bits);  // by hash; 0: none
  std::vector<Entry> entries_ = std::vector<Entry>(1);                             // [0] stands for none
};

}  // namespace earshot::redact
