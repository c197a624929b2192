// Small numbers for what stands in a frame's `type`, so that a filter looks at each name once.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/event.hpp"

namespace earshot::serve {

constexpr std::size_t event_types = std::variant_size_v<EventBody>;

/// Frames that a filter's `type` does not touch: status, session, reset, stream.removed.
constexpr std::uint16_t type_always = event_types;

inline std::uint16_t type_of(const EventBody& body) { return static_cast<std::uint16_t>(body.index()); }

/// The wire's names, by type_of().
const std::array<std::string_view, event_types>& event_type_names();

}  // namespace earshot::serve
