// A text is a cursor only when it is what to_string writes of it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/cursor.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto cursor = earshot::parse_cursor(text)) {
    if (earshot::to_string(*cursor) != text) std::abort();
  }
  return 0;
}
