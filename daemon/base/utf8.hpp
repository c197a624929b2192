#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace earshot {

/// Bytes of the well-formed UTF-8 character at the front, 1 to 4; 0 when there is none. `bad` is then how
/// many bytes one U+FFFD stands for: the longest beginning of a character (Unicode 15, table 3-7; "maximal
/// subpart").
std::size_t utf8_length(std::string_view text, std::size_t& bad);

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

void append_utf8(std::string& out, char32_t character);

/// The longest beginning of at most `bytes_max` bytes that does not cut a character.
std::string_view cut_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace earshot
