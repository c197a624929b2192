#include "common/names.hpp"

#include <cstddef>

namespace earshot::common {
namespace {

constexpr std::size_t short_id_bytes = 8;

}  // namespace

std::string_view short_id(std::string_view id) { return id.substr(0, short_id_bytes); }

std::string_view last_component(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == path.npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

}  // namespace earshot::common
