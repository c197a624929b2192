// Pi (`pi-coding-agent`) behind the interface of agent.hpp.
#pragma once
#include "agents/agent.hpp"

namespace earshot::pi {

const AgentProgram& program();

}  // namespace earshot::pi
