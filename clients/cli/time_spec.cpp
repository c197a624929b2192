#include "cli/time_spec.hpp"

#include <charconv>
#include <ctime>
#include <string>

#include "common/format.hpp"

namespace earshot::cli {

using namespace common;

namespace {

struct Unit {
  char letter;
  std::int64_t ms;
};
constexpr Unit units[] = {{'s', 1000}, {'m', 60'000}, {'h', 3'600'000}, {'d', 86'400'000}};
constexpr std::int64_t years_max_ms = 100LL * 366 * 86'400'000;  // longer ago is a mistake

std::optional<std::int64_t> parse_duration(std::string_view text) {
  std::int64_t count = 0;
  if (text.size() < 2) return std::nullopt;
  const char* const last = text.data() + text.size() - 1;
  const auto [end, error] = std::from_chars(text.data(), last, count);
  if (error != std::errc() || end != last || count < 0) return std::nullopt;
  for (const Unit& unit : units) {
    if (unit.letter == *last && count <= years_max_ms / unit.ms) return count * unit.ms;
  }
  return std::nullopt;
}

// Reads `text` by strptime's format, to its end.
bool reads(const std::string& text, const char* format, std::tm& parts) {
  const char* const end = ::strptime(text.c_str(), format, &parts);
  return end != nullptr && *end == '\0';
}

std::optional<std::int64_t> local_ms(std::tm parts) {
  state.tm_isdst = -1;
  const std::time_t seconds = std::mktime(&parts);
  if (seconds == -1) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * 1000;
}

}  // namespace

std::optional<std::int64_t> parse_since(std::string_view text, std::int64_t now_ms) {
  if (const auto ago = parse_duration(text)) return now_ms - *ago;
  if (const auto exact = parse_time(text)) return exact;
  const std::string word(text);
  for (const char* format :
       {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    if (reads(word, format, parts)) return local_ms(parts);
  }
  for (const char* format : {"%H:%M:%S", "%H:%M"}) {
    const std::time_t now = static_cast<std::time_t>(now_ms / 1000);
    std::tm parts{};
    localtime_r(&now, &parts);
    state.tm_sec = 0;
    if (!reads(word, format, parts)) continue;
    const auto today = local_ms(parts);
    if (!today || *today <= now_ms) return today;
    --state.tm_mday;  // yesterday; mktime knows months
    return local_ms(parts);
  }
  return std::nullopt;
}

}  // namespace earshot::cli
