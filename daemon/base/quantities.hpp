// Times, durations, sizes and counts as text and back.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot {

constexpr std::chrono::milliseconds duration_max = std::chrono::hours(24) * 36'500;

/// One or more whole numbers with a unit: `250ms`, `30s`, `5m`, `1h30m`, `24h`, `7d`, `2w`; `0` needs no
/// unit. Nothing for other text and for more than `max`.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text,
                                                        std::chrono::milliseconds max = duration_max);

/// The shortest text that parse_duration() reads as the same duration: `0s`, `500ms`, `1m30s`, `1d12h`. For
/// configuration.
std::string duration_literal(std::chrono::milliseconds duration);

/// Rounded, for display: `12ms`, `0.6s`, `31.9s`, `2m05s`, `1h02m`, `3d04h`. Negative durations are `0ms`.
std::string format_duration(std::chrono::milliseconds duration);

/// In one unit, rounded down: `3s`, `5m`, `2h`, `4d`. Negative ages are `0s`.
std::string format_age(std::chrono::milliseconds age);

/// A whole number of bytes: `512`, `512B`, `64KiB`, `20GiB` (powers of 1024), `5MB` (powers of 1000).
std::optional<std::uint64_t> parse_size(std::string_view text);

/// In the largest binary unit that divides it: `20GiB`, `1000B`. For configuration.
std::string size_literal(std::uint64_t bytes);

/// For display, in powers of ten: `812 B`, `4.5 kB`, `12.3 MB`.
std::string format_bytes(std::uint64_t bytes);

/// For display: `999`, `1.0k`, `12.3k`, `123k`, `4.5M`.
std::string format_count(std::uint64_t count);

/// With a comma between groups of three digits: `1,234,567`.
std::string format_grouped(std::uint64_t number);

/// Parses an RFC 3339 time; digits beyond milliseconds are dropped. Nothing if it is malformed or not a date
/// of the calendar.
std::optional<std::int64_t> parse_time(std::string_view text);

/// `2026-11-21T20:29:58.983Z`. The year must be between 0 and 9999.
std::string format_time(std::int64_t ms);

/// The same, but empty for 0 (not known), negative values and years after 9999: for times that another
/// program wrote.
std::string format_time_if_valid(std::int64_t ms);

/// `14:03:07` in the local time zone.
std::string format_local_clock(std::int64_t ms);

/// `Tue 24 Nov 2026` in the local time zone.
std::string format_local_day(std::int64_t ms);

/// A calendar day of the local time zone: from `begin` up to, not including, `end`, in ms since 1970.
struct LocalDay {
  std::int64_t begin = 0, end = 0;
  friend bool operator==(const LocalDay&, const LocalDay&) = default;
};

/// The day that contains `ms`. It has 23 to 25 hours where clocks change. Days are remembered: a change of
/// the system's zone while the program runs counts for others.
LocalDay local_day(std::int64_t ms);

/// The system's clock.
std::int64_t now_ms();

}  // namespace earshot
