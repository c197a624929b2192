// Sessions of each dialect from a grammar (grammar.hpp), so that mutations stay records: split invariance,
// paired turns and calls, growing cursors, valid JSON. Input: dialect and split, main or agent file, then
// records.
#include "agents/agent.hpp"
#include "grammar.hpp"
#include "transcript_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  fuzz::Input input(data, size);
  const std::uint64_t seed = input.byte();
  const std::size_t dialect = seed < 128 ? seed % 4 : 4 + seed % 3;
  constexpr const char* programs[] = {"codex", "copilot", "pi"};
  const AgentProgram& program = dialect < 4 ? default_program() : *find_agent_program(programs[dialect - 4]);
  TranscriptOptions options;
  options.reader = &program.reader();
  options.hash_key = 0x5eed;
  if (input.byte() & 1 && dialect < 4) options.own_agent = "abc";
  const std::string bytes = fuzz::session(input, dialect);

  const fuzz::Run whole = fuzz::run(options, bytes, 0, seed);
  fuzz::require_sound(whole, options, bytes);
  fuzz::require_same(whole, fuzz::run(options, bytes, seed & 4 ? 16 : 4096, seed));
  return 0;
}
