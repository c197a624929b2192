#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "tail/stream.hpp"

namespace earshot::tail {

constexpr std::size_t meta_bytes_max = 64 << 10;  // a larger `.meta.json` is not read

/// What an `agent-<id>.meta.json` says; fields of other types, and text that is no JSON, say nothing.
AgentMeta parse_meta(std::string_view text);

}  // namespace earshot::tail
