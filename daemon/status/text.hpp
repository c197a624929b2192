// Times and words as a status shows them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace earshot::status {

/// `2026-01-31T09:30:00.123Z`; empty for 0 and for what no calendar holds.
std::string rfc3339(std::int64_t ms);

/// At most `bytes_max` of UTF-8, cut on a character boundary; control characters (C0, DEL, C1) are spaces.
std::string one_line(std::string_view text, std::size_t bytes_max);

}  // namespace earshot::status
