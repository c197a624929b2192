// Numbers, times and names for display. Pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::common {

/// 999, 1.0k, 12.3k, 123k, 4.5M, 1.2G.
std::string format_count(std::uint64_t count);

/// 812 B, 4.5 kB, 12.3 MB, 1.4 GB (powers of ten).
std::string format_bytes(std::uint64_t bytes);

/// 12 ms, 0.4 s, 31.9 s, 2m05s, 1h12m, 3d04h. Negative ones count as none.
std::string format_duration(std::int64_t ms);

/// 3s, 5m, 2h, 4d; what lies in the future is 0s.
std::string format_age(std::int64_t ms);

/// Milliseconds since 1970 of an RFC 3339 time; nothing when it is none.
std::optional<std::int64_t> parse_time(std::string_view text);

/// 14:03:07, in the local time zone.
std::string format_local_clock(std::int64_t ms);

/// Tue 24 Nov 2026, in the local time zone.
std::string format_local_day(std::int64_t ms);

std::int64_t now_ms();

/// The first eight characters of the id of a session or an agent.
std::string_view short_id(std::string_view id);

/// `api` of /home/u/api; `path` itself if it has no component.
std::string_view last_component(std::string_view path);

}  // namespace earshot::common
