// Sessions at a glance: the table of `earshot ls`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/look.hpp"
#include "common/frame.hpp"

namespace earshot::cli {

using namespace common;

/// What a session's row says; everything printable.
struct Overview {
  std::string state, reason, detail;
  std::string host, session, project, turn, tool, todo, tokens, age, last;
  std::string project_path;  // raw: its colour
  std::int64_t activity_ms = 0;
  bool is_away = false;  // at a hub: its host is not heard any more
  std::string away;      // for how long
  /// `ada:api`, where it stands beside another host's.
  std::string project_at_host() const { return host + ":" + project; }
};

/// What a status of a hub says of a host that it does not hear any more: it was last heard at `since`.
bool says_away(const Fields& status);

Overview overview_of(const Fields& session, Charset charset, std::int64_t now_ms);

/// Waiting ones first, then working, idle, unknown, ended; the most recent first. Hosts are a column where
/// there are several.
std::string overview_table(std::vector<Overview> sessions, const Look& look);

}  // namespace earshot::cli
