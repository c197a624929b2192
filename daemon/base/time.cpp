#include "base/time.hpp"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace earshot {
namespace {

constexpr std::int64_t year_10000_ms = 253'402'300'800'000;

// Takes exactly `count` digits off the front; -1 if they are not there.
int take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return -1;
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// `Z` or an offset such as `+01:00`, to the end of the text, in minutes.
std::optional<std::int64_t> parse_offset(std::string_view text) {
  if (take(text, 'Z') || take(text, 'z')) return text.empty() ? std::optional<std::int64_t>(0) : std::nullopt;
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  const int hours = take_digits(text, 2);
  if (hours < 0 || hours > 23 || !take(text, ':')) return std::nullopt;
  const int minutes = take_digits(text, 2);
  if (minutes < 0 || minutes > 59 || !text.empty()) return std::nullopt;
  return sign * (hours * 60 + minutes);
}

std::string format_local(std::int64_t ms, const char* format) {
  const auto seconds = static_cast<std::time_t>(ms / 1000 - (ms % 1000 < 0 ? 1 : 0));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  using namespace std::chrono;
  const int y = take_digits(text, 4);
  if (y < 0 || !take(text, '-')) return std::nullopt;
  const int mo = take_digits(text, 2);
  if (mo < 0 || !take(text, '-')) return std::nullopt;
  const int d = take_digits(text, 2);
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)}, day{static_cast<unsigned>(d)}};
  if (d < 0 || !date.ok() || !(take(text, 'T') || take(text, 't') || take(text, ' '))) return std::nullopt;
  const int h = take_digits(text, 2);
  if (h < 0 || h > 23 || !take(text, ':')) return std::nullopt;
  const int mi = take_digits(text, 2);
  if (mi < 0 || mi > 59 || !take(text, ':')) return std::nullopt;
  const int s = take_digits(text, 2);
  if (s < 0 || s > 60) return std::nullopt;  // 60: a leap second
  std::int64_t ms = 0;
  if (take(text, '.')) {
    int digit = take_digits(text, 1), scale = 100;
    if (digit < 0) return std::nullopt;
    for (; digit >= 0; digit = take_digits(text, 1), scale /= 10) ms += digit * scale;
  }
  const auto offset = parse_offset(text);
  if (!offset) return std::nullopt;
  const std::int64_t days = sys_days{date}.time_since_epoch().count();
  return ((days * 24 + h) * 60 + mi - *offset) * 60'000 + s * 1000 + ms;
}

std::string format_time(std::int64_t ms) {
  using namespace std::chrono;
  const sys_time<milliseconds> time{milliseconds{ms}};
  const auto date = floor<days>(time);
  const year_month_day ymd{date};
  const hh_mm_ss<milliseconds> clock{time - date};
  char text[48];
  const int length = std::snprintf(
      text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int{ymd.year()}, unsigned{ymd.month()},
      unsigned{ymd.day()}, static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()), static_cast<int>(clock.subseconds().count()));
  return std::string(text, static_cast<std::size_t>(length));
}

std::string format_time_if_valid(std::int64_t ms) {
  return ms > 0 && ms < year_10000_ms ? format_time(ms) : std::string();
}

std::string format_local_clock(std::int64_t ms) { return format_local(ms, "%H:%M:%S"); }
std::string format_local_day(std::int64_t ms) { return format_local(ms, "%a %e %b %Y"); }

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace earshot
