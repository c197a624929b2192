// Names for display. Pure functions. Durations, counts, times: base/quantities.hpp.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/quantities.hpp"

namespace earshot::common {

using Ms = std::chrono::milliseconds;

/// The first eight characters of the id of a session or an agent.
std::string_view short_id(std::string_view id);

/// `api` of /home/u/api; `path` itself if it has no component.
std::string_view last_component(std::string_view path);

/// `1 tool`, `2 tools`.
std::string plural(std::uint64_t count, std::string_view noun);

}  // namespace earshot::common
