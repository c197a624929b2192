#include "agents/claude_code/program.hpp"

#include "agents/claude_code/reader.hpp"

namespace earshot::claude_code {
namespace {

class ClaudeCode final : public AgentProgram {
 public:
  std::string_view program() const override { return program_name; }
  const RecordReader& reader() const override { return claude_code::reader(); }
};

}  // namespace

const AgentProgram& program() {
  static const ClaudeCode claude_code;
  return claude_code;
}

}  // namespace earshot::claude_code
