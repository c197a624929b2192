#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace earshot {

/// The size of the well-formed UTF-8 character at the front, 1 to 4 bytes; 0 if there is none. Then `bad` is
/// the number of bytes that one U+FFFD replaces: the longest beginning of a character (the "maximal subpart"
/// of Unicode 15, table 3-7).
std::size_t utf8_length(std::string_view text, std::size_t& bad);

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

void append_utf8(std::string& out, char32_t character);

/// The longest beginning of at most `bytes_max` bytes that ends between characters.
std::string_view cut_utf8(std::string_view text, std::size_t bytes_max);

/// Without the `blanks` around it.
std::string_view trim(std::string_view text, std::string_view blanks = " \t\r\n");

}  // namespace earshot
