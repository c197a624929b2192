// Texts: UTF-8, decoding on demand, patterns, spelling suggestions.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot {

/// The size of the well-formed UTF-8 character at the front, 1 to 4 bytes; 0 if there is none. Then `bad` is
/// the number of bytes that one U+FFFD replaces: the longest beginning of a character (the "maximal subpart"
/// of Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t& bad);

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

/// Writes the character's one to four bytes. Returns what is behind them.
char* put_utf8(char* out, char32_t character);
void append_utf8(std::string& out, char32_t character);

/// The longest beginning of at most `bytes_max` bytes that ends between characters.
std::string_view cut_utf8(std::string_view text, std::size_t bytes_max);

/// The last position of the byte; npos: there is none.
std::size_t find_last(std::string_view text, char byte);

inline bool is_one_of(std::string_view text, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}
inline bool is_one_of(std::string_view text, std::initializer_list<std::string_view> names) {
  return is_one_of(text, std::span(names.begin(), names.size()));
}

namespace detail {
template <class Word>
bool same_ends(const char* a, const char* b, std::size_t size) {
  Word first[2], last[2];
  std::memcpy(&first[0], a, sizeof(Word)), std::memcpy(&first[1], b, sizeof(Word));
  std::memcpy(&last[0], a + size - sizeof(Word), sizeof(Word));
  std::memcpy(&last[1], b + size - sizeof(Word), sizeof(Word));
  return ((first[0] ^ first[1]) | (last[0] ^ last[1])) == 0;
}
}  // namespace detail

/// Equality of texts that are mostly short, without a call.
inline bool is_same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const std::size_t size = a.size();
  if (size > 16) return std::memcmp(a.data(), b.data(), size) == 0;
  if (size >= 8) return detail::same_ends<std::uint64_t>(a.data(), b.data(), size);
  if (size >= 4) return detail::same_ends<std::uint32_t>(a.data(), b.data(), size);
  if (size >= 2) return detail::same_ends<std::uint16_t>(a.data(), b.data(), size);
  return size == 0 || a[0] == b[0];
}

/// A text of a JSON line that is decoded when it is first read.
class LazyText {
 public:
  /// Replaces the escapes of a JSON string's content. The result is as valid as the line.
  using Decode = std::string_view (*)(const void* line, std::string_view content);

  LazyText(std::string_view text) : text_(text) {}
  LazyText(const char* text) : text_(text) {}
  LazyText(std::string_view content, Decode decode, const void* line)
      : text_(content), decode_(decode), line_(line) {}

  std::string_view view() const {
    if (decode_) text_ = std::exchange(decode_, nullptr)(line_, text_);
    return text_;
  }
  operator std::string_view() const { return view(); }

 private:
  mutable std::string_view text_;
  mutable Decode decode_ = nullptr;  // null: the text is decoded
  const void* line_ = nullptr;
};

/// Without the `blanks` around it.
std::string_view trim(std::string_view text, std::string_view blanks = " \t\r\n");

/// One word of a shell's command line.
std::string quote_for_shell(std::string_view word);

/// Whether the pattern matches all of `text`: `*` matches any number of characters, `?` one (a UTF-8
/// sequence). Nothing else is special; case-sensitive. Takes about as many steps as the
/// text has bytes; pattern × text if it has both.
bool matches_glob(std::string_view pattern, std::string_view text);

/// The number of bytes to insert, delete or replace to turn one word into the other (Levenshtein).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of `known` with the smallest edit distance to `word`; empty if there are none.
std::string_view nearest_word(std::string_view word, const std::vector<std::string_view>& known);

/// The same if it is near enough to be a misspelling: at most two bytes, or a third of the word, differ, and
/// not all of it. Otherwise empty.
std::string_view suggest_word(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace earshot
