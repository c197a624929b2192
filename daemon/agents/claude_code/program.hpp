#pragma once
#include "agents/agent.hpp"

namespace earshot::claude_code {

/// Claude Code, Anthropic's command-line coding agent.
const AgentProgram& program();

}  // namespace earshot::claude_code
