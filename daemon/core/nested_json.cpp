#include "core/nested_json.hpp"

namespace earshot {

LineParser::Parsed NestedJson::parse(std::string_view text) {
  text_.assign(text);
  // One line. A raw LF inside a string is not JSON.
  bool is_string = false;
  for (std::size_t at = text_.find('\n') == text_.npos ? text_.size() : 0; at < text_.size(); ++at) {
    char& c = text_[at];
    if (c == '"')
      is_string = !is_string;
    else if (c == '\\' && is_string)
      ++at;
    else if (c == '\n' && is_string)
      return {};
    else if (c == '\n')
      c = ' ';
  }
  text_ += '\n';
  text_.reserve(text_.size() + scan_padding);
  return parser_.parse(text_);
}

void NestedJson::release_long() {
  if (text_.capacity() <= LineParser::chunk_bytes_max) return;
  std::string().swap(text_);
  parser_.release_long();
}

}  // namespace earshot
