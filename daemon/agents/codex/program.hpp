// Codex CLI behind the interface of agent.hpp.
#pragma once
#include "agents/agent.hpp"

namespace earshot::codex {

const AgentProgram& program();

}  // namespace earshot::codex
