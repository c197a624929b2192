#include "search/result_text.hpp"

#include <algorithm>

namespace earshot::search {
namespace {

constexpr std::size_t lead_characters = 60;  // shown before the first match

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

Snippet make_snippet(std::string_view highlighted) {
  std::string text;
  std::vector<std::size_t> starts;  // byte of each code point
  std::vector<std::pair<std::size_t, std::size_t>> matches;
  bool is_open = false;
  for (const char c : highlighted) {
    if (c == match_begin) {
      matches.emplace_back(starts.size(), 0);
      is_open = true;
    } else if (c == match_end) {
      if (is_open) matches.back().second = starts.size() - matches.back().first;
      is_open = false;
    } else {
      if (!is_continuation(c)) starts.push_back(text.size());
      text += c == '\n' ? ' ' : c;
    }
  }
  if (is_open) matches.back().second = starts.size() - matches.back().first;

  const std::size_t first = matches.empty() ? 0 : matches.front().first;
  const std::size_t begin = first > lead_characters ? first - lead_characters : 0;
  const std::size_t end = std::min(starts.size(), begin + Snippet::characters_max);
  const auto byte_of = [&](std::size_t character) {
    return character < starts.size() ? starts[character] : text.size();
  };
  Snippet snippet;
  snippet.text = text.substr(byte_of(begin), byte_of(end) - byte_of(begin));
  snippet.cut_before = begin > 0;
  snippet.cut_after = end < starts.size();
  for (const auto& [at, size] : matches) {
    if (at >= end || snippet.matches.size() == Snippet::matches_max) break;
    snippet.matches.emplace_back(at - begin, std::min(size, end - at));
  }
  return snippet;
}

}  // namespace earshot::search
