#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace earshot::serve {

/// A whole WebSocket text frame as a server sends it (header, payload; not masked), shared by all who are to
/// get it.
using Frame = std::shared_ptr<const std::string>;

constexpr std::size_t frame_header_bytes_max = 10;

/// Writes the header of an unfragmented text frame of `payload_bytes`; returns its length (RFC 6455, 5.2).
std::size_t write_frame_header(std::array<char, frame_header_bytes_max>& header, std::size_t payload_bytes);

Frame make_frame(std::string_view payload);

}  // namespace earshot::serve
