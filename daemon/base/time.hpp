#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace earshot {

/// Milliseconds since 1970 of an RFC 3339 time; nothing when it is none.
std::optional<std::int64_t> parse_time(std::string_view text);

/// `2026-11-21T20:29:58.983Z`
std::string format_time(std::int64_t ms);

}  // namespace earshot
