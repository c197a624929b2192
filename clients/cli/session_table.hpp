// The table of `earshot ls`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

/// The columns of one session; displayable text.
struct SessionRow {
  std::string state, reason, detail;
  std::string host, session, project, turn, tool, todo, tokens, age, last;
  std::string project_path;  // raw, decides the colour
  std::int64_t activity_ms = 0;
  bool host_offline = false;  // at a hub: the session's host does not report
  std::string offline_age;    // for how long
  /// `ada:api`, to distinguish hosts.
  std::string project_at_host() const { return host + ":" + project; }
};

/// Whether a hub reports that the session's host is offline; `since` is when the host last reported.
bool is_host_offline(const Fields& status);

SessionRow make_session_row(const Fields& session, Charset charset, std::int64_t now_ms);

/// Waiting sessions first, then working, idle, unknown, ended; within a state the latest first. There is a
/// column for the host if there are several.
std::string format_session_table(std::vector<SessionRow> sessions, const DisplayOptions& display);

}  // namespace earshot::cli
