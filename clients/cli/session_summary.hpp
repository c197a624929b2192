// What a session is doing, in short: its row in the table of `earshot ls`, and descriptions of its tool calls
// and its to-do list.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/display_text.hpp"
#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

/// The command for Bash, the path for Read, the pattern for Grep, … Paths below `project` are relative to it.
/// Displayable; empty if there is no input (the meta view has none).
std::string tool_summary(std::string_view tool, const std::optional<simdjson::dom::element>& input,
                         std::string_view project, Charset charset);

/// Tools that start a subagent, in any program; their call is shown by its agent.started.
bool starts_agent(std::string_view tool);

/// `mcp__github__create_issue` → `github: create_issue`; other names are unchanged. Displayable.
std::string tool_name(std::string_view tool, Charset charset);

/// `3/5` and the item in progress; both empty without a list.
struct TodoSummary {
  std::string progress, current;
  bool complete = false;
};
TodoSummary todo_summary(const Fields& frame, Charset charset);

/// The columns of one session; displayable text.
struct SessionRow {
  std::string state, reason, detail;
  std::string host, program, session, project, turn, tool, todo, context, cost, times, tokens, age, last;
  std::string session_id;        // raw
  std::string project_path;      // raw, decides the colour
  std::int64_t activity_ms = 0;  // by the daemon's clock
  std::optional<double> context_percent;
  bool unseen = false;        // a turn finished, and the user has not looked since
  bool turn_failed = false;   // the last one, and nothing happens since
  bool host_offline = false;  // at a hub: the session's host does not report
  std::string offline_age;    // for how long
  /// `ada:api`, to distinguish hosts.
  std::string project_at_host() const { return host + ":" + project; }
};

SessionRow make_session_row(const Fields& session, Charset charset, std::int64_t now_ms);

/// Waiting sessions first, then working, idle, unknown, ended; within a state the unseen ones, then the
/// latest. There are columns for the host and for the program if there are several.
std::string format_session_table(std::vector<SessionRow> sessions, const DisplayOptions& display);

}  // namespace earshot::cli
