// Any bytes, cut anywhere, give the events that they give in one piece, and the marks of their prefixes.
// The first eight bytes choose the cuts and whose file it is; the rest is the file.
#include "agents/claude_code/reader.hpp"
#include "fuzz.hpp"
#include "told.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  if (size < 8) return 0;
  fuzz::Input input(data, size);
  const std::uint64_t seed = input.word();
  const std::string_view bytes = input.rest();
  TranscriptOptions options;
  options.reader = &claude_code::reader();
  options.hash_key = 0x5eed;
  options.line_bytes_max = 1024 + seed % 4096;
  if (seed & 1) options.own_agent = "abc";

  const fuzz::Told whole = fuzz::told(options, bytes, 0, seed);
  fuzz::require_sound(whole, options, bytes);
  fuzz::require_same(whole, fuzz::told(options, bytes, seed & 4 ? 8 : 512, seed));
  return 0;
}
