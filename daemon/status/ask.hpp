// What a waiting session asks about: its newest open call that can be asked about, in one line.
#pragma once
#include <cstddef>
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

/// The newest open call that a person could be asked to permit; null: none. Launchers and lists are not.
const OpenCall* newest_askable(const std::vector<OpenCall>& calls);

/// `approve Bash: <command>`, `approve <tool>`, the question's text, `plan: <first line>`.
std::string detail_of(const OpenCall& call);

}  // namespace earshot::status
