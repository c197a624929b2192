// Parsers of values in rules: comparisons and quiet hours.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::notifier {

/// The longest duration that a rule may contain.
constexpr std::chrono::milliseconds rule_duration_max = std::chrono::hours(24) * 366;

/// A comparison with a number: `>30s`, `>=1m`, `<5`, `=0`. A bare number means "at least".
struct Comparison {
  enum class Operator { less, at_most, equal, at_least, more };
  Operator op = Operator::at_least;
  double number = 0;
  bool holds(double value) const;
};
std::optional<Comparison> parse_duration_comparison(std::string_view text);  // in milliseconds
std::optional<Comparison> parse_number_comparison(std::string_view text);
/// "more than", "at least", …
std::string_view operator_text(Comparison::Operator op);

/// A local time of the week.
struct LocalTime {
  int weekday = 0;  // 0: Monday
  int minute = 0;   // of the day
};

/// Hours without notices: `22:00-07:00`, `sat,sun`, `mon-fri 22:00-07:00`. A range over midnight belongs to
/// the day on which it begins.
struct QuietHours {
  std::uint8_t days = 0x7f;  // bit 0: Monday
  int from = 0, to = 24 * 60;
  bool holds(LocalTime now) const;
};
std::optional<QuietHours> parse_quiet_hours(std::string_view text);

}  // namespace earshot::notifier
