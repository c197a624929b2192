#include "base/quantities.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>

namespace earshot {
namespace {

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  std::uint64_t value;
};
constexpr Unit duration_units[] = {{"w", 604'800'000}, {"d", 86'400'000}, {"h", 3'600'000},
                                   {"m", 60'000},      {"s", 1000},       {"ms", 1}};
constexpr Unit size_units[] = {
    {"TiB", 1ull << 40}, {"GiB", 1ull << 30}, {"MiB", 1ull << 20},      {"KiB", 1ull << 10},         {"B", 1},
    {"kB", 1000},        {"MB", 1'000'000},   {"GB", 1'000'000'000ull}, {"TB", 1'000'000'000'000ull}};
constexpr std::string_view decimal_digits = "0123456789";

// Takes a whole number with one of `units` off the front. Nothing if there is none or if it exceeds `max`.
template <std::size_t size>
std::optional<std::uint64_t> take_amount(std::string_view& text, const Unit (&units)[size],
                                         std::uint64_t max) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  const std::string_view name = text.substr(0, text.find_first_of(decimal_digits));
  const auto unit =
      std::find_if(std::begin(units), std::end(units), [&](const Unit& each) { return each.name == name; });
  if (unit == std::end(units) || number > max / unit->value) return std::nullopt;
  text.remove_prefix(name.size());
  return number * unit->value;
}

// Two or three significant digits: 1.0k, 99.9k, 100k.
std::string scaled(std::uint64_t value, const char* unit, const std::array<const char*, 4>& larger_units) {
  char text[40];
  if (value < 1000) {
    std::snprintf(text, sizeof text, "%llu%s", static_cast<unsigned long long>(value), unit);
    return text;
  }
  double quotient = static_cast<double>(value) / 1000;
  std::size_t power = 0;
  for (; quotient >= 999.5 && power + 1 < larger_units.size(); ++power) quotient /= 1000;
  std::snprintf(text, sizeof text, quotient < 99.95 ? "%.1f%s" : "%.0f%s", quotient, larger_units[power]);
  return text;
}

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

std::tm local_parts(std::int64_t ms) {
  const auto seconds = static_cast<std::time_t>(ms / 1000 - (ms % 1000 < 0 ? 1 : 0));
  std::tm parts{};
  localtime_r(&seconds, &parts);
  return parts;
}

std::string format_local(std::int64_t ms, const char* format) {
  const std::tm parts = local_parts(ms);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text, milliseconds max) {
  if (text == "0") return milliseconds(0);
  if (text.empty() || max.count() < 0) return std::nullopt;
  const auto max_ms = static_cast<std::uint64_t>(max.count());
  std::uint64_t total_ms = 0;
  while (!text.empty()) {
    const auto amount_ms = take_amount(text, duration_units, max_ms - total_ms);
    if (!amount_ms) return std::nullopt;
    total_ms += *amount_ms;
  }
  return milliseconds(static_cast<std::int64_t>(total_ms));
}

std::string duration_literal(milliseconds duration) {
  std::string text;
  auto rest = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
  for (const Unit& unit : duration_units) {
    if (unit.name == "w" || rest < unit.value) continue;
    text += std::to_string(rest / unit.value);
    text += unit.name;
    rest %= unit.value;
  }
  return text.empty() ? "0s" : text;
}

std::string format_duration(milliseconds duration) {
  const std::int64_t ms = std::max<std::int64_t>(duration.count(), 0);
  char text[40];
  if (ms < 100) {
    std::snprintf(text, sizeof text, "%dms", static_cast<int>(ms));
  } else if (ms < 59'950) {
    std::snprintf(text, sizeof text, "%.1fs", static_cast<double>(ms) / 1000);
  } else if (const long long seconds = ms / 1000 + (ms % 1000 >= 500); seconds < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", seconds / 60, seconds % 60);
  } else if (seconds < 86'400) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", seconds / 3600, seconds / 60 % 60);
  } else {
    std::snprintf(text, sizeof text, "%lldd%02lldh", seconds / 86'400, seconds / 3600 % 24);
  }
  return text;
}

std::string format_age(milliseconds age) {
  const std::int64_t seconds = std::max<std::int64_t>(age.count(), 0) / 1000;
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 86'400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86'400) + "d";
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  if (!text.empty() && text.find_first_not_of(decimal_digits) == text.npos) {
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    return error == std::errc() ? std::optional(bytes) : std::nullopt;
  }
  const auto bytes = take_amount(text, size_units, std::numeric_limits<std::uint64_t>::max());
  return text.empty() ? bytes : std::nullopt;
}

std::string size_literal(std::uint64_t bytes) {
  for (const Unit& unit : size_units)
    if (bytes >= unit.value && bytes % unit.value == 0)
      return std::to_string(bytes / unit.value) + std::string(unit.name);
  return "0B";
}

std::string format_bytes(std::uint64_t bytes) { return scaled(bytes, " B", {" kB", " MB", " GB", " TB"}); }
std::string format_count(std::uint64_t count) { return scaled(count, "", {"k", "M", "G", "T"}); }

std::string format_grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

namespace {

// The form that programs write, `2025-11-04T13:03:07.250Z`, at a fraction of the cost: its bytes are compared
// and multiplied eight at a time. Absent: another form.
std::optional<std::int64_t> parse_common_time(std::string_view text) {
  using namespace std::chrono;
  static constexpr std::string_view form = "0000-00-00T00:00:00.000Z";  // 0: a digit
  constexpr std::size_t words = form.size() / 8;
  if (std::endian::native != std::endian::little || text.size() != form.size()) return std::nullopt;

  // What a byte's difference from the form may be, as the complement to 127.
  constexpr auto limits = [] {
    std::array<std::uint64_t, words> limit{};
    for (std::size_t n = 0; n < form.size(); ++n)
      limit[n / 8] |= std::uint64_t{form[n] == '0' ? 0x7f - 9u : 0x7fu} << n % 8 * 8;
    return limit;
  }();
  constexpr std::uint64_t top_bits = 0x8080'8080'8080'8080;
  std::uint64_t digits[words], bad = 0, pairs[words];
  for (std::size_t n = 0; n < words; ++n) {
    std::uint64_t expected = 0;
    std::memcpy(&digits[n], text.data() + n * 8, 8);
    std::memcpy(&expected, form.data() + n * 8, 8);
    digits[n] ^= expected;
    bad |= ((digits[n] & ~top_bits) + limits[n]) | digits[n];
    pairs[n] = digits[n] * 10 + (digits[n] >> 8);  // in each byte: its digit and the next one
  }
  if (bad & top_bits) return std::nullopt;
  const auto pair = [&](std::size_t at) { return static_cast<unsigned>(pairs[at / 8] >> at % 8 * 8 & 0xff); };
  const unsigned y = pair(0) * 100 + pair(2), mo = pair(5), d = pair(8);
  const unsigned h = pair(11), mi = pair(14), s = pair(17);
  const unsigned ms = pair(20) * 10 + static_cast<unsigned>(digits[2] >> 48 & 0xff);
  if (h > 23 || mi > 59 || s > 60) return std::nullopt;
  const year_month_day date{year{static_cast<int>(y)}, month{mo}, day{d}};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = sys_days{date}.time_since_epoch().count();
  return ((days * 24 + h) * 60 + mi) * 60'000 + s * 1000 + ms;
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  using namespace std::chrono;
  if (const auto common = parse_common_time(text)) return common;
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
std::string format_local_day(std::int64_t ms) {
  std::string text = format_local(ms, "%a %e %b %Y");
  if (const std::size_t padding = text.find("  "); padding != text.npos) text.erase(padding, 1);
  return text;
}

namespace {

LocalDay find_local_day(std::int64_t ms) {
  const std::tm parts = local_parts(ms);
  const auto midnight = [&](int days) {
    std::tm day{};
    day.tm_year = parts.tm_year, day.tm_mon = parts.tm_mon, day.tm_mday = parts.tm_mday + days;
    day.tm_isdst = -1;  // whichever is valid then
    return static_cast<std::int64_t>(std::mktime(&day)) * 1000;
  };
  return {std::min(midnight(0), ms), std::max(midnight(1), ms + 1)};
}

}  // namespace

// mktime() looks at the zone's file in each call.
LocalDay local_day(std::int64_t ms) {
  struct Cached {
    LocalDay day;
    std::string zone;
  };
  thread_local std::array<Cached, 16> cache;
  constexpr std::int64_t day_ms = 86'400'000;
  Cached& cached = cache[static_cast<std::size_t>(ms / day_ms) % cache.size()];
  const char* const named = std::getenv("TZ");
  const std::string_view zone = named ? named : "";
  if (ms < cached.day.begin || ms >= cached.day.end || cached.zone != zone)
    cached = {find_local_day(ms), std::string(zone)};
  return cached.day;
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace earshot
