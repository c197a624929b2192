// Sessions at a glance: the table of `earshot ls`.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/look.hpp"
#include "link/frame.hpp"

namespace earshot::cli {

using namespace link;

/// What a session's row says; everything printable.
struct Overview {
  std::string state, reason, detail;
  std::string host, session, project, turn, tool, todo, tokens, age, last;
  std::string project_path;  // raw: its colour
  std::int64_t activity_ms = 0;
};

Overview overview_of(const Fields& session, Charset charset, std::int64_t now_ms);

/// Waiting ones first, then working, idle, unknown, ended; the most recent first. Hosts are a column where
/// there are several.
std::string overview_table(std::vector<Overview> sessions, const Look& look);

}  // namespace earshot::cli
