#include "common/format.hpp"

#include <cstddef>

namespace earshot::common {

std::string_view short_id(std::string_view id) {
  constexpr std::size_t short_id_bytes = 8;
  return id.substr(0, short_id_bytes);
}

std::string_view last_component(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == path.npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace earshot::common
