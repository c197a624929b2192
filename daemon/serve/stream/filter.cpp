#include "serve/stream/filter.hpp"

#include <algorithm>

namespace earshot::serve {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

std::size_t character_end(std::string_view text, std::size_t at) {
  ++at;
  while (at < text.size() && is_continuation(text[at])) ++at;
  return at;
}

bool any(const std::vector<std::string>& patterns, std::string_view text) {
  return patterns.empty() || std::any_of(patterns.begin(), patterns.end(),
                                         [text](const std::string& pattern) { return glob(pattern, text); });
}

}  // namespace

bool glob(std::string_view pattern, std::string_view text) {
  constexpr std::size_t none = std::string_view::npos;
  std::size_t p = 0, t = 0, star = none, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t = character_end(text, t);
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != none) {
      p = star + 1;
      star_text = character_end(text, star_text);
      t = star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Filter::matches_session(std::string_view host_name, std::string_view session_name,
                             std::string_view project_name) const {
  return any(host, host_name) && any(session, session_name) && any(project, project_name);
}

bool Filter::matches_type(std::string_view type_name) const { return any(type, type_name); }

}  // namespace earshot::serve
