// Small numbers for what stands in a frame's `type`, so that a filter looks at each name once.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "core/event.hpp"

namespace earshot::serve {

constexpr std::size_t event_types = std::variant_size_v<EventBody>;

/// Frames that a filter's `type` does not touch.
constexpr std::uint16_t type_always = event_types;       // status, session
constexpr std::uint16_t type_reset = event_types + 1;    // a stream's history is another from here on
constexpr std::uint16_t type_removed = event_types + 2;  // a stream is no more
constexpr std::size_t frame_types = event_types + 3;

inline std::uint16_t type_of(const EventBody& body) { return static_cast<std::uint16_t>(body.index()); }

/// The wire's names, by type_of().
const std::array<std::string_view, event_types>& event_type_names();

}  // namespace earshot::serve
