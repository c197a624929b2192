// GitHub Copilot CLI behind the interface of agent.hpp.
#pragma once
#include "agents/agent.hpp"

namespace earshot::copilot {

const AgentProgram& program();

}  // namespace earshot::copilot
