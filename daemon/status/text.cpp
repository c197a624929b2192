#include "status/text.hpp"

#include "base/time.hpp"

namespace earshot::status {

namespace {

constexpr std::int64_t year_10000_ms = 253'402'300'800'000;

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string rfc3339(std::int64_t ms) {
  return ms > 0 && ms < year_10000_ms ? format_time(ms) : std::string();
}

std::string one_line(std::string_view text, std::size_t bytes_max) {
  if (text.size() > bytes_max) {
    std::size_t cut = bytes_max;
    while (cut > 0 && continues_character(text[cut])) --cut;
    text = text.substr(0, cut);
  }
  std::string line(text);
  for (std::size_t at = 0; at < line.size(); ++at) {
    const auto byte = static_cast<unsigned char>(line[at]);
    if (byte < 0x20 || byte == 0x7F) line[at] = ' ';
    // C1 is two bytes of UTF-8, C2 80 to C2 9F: some terminals obey them like ESC sequences.
    if (byte == 0xC2 && at + 1 < line.size() && static_cast<unsigned char>(line[at + 1]) < 0xA0) {
      line[at] = ' ';
      line[at + 1] = ' ';
    }
  }
  return line;
}

}  // namespace earshot::status
