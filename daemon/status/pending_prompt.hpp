// What a waiting session asks about: its newest open call that can be asked about, in one line.
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "status/status.hpp"

namespace earshot::status {

constexpr std::size_t detail_bytes_max = 200;  // longer is cut on a character boundary

/// question for AskUserQuestion, plan for ExitPlanMode; empty for every other tool.
std::string_view asking_reason(const OpenCall& call);

/// The newest open question or plan; null: none.
const OpenCall* newest_asking(const std::vector<OpenCall>& calls);

/// The open calls that a person could be asked to permit now: no launchers, no lists, none that was
/// `answered` in an earlier wait. The transcript does not say which of several it is.
std::vector<const OpenCall*> askable(const std::vector<OpenCall>& calls,
                                     const std::set<std::string>& answered);

/// `approve Bash: <command>`, `approve <tool>`, the question's text, `plan: <first line>`.
std::string detail_of(const OpenCall& call);

/// The same of several of which one is asked about: `approve one of 2: Write: <file_path>; Bash: <command>`,
/// newest first.
std::string detail_of(const std::vector<const OpenCall*>& calls);

}  // namespace earshot::status
