// Bytes and numbers as lower-case hexadecimal digits.
#pragma once
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace earshot {

constexpr std::string_view hex_digits = "0123456789abcdef";

inline bool is_hex(std::string_view text) { return text.find_first_not_of(hex_digits) == text.npos; }

/// Two digits a byte.
inline std::string to_hex(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += hex_digits[byte >> 4];
    hex += hex_digits[byte & 15];
  }
  return hex;
}

inline std::string to_hex(const unsigned char* bytes, std::size_t size) {
  return to_hex(std::string_view(reinterpret_cast<const char*>(bytes), size));
}

/// Writes 16 digits of `value`, the most significant of them first; returns their end. Eight digits at once.
inline char* write_hex(char* to, std::uint64_t value) {
  constexpr std::uint64_t ones = 0x0101010101010101;
  for (int shift = 32; shift >= 0; shift -= 32) {
    std::uint64_t digits = value >> shift & 0xFFFFFFFF;  // one in each byte, the last one lowest
    digits = (digits | digits << 16) & 0x0000FFFF0000FFFF;
    digits = (digits | digits << 8) & 0x00FF00FF00FF00FF;
    digits = (digits | digits << 4) & (ones * 15);
    const std::uint64_t is_letter = (digits + ones * 6) >> 4 & ones;
    digits += ones * '0' + is_letter * ('a' - '9' - 1);
    if constexpr (std::endian::native == std::endian::little) digits = __builtin_bswap64(digits);
    std::memcpy(to, &digits, sizeof digits);
    to += sizeof digits;
  }
  return to;
}

/// Appends exactly `digits` digits of `value`, the most significant of them first.
inline void append_hex(std::string& out, std::uint64_t value, int digits = 16) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += hex_digits[value >> shift & 15];
}

/// 1 to 16 lower-case digits and nothing else.
inline std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.empty() || text.size() > 16 || !is_hex(text)) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// `bytes` random bytes of the system's generator as digits.
inline std::string random_hex(std::size_t bytes) {
  constexpr std::size_t call_bytes_max = 256;  // of getentropy()
  std::string random(bytes, '\0');
  for (std::size_t done = 0; done < bytes; done += call_bytes_max) {
    if (::getentropy(random.data() + done, std::min(call_bytes_max, bytes - done)) != 0)
      throw std::system_error(errno, std::generic_category(), "getentropy");
  }
  return to_hex(random);
}

}  // namespace earshot
