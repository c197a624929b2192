// One JSON value written again: validated, without blanks, long strings cut, secrets taken out.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/text_filter.hpp"

namespace earshot {

struct CopyOptions {
  std::size_t text_bytes_max = std::string::npos;  // longer strings become {"text","bytes","truncated"}
  std::size_t depth_max = 64;                      // deeper nesting is not copied
  std::size_t enough_bytes = std::string::npos;    // copying ends once so much was read and written
  const TextFilter* filter = nullptr;              // every string and every key goes through it
};

struct Copied {
  enum class How { whole, enough, too_deep, invalid } how = How::invalid;
  bool redacted = false;  // something was replaced
};

/// Appends to `out`; what was appended is a value only if it is `whole`. Numbers and escapes stay as they are
/// written; bytes that are not UTF-8 and lone surrogates become U+FFFD.
Copied copy_json(std::string& out, std::string_view json, const CopyOptions& options);

/// The first `bytes_max` bytes of JSON that is shown as text: its strings are clean however they are escaped
/// and however deep they stand. A view of `json` or of `scratch`.
std::string_view json_beginning(std::string_view json, std::size_t bytes_max, const TextFilter* filter,
                                std::string& scratch);

/// The first `shown_bytes` of text that is no JSON but may be a piece of it: clean as it stands, and with
/// JSON's escapes undone. A view of `scratch`.
std::string_view clean_fragment(std::string_view text, std::size_t shown_bytes, const TextFilter& filter,
                                std::string& scratch);

}  // namespace earshot
