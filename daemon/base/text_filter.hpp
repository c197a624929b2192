// What the core knows of secrets: that something may take them out of decoded text before it is shown.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace earshot {

/// Pure but for what it counts: the same text always comes out the same, and clean text comes out as it is.
/// Used on one thread.
class TextFilter {
 public:
  virtual ~TextFilter() = default;

  /// The first `shown_bytes` of `text` (back to a character's boundary) with every secret that begins there
  /// replaced whole, so that it may be longer than that. What follows is looked at and never shown: a secret
  /// that the cut divides is known by it. A view of `text` when nothing was replaced, else of `scratch`.
  virtual std::string_view clean(std::string_view text, std::size_t shown_bytes,
                                 std::string& scratch) const = 0;
  std::string_view clean(std::string_view text, std::string& scratch) const {
    return clean(text, text.size(), scratch);
  }

  /// A string under this object key is a secret whatever it looks like …
  virtual bool is_secret_key(std::string_view key) const = 0;
  /// … unless it stands for one: empty, a placeholder, replaced already. Else what is shown in its place, a
  /// view of `scratch`; nothing when it is to be shown as any other text.
  virtual std::string_view replace_whole(std::string_view value, std::string& scratch) const = 0;

  /// How many bytes after a cut are to be given to clean(), too.
  virtual std::size_t reach() const = 0;
};

/// The beginning of a text as it is shown.
struct Beginning {
  std::string_view text;  // clean, then cut on a character's boundary
  bool cut = false;       // there was more of it
};
/// At most `bytes_max`; of the text or of `scratch`. Null: nothing is replaced.
inline Beginning clean_beginning(const TextFilter* filter, std::string_view text, std::size_t bytes_max,
                                 std::string& scratch) {
  bool cut = text.size() > bytes_max;
  if (filter) {
    if (cut && text.size() - bytes_max > filter->reach()) text = cut_utf8(text, bytes_max + filter->reach());
    text = filter->clean(text, bytes_max, scratch);
    cut |= text.size() > bytes_max;
  }
  return {cut_utf8(text, bytes_max), cut};
}

}  // namespace earshot
