#include "response_check.hpp"

#include <charconv>

#include "fuzz.hpp"

namespace earshot::fuzz {
namespace {

constexpr std::string_view status_line = "HTTP/1.1 ";

std::size_t number(std::string_view text, int base) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  require(error == std::errc() && end != text.data(), "a length is a number");
  return value;
}

std::string_view field(std::string_view head, std::string_view name) {
  const std::size_t at = head.find(name);
  if (at == head.npos) return {};
  head.remove_prefix(at + name.size());
  return head.substr(0, head.find("\r\n"));
}

void require_frames(std::string_view bytes) {
  const auto at = [&](std::size_t i) {
    return static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i]));
  };
  bool closed = false;
  while (bytes.size() >= 2) {
    require(!closed, "nothing follows a close frame");
    const std::uint64_t kind = at(0) & 0x0F;
    require((at(0) & 0xF0) == 0x80, "a frame is final, without extensions");
    require(kind == 1 || kind == 8 || kind == 9 || kind == 10, "a frame is text or control");
    require((at(1) & 0x80) == 0, "a server does not mask");
    std::uint64_t size = at(1);
    std::size_t head = 2;
    const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
    if (bytes.size() < head + more) return;
    if (more) size = 0;
    for (std::size_t i = 0; i < more; ++i) size = size << 8 | at(head + i);
    head += more;
    require(kind == 1 || size < 126, "a control frame is short");
    if (bytes.size() - head < size) return;
    if (kind == 1) {
      const std::string text(bytes.substr(head, size));
      require(text.starts_with(R"({"type":)") && is_json(text), "a frame is one JSON object with its type");
    }
    closed = kind == 8;
    bytes.remove_prefix(head + size);
  }
}

/// False if the rest is missing.
bool skip_chunks(std::string_view& bytes) {
  while (true) {
    const std::size_t end = bytes.find("\r\n");
    if (end == bytes.npos) return false;
    const std::size_t size = number(bytes.substr(0, end), 16);
    bytes.remove_prefix(end + 2);
    if (bytes.size() < size + 2) return false;
    require(bytes.substr(size, 2) == "\r\n", "a chunk has its end");
    if (size > 0) require(bytes[0] == '{' && bytes[size - 1] == '\n', "a chunk is whole lines of JSON");
    bytes.remove_prefix(size + 2);
    if (size == 0) return true;
  }
}

}  // namespace

void require_responses(std::string_view bytes) {
  while (bytes.size() >= status_line.size()) {
    require(bytes.starts_with(status_line), "a response begins with its status line");
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == bytes.npos) return;
    const std::string_view head = bytes.substr(0, end + 2);
    const std::size_t status = number(head.substr(status_line.size()), 10);
    bytes.remove_prefix(end + 4);
    if (status == 101) return require_frames(bytes);
    if (status == 100 || status == 304 || bytes.starts_with(status_line)) continue;  // or of HEAD
    const std::string_view length = field(head, "\r\nContent-Length: ");
    if (!length.empty()) {
      bytes.remove_prefix(std::min(bytes.size(), number(length, 10)));
    } else if (field(head, "\r\nTransfer-Encoding: ") != "chunked" || !skip_chunks(bytes)) {
      return;  // ends with the connection
    }
  }
}

}  // namespace earshot::fuzz
