// What the daemon knows about one agent program. Pure: paths and bytes in, values out. A program is added by
// one directory and one line in agents.cpp (README.md).
#pragma once
#include <span>
#include <string_view>

#include "core/record_reader.hpp"

namespace earshot {

/// Stateless and thread-safe; lives as long as the process.
class AgentProgram {
 public:
  virtual ~AgentProgram() = default;

  /// The name on the wire and in configuration: `claude-code`.
  virtual std::string_view program() const = 0;

  // reader
  /// Dialect detection and record → facts, for every transcript of this program.
  virtual const RecordReader& reader() const = 0;
};

/// All programs, in the order in which they are probed.
std::span<const AgentProgram* const> agent_programs();

/// The program of this name; null: unknown.
const AgentProgram* find_agent_program(std::string_view program);

}  // namespace earshot
