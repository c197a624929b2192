// Moments as people type them.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace earshot::cli {

/// `90s`, `10m`, `2h`, `3d` before `now_ms`; `14:03[:07]`: the last time that it was so late here;
/// `2026-11-24`, `2026-11-24 14:03[:07]`: here; or RFC 3339 with a zone. Milliseconds since 1970; nothing
/// when it is none of these.
std::optional<std::int64_t> parse_since(std::string_view text, std::int64_t now_ms);

}  // namespace earshot::cli
