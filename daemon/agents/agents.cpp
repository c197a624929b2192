#include <algorithm>
#include <array>

#include "agents/agent.hpp"
#include "agents/claude_code/program.hpp"
#include "agents/codex/program.hpp"
#include "agents/copilot/program.hpp"
#include "agents/pi/program.hpp"
#include "base/json_rewrite.hpp"
#include "core/line_parser.hpp"

namespace earshot {

std::span<const AgentProgram* const> agent_programs() {
  static const std::array<const AgentProgram*, 4> programs = {
      &claude_code::program(),
      &codex::program(),
      &copilot::program(),
      &pi::program(),
  };
  return programs;
}

const AgentProgram& default_program() { return claude_code::program(); }

const Writers& AgentProgram::writers() const {
  static const Writers by_default;
  return by_default;
}

const Requests& AgentProgram::requests() const {
  static const Requests by_default;
  return by_default;
}

namespace {

const AgentProgram* program_of(const LineParser::Parsed& record) {
  if (record.kind != LineParser::Kind::object) return nullptr;
  for (const AgentProgram* program : agent_programs())
    if (program->format().detect(record.value)) return program;
  return nullptr;
}

LineParser::Parsed parse_padded(LineParser& parser, std::string& text, bool is_repaired) {
  text += '\n';
  text.reserve(text.size() + scan_padding);
  return is_repaired ? parser.parse_repaired(text) : parser.parse(text);
}

}  // namespace

const AgentProgram* detect_program(std::string_view beginning) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (beginning.starts_with(byte_order_mark)) beginning.remove_prefix(byte_order_mark.size());
  LineParser parser;
  for (std::string line; !beginning.empty();) {
    line.assign(beginning.substr(0, beginning.find('\n')));
    const bool is_complete = line.size() < beginning.size();
    beginning.remove_prefix(std::min(line.size() + 1, beginning.size()));
    const LineParser::Parsed parsed = parse_padded(parser, line, false);
    if (const AgentProgram* program = program_of(parsed)) return program;
    if (parsed.kind != LineParser::Kind::refused || !is_complete) continue;
    for (RepairedJson& record : split_line(line).records)  // as the transcript reads it
      if (const AgentProgram* program = program_of(parse_padded(parser, record.text, true))) return program;
  }
  return nullptr;
}

const AgentProgram* find_agent_program(std::string_view program) {
  const auto programs = agent_programs();
  const auto found = std::find_if(programs.begin(), programs.end(),
                                  [&](const AgentProgram* each) { return each->program() == program; });
  return found == programs.end() ? nullptr : *found;
}

}  // namespace earshot
