// Points in time as milliseconds since 1970-01-01 UTC.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot {

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

/// The system's clock.
std::int64_t now_ms();

}  // namespace earshot
