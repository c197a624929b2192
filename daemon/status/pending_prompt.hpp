// What a waiting session asks the user, in one line: its newest open call that needs an answer.
#pragma once
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "status/status.hpp"

namespace earshot::status {

constexpr std::size_t detail_bytes_max = 200;  // longer text is cut between characters

/// `question` for AskUserQuestion, `plan` for ExitPlanMode; empty for every other tool.
std::string_view prompt_reason(const OpenCall& call);

/// The newest open question or plan; null: none.
const OpenCall* newest_prompt(const std::vector<OpenCall>& calls);

/// The open calls that may wait for the user's permission: without tools that need none, and without calls in
/// `answered`, which an earlier wait named. The transcript does not state which of several it is.
std::vector<const OpenCall*> calls_to_approve(const std::vector<OpenCall>& calls,
                                              const std::set<std::string>& answered);

/// `approve Bash: <command>`, `approve <tool>`, the question's text, `plan: <first line>`.
std::string detail_of(const OpenCall& call);

/// For several calls, one of which is pending: `approve one of 2: Write: <file_path>; Bash: <command>`,
/// newest first.
std::string detail_of(const std::vector<const OpenCall*>& calls);

}  // namespace earshot::status
