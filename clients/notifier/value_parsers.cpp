#include "notifier/value_parsers.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::notifier {
namespace {

constexpr int day_minutes = 24 * 60;

constexpr std::array<std::string_view, 7> weekdays{"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 1e15))
    return std::nullopt;
  return value;
}

template <class Parse>
std::optional<Comparison> parse_comparison(std::string_view text, Parse parse) {
  struct Sign {
    std::string_view sign;
    Comparison::Operator op;
  };
  using Operator = Comparison::Operator;
  constexpr Sign signs[] = {{"<=", Operator::at_most}, {">=", Operator::at_least}, {"==", Operator::equal},
                            {"<", Operator::less},     {">", Operator::more},      {"=", Operator::equal}};
  Comparison comparison;
  text = trim(text);
  for (const Sign& each : signs) {
    if (!text.starts_with(each.sign)) continue;
    comparison.op = each.op;
    text = trim(text.substr(each.sign.size()));
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
  const auto parse_digits = [](std::string_view digits, int& value) {
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  };
  if (!parse_digits(text.substr(0, colon), hour) || !parse_digits(text.substr(colon + 1), minute))
    return std::nullopt;
  const int minutes = hour * 60 + minute;
  if (hour < 0 || minute < 0 || minute > 59 || minutes > day_minutes) return std::nullopt;
  return minutes;
}

}  // namespace

bool Comparison::holds(double value) const {
  switch (op) {
    case Operator::less:
      return value < number;
    case Operator::at_most:
      return value <= number;
    case Operator::equal:
      return value == number;
    case Operator::at_least:
      return value >= number;
    case Operator::more:
      return value > number;
  }
  return false;
}

std::optional<Comparison> parse_duration_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) -> std::optional<std::int64_t> {
    const auto duration = parse_duration(rest, rule_duration_max);
    if (!duration) return std::nullopt;
    return duration->count();
  });
}

std::optional<Comparison> parse_number_comparison(std::string_view text) {
  return parse_comparison(text, [](std::string_view rest) {
    if (rest.starts_with('$')) rest.remove_prefix(1);
    return parse_number(rest);
  });
}

std::string_view operator_text(Comparison::Operator op) {
  using Operator = Comparison::Operator;
  switch (op) {
    case Operator::less:
      return "less than";
    case Operator::at_most:
      return "at most";
    case Operator::equal:
      return "exactly";
    case Operator::at_least:
      return "at least";
    case Operator::more:
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
  text = trim(text);
  QuietHours hours;
  const std::size_t space = text.find(' ');
  const bool has_clock = text.find(':') != text.npos;
  if (space != text.npos || !has_clock) {
    const auto days = parse_days(text.substr(0, space));
    if (!days) return std::nullopt;
    hours.days = *days;
    if (!has_clock && space == text.npos) return hours;
    text = trim(text.substr(space));
  }
  const std::size_t dash = text.find('-');
  if (dash == text.npos) return std::nullopt;
  const auto from = parse_clock(trim(text.substr(0, dash)));
  const auto to = parse_clock(trim(text.substr(dash + 1)));
  if (!from || !to || *from == *to || *from == day_minutes) return std::nullopt;
  hours.from = *from;
  hours.to = *to;
  return hours;
}

}  // namespace earshot::notifier
