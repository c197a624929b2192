// The small files that Claude Code keeps beside its transcripts. It rewrites them in place: a reader may find
// them empty or incomplete.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "agents/agent.hpp"

namespace earshot::claude_code {

// sessions/<pid>.json
/// The pid in the name of a registry file; absent for other files. `.key` files in that directory are
/// secrets.
std::optional<std::int64_t> registry_pid(std::string_view file_name);
/// Fields of a wrong type are ignored. A missing pid is taken from the name.
std::optional<RegistryEntry> parse_registry_file(std::string_view file_name, std::string_view text);

// agent-<id>.meta.json
SubagentMeta parse_subagent_meta(std::string_view text);

// todos/<session>-agent-<session>.json: an array of {content, status, activeForm?, id?, priority?}
std::optional<std::vector<Todo>> parse_todo_list(std::string_view text);

// tasks/<session>/<n>.json: {id, subject, activeForm?, status}
std::optional<std::uint64_t> todo_number(std::string_view file_name);
/// Absent without a subject.
std::optional<Todo> parse_todo(std::string_view text);

}  // namespace earshot::claude_code
