#include "cli/time_spec.hpp"

#include <ctime>
#include <string>

#include "base/quantities.hpp"

namespace earshot::cli {

namespace {

// Whether all of `text` has strptime's format.
bool parse_format(const std::string& text, const char* format, std::tm& parts) {
  const char* const end = ::strptime(text.c_str(), format, &parts);
  return end != nullptr && *end == '\0';
}

std::optional<std::int64_t> local_ms(std::tm parts) {
  parts.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  if (seconds == -1) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * 1000;
}

}  // namespace

std::optional<std::int64_t> parse_since(std::string_view text, std::int64_t now_ms) {
  if (text != "0") {
    if (const auto ago = parse_duration(text)) return now_ms - ago->count();
  }
  if (const auto exact = parse_time(text)) return exact;
  const std::string word(text);
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    if (parse_format(word, format, parts)) return local_ms(parts);
  }
  for (const char* format : {"%H:%M:%S", "%H:%M"}) {
    const std::time_t now = static_cast<std::time_t>(now_ms / 1000);
    std::tm parts{};
    localtime_r(&now, &parts);
    parts.tm_sec = 0;
    if (!parse_format(word, format, parts)) continue;
    const auto today = local_ms(parts);
    if (!today || *today <= now_ms) return today;
    --parts.tm_mday;  // yesterday; mktime normalises the date
    return local_ms(parts);
  }
  return std::nullopt;
}

}  // namespace earshot::cli
