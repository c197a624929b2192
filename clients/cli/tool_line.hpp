// What a tool call is about, in a few words, from its input.
#pragma once
#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/display_text.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

/// `npm test` for Bash, the path for Read, the pattern for Grep, … Paths below `project` are shown without
/// it. Printable; empty when nothing is known (the meta view has no inputs).
std::string tool_summary(std::string_view tool, const std::optional<simdjson::dom::element>& input,
                         std::string_view project, Charset charset);

/// `mcp__github__create_issue` → `github: create_issue`; other names as they are. Printable.
std::string tool_name(std::string_view tool, Charset charset);

/// 3/5 (in ASCII too) and what is being done now; both empty without a list.
struct TodoSummary {
  std::string progress, current;
  bool complete = false;
};
TodoSummary todo_summary(const Fields& frame, Charset charset);

}  // namespace earshot::cli
