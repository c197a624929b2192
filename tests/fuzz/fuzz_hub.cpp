// A hub's event file with any content: split invariance; each line is a frame or not; a shortened event is
// valid and fits. Input: eight bytes that choose the split, then the file.
#include <algorithm>

#include "team/event_store.hpp"
#include "team/payload.hpp"
#include "transcript_check.hpp"

namespace {

/// The size of an event's common members; 0: not an object.
std::size_t common_bytes(const std::string& line) {
  static simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (parser.parse(simdjson::padded_string(line)).get(object)) return 0;
  std::size_t bytes = 2;
  for (const auto field : object)
    if (earshot::team::is_common_member(field.key))
      bytes += field.key.size() + simdjson::minify(field.value).size() + 4;
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace earshot;
  if (size < 8) return 0;
  const auto [seed, bytes, options] = fuzz::FileInput(data, size, relayed_format());
  const fuzz::Run whole = fuzz::run(options, bytes, 0, seed);
  fuzz::require_same(whole, fuzz::run(options, bytes, seed & 4 ? 8 : 512, seed));

  fuzz::Input lines(data + 8, size - 8);
  while (!lines.done()) {
    const std::string line(lines.until('\n'));
    const auto frame = team::read_frame(line);
    const std::size_t bytes_max = 512 + seed % 512;
    const std::string cut = team::shorten_event(line, bytes_max);
    if (!frame) continue;
    fuzz::require(cut.size() <= std::max(bytes_max, common_bytes(line)), "a shortened event fits");
    fuzz::require(fuzz::is_json(cut), "a shortened event is JSON");
    const bool is_short = frame->type.size() <= 32;  // as all types are
    if (is_short) fuzz::require(team::read_frame(cut).has_value(), "a shortened event is a frame");
  }
  return 0;
}
