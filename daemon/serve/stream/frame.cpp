#include "serve/stream/frame.hpp"

#include <cstdint>

namespace earshot::serve {

std::size_t write_frame_header(std::array<char, frame_header_bytes_max>& header, std::size_t payload_bytes) {
  constexpr char text_and_final = static_cast<char>(0x81);
  const std::uint64_t size = payload_bytes;
  std::size_t length_bytes = 0;
  header[0] = text_and_final;
  if (size < 126) {
    header[1] = static_cast<char>(size);
  } else if (size < 65536) {
    header[1] = 126;
    length_bytes = 2;
  } else {
    header[1] = 127;
    length_bytes = 8;
  }
  for (std::size_t i = 0; i < length_bytes; ++i) {
    header[2 + i] = static_cast<char>((size >> (8 * (length_bytes - 1 - i))) & 0xff);
  }
  return 2 + length_bytes;
}

Frame make_frame(std::string_view payload) {
  std::array<char, frame_header_bytes_max> header;
  const std::size_t header_bytes = write_frame_header(header, payload.size());
  std::string bytes;
  bytes.reserve(header_bytes + payload.size());
  bytes.append(header.data(), header_bytes).append(payload);
  return std::make_shared<const std::string>(std::move(bytes));
}

}  // namespace earshot::serve
