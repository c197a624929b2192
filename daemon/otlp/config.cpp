#include "otlp/config.hpp"

#include <algorithm>

#include "base/file.hpp"

namespace earshot::otlp {

bool is_header(std::string_view line) {
  const std::size_t colon = line.find(':');
  const auto is_name = [](unsigned char c) { return c > ' ' && c < 0x7f; };
  const auto is_text = [](unsigned char c) { return c >= ' ' && c < 0x7f; };
  return colon != line.npos && colon > 0 &&
         std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(colon), is_name) &&
         std::all_of(line.begin(), line.end(), is_text);
}

std::string read_headers_file(Config& config) {
  constexpr std::size_t bytes_max = 64 << 10;
  if (config.headers_file.empty()) return {};
  const PrivateFile file = read_private_file(config.headers_file, bytes_max);
  // Other private files are created by the daemon if they are missing.
  if (!file.error.empty()) return file.error.substr(0, file.error.find("; otherwise"));
  if (!file.text) return config.headers_file + ": there is no such file";
  std::string_view left = *file.text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    // The line itself is a secret.
    if (!is_header(line))
      return config.headers_file + ":" + std::to_string(number) + ": must be `Name: value` in visible ASCII";
    config.headers.emplace_back(line);
  }
  return {};
}

}  // namespace earshot::otlp
