// Lines and files of every agent program for the simulated one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "agents/agent.hpp"
#include "machine.hpp"

namespace earshot::sim {

/// Writes transcripts as one program does, not always in an order that it would use.
class Records {
 public:
  Records(const AgentProgram& program, std::string root) : program_(program), root_(std::move(root)) {}

  /// One line with its LF, or several.
  std::string line(Random& random);
  /// A directory of transcripts.
  std::string directory(Random& random) const;
  /// A transcript, often of another directory's name.
  std::string path(Random& random) const;

 private:
  std::string claude_code_line(Random& random);

  const AgentProgram& program_;
  const std::string root_;
  std::uint64_t lines_ = 0, calls_ = 0;
};

}  // namespace earshot::sim
