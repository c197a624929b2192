#include <algorithm>
#include <array>

#include "agents/agent.hpp"
#include "agents/claude_code/program.hpp"

namespace earshot {

std::span<const AgentProgram* const> agent_programs() {
  static const std::array<const AgentProgram*, 1> programs = {
      &claude_code::program(),
  };
  return programs;
}

const AgentProgram& default_program() { return claude_code::program(); }

const AgentProgram* find_agent_program(std::string_view program) {
  const auto programs = agent_programs();
  const auto found = std::find_if(programs.begin(), programs.end(),
                                  [&](const AgentProgram* each) { return each->program() == program; });
  return found == programs.end() ? nullptr : *found;
}

}  // namespace earshot
