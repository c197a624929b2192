#include "common/format.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

namespace earshot::common {
namespace {

// Three significant digits below 100 of a unit's thousands: 1.0k, 99.9k, 100k.
std::string scaled(std::uint64_t value, const char* small, const std::array<const char*, 4>& units) {
  char text[40];
  if (value < 1000) {
    std::snprintf(text, sizeof text, "%llu%s", static_cast<unsigned long long>(value), small);
    return text;
  }
  double scaled_value = static_cast<double>(value) / 1000;
  std::size_t unit = 0;
  while (scaled_value >= 999.5 && unit + 1 < units.size()) {
    scaled_value /= 1000;
    ++unit;
  }
  std::snprintf(text, sizeof text, scaled_value < 99.95 ? "%.1f%s" : "%.0f%s", scaled_value, units[unit]);
  return text;
}

// Reads exactly `digits` digits.
bool take_number(std::string_view& text, std::size_t digits, int& value) {
  if (text.size() < digits) return false;
  value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool take(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

bool take_zone(std::string_view text, std::int64_t& offset_ms) {
  offset_ms = 0;
  if (text == "Z" || text == "z") return true;
  int sign = 0;
  if (take(text, '+')) sign = 1;
  if (sign == 0 && take(text, '-')) sign = -1;
  int hours = 0, minutes = 0;
  if (sign == 0 || !take_number(text, 2, hours) || !take(text, ':') || !take_number(text, 2, minutes))
    return false;
  offset_ms = sign * (hours * 60 + minutes) * 60'000LL;
  return text.empty();
}

std::string local(std::int64_t ms, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(ms / 1000 - (ms % 1000 < 0 ? 1 : 0));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[64];
  const std::size_t size = std::strftime(text, sizeof text, format, &parts);
  return std::string(text, size);
}

}  // namespace

std::string format_count(std::uint64_t count) { return scaled(count, "", {"k", "M", "G", "T"}); }
std::string format_bytes(std::uint64_t bytes) { return scaled(bytes, " B", {" kB", " MB", " GB", " TB"}); }

std::string format_duration(std::int64_t ms) {
  ms = std::max<std::int64_t>(ms, 0);
  char text[40];
  if (ms < 100) {
    std::snprintf(text, sizeof text, "%d ms", static_cast<int>(ms));
  } else if (ms < 59'950) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  } else if (const long long seconds = (ms + 500) / 1000; seconds < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", seconds / 60, seconds % 60);
  } else if (seconds < 86'400) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldd%02lldh", seconds / 86'400, seconds / 3600 % 24);
  }
  return text;
}

std::string format_age(std::int64_t ms) {
  const std::int64_t seconds = std::max<std::int64_t>(ms, 0) / 1000;
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 86'400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86'400) + "d";
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  const bool dated = take_number(text, 4, year) && take(text, '-') && take_number(text, 2, month) &&
                     take(text, '-') && take_number(text, 2, day) &&
                     (take(text, 'T') || take(text, 't') || take(text, ' '));
  if (!dated || !take_number(text, 2, hour) || !take(text, ':') || !take_number(text, 2, minute) ||
      !take(text, ':') || !take_number(text, 2, second)) {
    return std::nullopt;
  }
  std::int64_t fraction_ms = 0;
  if (take(text, '.')) {
    std::int64_t weight = 100;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    for (; !text.empty() && text.front() >= '0' && text.front() <= '9'; text.remove_prefix(1), weight /= 10) {
      fraction_ms += weight * (text.front() - '0');
    }
  }
  std::int64_t offset_ms = 0;
  if (!take_zone(text, offset_ms)) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60'000 + second * 1000LL + fraction_ms - offset_ms;
}

std::string format_local_clock(std::int64_t ms) { return local(ms, "%H:%M:%S"); }
std::string format_local_day(std::int64_t ms) { return local(ms, "%a %e %b %Y"); }

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string_view short_id(std::string_view id) {
  constexpr std::size_t short_id_bytes = 8;
  return id.substr(0, short_id_bytes);
}

std::string_view last_component(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  return slash == path.npos || slash + 1 == path.size() ? path : path.substr(slash + 1);
}

}  // namespace earshot::common
