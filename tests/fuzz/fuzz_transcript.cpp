// Any bytes, read as the program's whose records begin them: split invariance and the invariants of events.
// Input: eight bytes that choose the split and the kind of file, then the file.
#include "agents/agent.hpp"
#include "agents/claude_code/program.hpp"
#include "agents/claude_code/reader.hpp"
#include "transcript_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  if (size < 8) return 0;
  auto [seed, bytes, options] = fuzz::FileInput(data, size, claude_code::format());
  const AgentProgram* const program = detect_program(bytes);
  if (program) options.format = &program->format();
  if (seed & 1 && (!program || program == &claude_code::program())) options.own_agent = "abc";

  const fuzz::Run whole = fuzz::run(options, bytes, 0, seed);
  fuzz::require_sound(whole, options, bytes);
  fuzz::require_same(whole, fuzz::run(options, bytes, seed & 4 ? 8 : 512, seed));
  return 0;
}
