// Sessions at a glance: the table of `earshot ls`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/style.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

/// What a session's row says; everything printable.
struct SessionRow {
  std::string state, reason, detail;
  std::string host, session, project, turn, tool, todo, tokens, age, last;
  std::string project_path;  // raw: its colour
  std::int64_t activity_ms = 0;
  bool host_offline = false;  // at a hub: its host is not heard any more
  std::string away;           // for how long
  /// `ada:api`, where it stands beside another host's.
  std::string project_at_host() const { return host + ":" + project; }
};

/// What a status of a hub says of a host that it does not hear any more: it was last heard at `since`.
bool is_host_offline(const Fields& status);

SessionRow make_session_row(const Fields& session, Charset charset, std::int64_t now_ms);

/// Waiting ones first, then working, idle, unknown, ended; the most recent first. Hosts are a column where
/// there are several.
std::string format_session_table(std::vector<SessionRow> sessions, const DisplayOptions& display);

}  // namespace earshot::cli
