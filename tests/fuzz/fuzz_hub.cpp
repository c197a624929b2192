// What hosts publish may be anything: a hub's file of it, cut anywhere, gives the events that it gives in one
// piece; a line is a frame or none; and what is made to fit is an event that fits.
// The first eight bytes choose the cuts; the rest is the file.
#include <algorithm>

#include "fuzz.hpp"
#include "team/payload.hpp"
#include "team/relayed_reader.hpp"
#include "told.hpp"

namespace {

/// What an event's heads alone take; 0: it is no object.
std::size_t head_bytes(const std::string& line) {
  static simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(simdjson::padded_string(line)).get(object)) return 0;
  std::size_t bytes = 2;
  for (const auto field : object)
    if (earshot::team::is_head(field.key))
      bytes += field.key.size() + simdjson::minify(field.value).size() + 4;
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  if (size < 8) return 0;
  fuzz::Input input(data, size);
  const std::uint64_t seed = input.word();
  const std::string_view bytes = input.rest();
  TranscriptOptions options;
  options.hash_key = 0x5eed;
  options.line_bytes_max = 1024 + seed % 4096;
  options.reader = &relayed_reader();
  const fuzz::Told whole = fuzz::told(options, bytes, 0, seed);
  fuzz::require_same(whole, fuzz::told(options, bytes, seed & 4 ? 8 : 512, seed));

  fuzz::Input lines(data + 8, size - 8);
  while (!lines.done()) {
    const std::string line(lines.until('\n'));
    const auto frame = team::read_frame(line);
    const std::size_t bytes_max = 512 + seed % 512;
    const std::string cut = team::fit(line, bytes_max);
    if (!frame) continue;
    fuzz::require(cut.size() <= std::max(bytes_max, head_bytes(line)), "what was made to fit fits");
    fuzz::require(fuzz::is_json(cut), "what was made to fit is JSON");
    const bool is_short = frame->type.size() <= 32;  // as all types are
    if (is_short) fuzz::require(team::read_frame(cut).has_value(), "what was made to fit is a frame");
  }
  return 0;
}
