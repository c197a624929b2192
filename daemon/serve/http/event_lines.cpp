#include "serve/http/event_lines.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace earshot::serve {

void append_lines(std::string& out, std::span<const char> frames) {
  while (!frames.empty()) {
    assert(frames.size() >= 2 && static_cast<unsigned char>(frames[0]) == 0x81);
    std::uint64_t length = static_cast<unsigned char>(frames[1]);
    const std::size_t more = length == 127 ? 8 : length == 126 ? 2 : 0;
    if (more > 0) length = 0;
    for (std::size_t i = 0; i < more; ++i) length = length << 8 | static_cast<unsigned char>(frames[2 + i]);
    out.append(frames.data() + 2 + more, length);
    out += '\n';
    frames = frames.subspan(2 + more + length);
  }
}

}  // namespace earshot::serve
