#include "base/hex.hpp"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

namespace earshot {

std::optional<std::uint64_t> parse_hex(std::string_view text) {
  if (text.empty() || text.size() > 16 || !is_hex(text)) return std::nullopt;
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

std::string random_hex(std::size_t bytes) {
  constexpr std::size_t call_bytes_max = 256;  // of getentropy()
  std::string random(bytes, '\0');
  for (std::size_t done = 0; done < bytes; done += call_bytes_max) {
    if (::getentropy(random.data() + done, std::min(call_bytes_max, bytes - done)) != 0)
      throw std::system_error(errno, std::generic_category(), "getentropy");
  }
  return to_hex(random);
}

}  // namespace earshot
