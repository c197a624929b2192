#include "base/time.hpp"

#include <chrono>
#include <cstdio>

namespace earshot {
namespace {

// Exactly `count` digits at the front of `text`, taken off; -1 when they are not there.
int digits(std::string_view& text, std::size_t count) {
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
  if (text.empty() || (text.front() | 0x20) != (c | 0x20)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  using namespace std::chrono;
  const int y = digits(text, 4);
  if (y < 0 || !take(text, '-')) return std::nullopt;
  const int mo = digits(text, 2);
  if (mo < 0 || !take(text, '-')) return std::nullopt;
  const int d = digits(text, 2);
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)}, day{static_cast<unsigned>(d)}};
  if (d < 0 || !date.ok() || !take(text, 'T')) return std::nullopt;
  const int h = digits(text, 2);
  if (h < 0 || h > 23 || !take(text, ':')) return std::nullopt;
  const int mi = digits(text, 2);
  if (mi < 0 || mi > 59 || !take(text, ':')) return std::nullopt;
  const int s = digits(text, 2);
  if (s < 0 || s > 60) return std::nullopt;
  std::int64_t ms = 0;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    int scale = 100;
    if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
    for (int one = 0; (one = digits(text, 1)) >= 0; scale /= 10) ms += one * scale;
  }
  std::int64_t shift = 0;
  if (!take(text, 'Z')) {
    if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
    const int sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
    const int oh = digits(text, 2);
    if (oh < 0 || oh > 23 || !take(text, ':')) return std::nullopt;
    const int om = digits(text, 2);
    if (om < 0 || om > 59) return std::nullopt;
    shift = sign * (oh * 60 + om);
  }
  if (!text.empty()) return std::nullopt;
  const std::int64_t days = sys_days{date}.time_since_epoch().count();
  return ((days * 24 + h) * 60 + mi - shift) * 60'000 + s * 1000 + ms;
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

}  // namespace earshot
