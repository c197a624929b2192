// Points in time as users type them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace earshot::cli {

/// `90s`, `10m`, `1h30m`, `3d`: that long before `now_ms`; `14:03[:07]`: the last such time of day;
/// `2026-11-24`, `2026-11-24 14:03[:07]`: local time; or RFC 3339 with a zone. Milliseconds since 1970;
/// nothing for other text.
std::optional<std::int64_t> parse_since(std::string_view text, std::int64_t now_ms);

}  // namespace earshot::cli
