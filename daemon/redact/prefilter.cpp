#include "redact/prefilter.hpp"

#include <algorithm>
#include <cassert>

namespace earshot::redact {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Roughly how common a byte is in code and prose.
int commonness(char c, bool any_case) {
  constexpr std::string_view rare_first = "zqjxkvbywgpfmucdlhrsnioate";
  if (is_letter(c) && (any_case || c == lower(c))) return 3 + static_cast<int>(rare_first.find(lower(c)));
  if (c == ' ') return 30;
  return is_letter(c) ? 3 : 6;  // capitals; digits and signs
}

}  // namespace

void Prefilter::add(std::string_view literal, bool any_case, std::size_t id) {
  assert(literal.size() >= literal_bytes_min);
  std::size_t rarest = 0;
  int rarest_cost = 1000;
  for (std::size_t at = 0; at + 3 <= literal.size(); ++at) {
    int cost = 0;
    for (std::size_t i = 0; i < 3; ++i) cost += commonness(literal[at + i], any_case);
    if (literal.substr(at, 3) == "key") cost += 30;  // rare letters, but a common word
    if (cost < rarest_cost) rarest = at, rarest_cost = cost;
  }
  const Entry entry{std::string(literal), id, 0, static_cast<std::uint8_t>(rarest), any_case};
  std::vector<std::uint32_t> spellings;  // of the three bytes, each once
  for (unsigned spelling = 0; spelling < (any_case ? 8u : 1u); ++spelling) {
    char bytes[3];
    for (unsigned i = 0; i < 3; ++i) {
      bytes[i] = literal[rarest + i];
      if (any_case && is_letter(bytes[i]))
        bytes[i] = static_cast<char>(spelling >> i & 1 ? bytes[i] & ~32 : bytes[i] | 32);
    }
    const std::uint32_t written = three(bytes);
    if (std::find(spellings.begin(), spellings.end(), written) != spellings.end()) continue;
    spellings.push_back(written);
  }
  // Two spellings may share a hash: one entry per hash, or a literal would be reported twice.
  std::vector<std::uint32_t> hashes;
  for (const std::uint32_t one : spellings) {
    if (std::find(hashes.begin(), hashes.end(), hash(one)) != hashes.end()) continue;
    hashes.push_back(hash(one));
    insert(one, entry);
  }
}

void Prefilter::insert(std::uint32_t three_bytes, Entry entry) {
  const std::uint32_t h = hash(three_bytes);
  maybe_[h] = 1;
  entry.next = heads_[h];
  assert(entries_.size() < 65535);
  heads_[h] = static_cast<std::uint16_t>(entries_.size());
  entries_.push_back(std::move(entry));
}

bool Prefilter::matches(std::string_view text, std::size_t begin, const Entry& entry) {
  if (entry.text.size() > text.size() - begin) return false;
  for (std::size_t i = 0; i < entry.text.size(); ++i) {
    const char c = text[begin + i];
    if (c != entry.text[i] && !(entry.any_case && lower(c) == lower(entry.text[i]))) return false;
  }
  return true;
}

}  // namespace earshot::redact
