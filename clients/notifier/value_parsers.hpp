// Parsers of values in rules: comparisons and quiet hours.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::notifier {

/// `500ms`, `30s`, `1m30s`, `2h`, `1d`; `0` too. Milliseconds; nothing when it is none, or longer than 366
/// days.
std::optional<std::int64_t> parse_duration(std::string_view text);

/// As short as it can be said: 0s, 500ms, 30s, 1m30s, 2h.
std::string say_duration(std::int64_t ms);

/// `*` is any number of characters, `?` one character (of UTF-8); nothing else is special.
bool matches_glob(std::string_view pattern, std::string_view text);

/// A comparison with a number: `>30s`, `>=1m`, `<5`, `=0`. A bare number means "at least".
struct Comparison {
  enum class How { less, at_most, equal, at_least, more };
  How how = How::at_least;
  double number = 0;
  bool holds(double value) const;
};
std::optional<Comparison> parse_duration_comparison(std::string_view text);  // in milliseconds
std::optional<Comparison> parse_number_comparison(std::string_view text);
/// "more than", "at least", …
std::string_view say_how(Comparison::How how);

/// A local time of the week.
struct LocalTime {
  int weekday = 0;  // 0: Monday
  int minute = 0;   // of the day
};

/// Hours without notices: `22:00-07:00`, `sat,sun`, `mon-fri 22:00-07:00`. A range over midnight belongs to the
/// day on which it begins.
struct QuietHours {
  std::uint8_t days = 0x7f;  // bit 0: Monday
  int from = 0, to = 24 * 60;
  bool holds(LocalTime now) const;
};
std::optional<QuietHours> parse_quiet_hours(std::string_view text);

/// Which of `known` is most like `word`, by the number of letters to change; for "did you mean".
std::string_view most_like(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace earshot::notifier
