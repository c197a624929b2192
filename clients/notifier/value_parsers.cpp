#include "notifier/value_parsers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <numeric>

namespace earshot::notifier {
namespace {

constexpr std::int64_t duration_ms_max = 366LL * 24 * 3600 * 1000;
constexpr int day_minutes = 24 * 60;

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr Unit units[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

constexpr std::array<std::string_view, 7> weekdays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1e15))
    return std::nullopt;
  return value;
}

std::size_t character_bytes(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) ++size;
  return size;
}

template <class Parse>
std::optional<Comparison> parse_comparison(std::string_view text, Parse parse) {
  struct Sign {
    std::string_view sign;
    Comparison::How how;
  };
  using How = Comparison::How;
  constexpr Sign signs[] = {{"<=", How::at_most}, {">=", How::at_least}, {"==", How::equal},
                            {"<", How::less},     {">", How::more},      {"=", How::equal}};
  Comparison comparison;
  text = trimmed(text);
  for (const Sign& each : signs) {
    if (!text.starts_with(each.sign)) continue;
    comparison.how = each.how;
    text = trimmed(text.substr(each.sign.size()));
    break;
  }
  const auto number = parse(text);
  if (!number) return std::nullopt;
  comparison.number = static_cast<double>(*number);
  return comparison;
}

std::optional<int> parse_weekday(std::string_view text) {
  const auto found = std::find(weekdays.begin(), weekdays.end(), text);
  if (found == weekdays.end()) return std::nullopt;
  return static_cast<int>(found - weekdays.begin());
}

// `mon`, `mon-fri`, `fri-mon`: bits.
std::optional<std::uint8_t> parse_days(std::string_view text) {
  unsigned days = 0;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t dash = part.find('-');
    const auto first = parse_weekday(part.substr(0, dash));
    const auto last = dash == part.npos ? first : parse_weekday(part.substr(dash + 1));
    if (!first || !last) return std::nullopt;
    for (int day = *first;; day = (day + 1) % 7) {
      days |= 1U << day;
      if (day == *last) break;
    }
  }
  if (days == 0) return std::nullopt;
  return static_cast<std::uint8_t>(days);
}

// `22:00`, `7:30`, `24:00`.
std::optional<int> parse_clock(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon == 0 || colon > 2 || text.size() != colon + 3) return std::nullopt;
  int hour = 0, minute = 0;
  const auto whole = [](std::string_view digits, int& value) {
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  };
  if (!whole(text.substr(0, colon), hour) || !whole(text.substr(colon + 1), minute)) return std::nullopt;
  const int minutes = hour * 60 + minute;
  if (hour < 0 || minute < 0 || minute > 59 || minutes > day_minutes) return std::nullopt;
  return minutes;
}

}  // namespace

std::optional<std::int64_t> parse_duration(std::string_view text) {
  text = trimmed(text);
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  std::int64_t total = 0;
  while (!text.empty()) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > duration_ms_max) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::size_t letters = std::min(text.find_first_not_of("dhms"), text.size());
    const auto unit = std::find_if(std::begin(units), std::end(units),
                                   [&](const Unit& each) { return each.name == text.substr(0, letters); });
    if (unit == std::end(units) || value > duration_ms_max / unit->ms) return std::nullopt;
    text.remove_prefix(letters);
    total += value * unit->ms;
    if (total > duration_ms_max) return std::nullopt;
  }
  return total;
}

std::string say_duration(std::int64_t ms) {
  std::string text;
  for (const Unit& unit : units) {
    if (ms < unit.ms) continue;
    text += std::to_string(ms / unit.ms);
    text += unit.name;
    ms %= unit.ms;
  }
  return text.empty() ? "0s" : text;
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == '?') {
      ++p;
      t += character_bytes(text.substr(t));
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      retry += character_bytes(text.substr(retry));
      t = retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool Comparison::holds(double value) const {
  switch (how) {
    case How::less:
      return value < number;
    case How::at_most:
      return value <= number;
    case How::equal:
      return value == number;
    case How::at_least:
      return value >= number;
    case How::more:
      return value > number;
  }
  return false;
}

std::optional<Comparison> parse_duration_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) { return parse_duration(rest); });
}

std::optional<Comparison> parse_number_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) {
    if (rest.starts_with('$')) rest.remove_prefix(1);
    return parse_number(rest);
  });
}

std::string_view say_how(Comparison::How how) {
  using How = Comparison::How;
  switch (how) {
    case How::less:
      return "less than";
    case How::at_most:
      return "at most";
    case How::equal:
      return "exactly";
    case How::at_least:
      return "at least";
    case How::more:
      return "more than";
  }
  return {};
}

bool QuietHours::holds(LocalTime now) const {
  const auto on = [&](int weekday) { return (days >> weekday & 1) != 0; };
  if (from < to) return on(now.weekday) && now.minute >= from && now.minute < to;
  return (on(now.weekday) && now.minute >= from) || (on((now.weekday + 6) % 7) && now.minute < to);
}

std::optional<QuietHours> parse_quiet_hours(std::string_view text) {
  text = trimmed(text);
  QuietHours hours;
  const std::size_t space = text.find(' ');
  const bool has_clock = text.find(':') != text.npos;
  if (space != text.npos || !has_clock) {
    const auto days = parse_days(text.substr(0, space));
    if (!days) return std::nullopt;
    hours.days = *days;
    if (!has_clock && space == text.npos) return hours;
    text = trimmed(text.substr(space));
  }
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  const auto from = parse_clock(trimmed(text.substr(0, dash)));
  const auto to = parse_clock(trimmed(text.substr(dash + 1)));
  if (!from || !to || *from == *to || *from == day_minutes) return std::nullopt;
  hours.from = *from;
  hours.to = *to;
  return hours;
}

std::string_view most_like(std::string_view word, const std::vector<std::string_view>& known) {
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row.back();
  };
  std::string_view best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d >= best_distance) continue;
    best = candidate;
    best_distance = d;
  }
  return best;
}

}  // namespace earshot::notifier
