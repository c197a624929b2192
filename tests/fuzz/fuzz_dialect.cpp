// Sessions of each dialect, written by a grammar (grammar.hpp) so that mutations stay records: cut anywhere
// they tell the same, turns and calls pair, cursors grow, every event is JSON.
// The first byte is the dialect and how it is cut, the second whose file it is; then records.
#include "agents/claude_code/reader.hpp"
#include "grammar.hpp"
#include "told.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  fuzz::Input input(data, size);
  const std::uint64_t seed = input.byte();
  TranscriptOptions options;
  options.reader = &claude_code::reader();
  options.hash_key = 0x5eed;
  if (input.byte() & 1) options.own_agent = "abc";
  const std::string bytes = fuzz::session(input, seed % 4);

  const fuzz::Told whole = fuzz::told(options, bytes, 0, seed);
  fuzz::require_sound(whole, options, bytes);
  fuzz::require_same(whole, fuzz::told(options, bytes, seed & 4 ? 16 : 4096, seed));
  return 0;
}
