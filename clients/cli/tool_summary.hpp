// Short descriptions of tool calls and to-do lists.
#pragma once
#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/display_text.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

/// The command for Bash, the path for Read, the pattern for Grep, … Paths below `project` are relative to it.
/// Displayable; empty if there is no input (the meta view has none).
std::string tool_summary(std::string_view tool, const std::optional<simdjson::dom::element>& input,
                         std::string_view project, Charset charset);

/// `mcp__github__create_issue` → `github: create_issue`; other names are unchanged. Displayable.
std::string tool_name(std::string_view tool, Charset charset);

/// `3/5` and the item in progress; both empty without a list.
struct TodoSummary {
  std::string progress, current;
  bool complete = false;
};
TodoSummary todo_summary(const Fields& frame, Charset charset);

}  // namespace earshot::cli
