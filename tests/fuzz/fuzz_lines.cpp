// Line framing against a simple model: line ends, lines that are too long, and prefix hashes, for any split.
// The lines are short and not JSON. Input: the maximum line length, the split, then the file.
#include <set>

#include "agents/claude_code/reader.hpp"
#include "core/cursor.hpp"
#include "fuzz.hpp"
#include "transcript_check.hpp"

namespace {

using namespace earshot;
using fuzz::require;

bool blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

/// The expected result, computed in the simplest way.
struct Model {
  Model(std::string_view bytes, const TranscriptOptions& options) : prefix_hash(options.hash_key) {
    for (std::size_t begin = 0, lf = 0; (lf = bytes.find('\n', begin)) != bytes.npos; begin = lf + 1) {
      const std::string_view line = bytes.substr(begin, lf - begin);
      prefix_hash.add_line(bytes.substr(begin, lf + 1 - begin));
      ends.push_back(lf + 1);
      hashes.push_back(prefix_hash.value());
      std::string_view text = line;
      if (begin == 0 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
      if (line.size() > options.line_bytes_max) {
        too_long.insert(begin);
        too_long_bytes += line.size() + 1;
      } else if (blank(text)) {
        ++empty;
      }
      pending_from = lf + 1;
    }
  }
  PrefixHash prefix_hash;
  std::vector<std::uint64_t> ends, hashes;
  std::set<std::uint64_t> too_long;
  std::uint64_t too_long_bytes = 0, empty = 0, pending_from = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  TranscriptOptions options;
  options.format = &claude_code::format();
  options.hash_key = 0x5eed;
  options.line_bytes_max = input.byte();
  const std::uint64_t seed = input.byte();
  const std::string_view bytes = input.rest();

  const fuzz::Run whole = fuzz::run(options, bytes, 0, seed);
  fuzz::require_sound(whole, options, bytes);
  for (const std::size_t piece_max : {std::size_t{1}, 1 + seed})
    fuzz::require_same(whole, fuzz::run(options, bytes, piece_max, seed));

  const Model model(bytes, options);
  require(whole.end.offset == model.pending_from, "the end is behind the last LF");
  require(whole.counts.empty_lines == model.empty, "blank lines are counted");
  std::uint64_t lines = 0, line_bytes = 0;
  for (const event::LineSkipped& run : whole.skipped) {
    if (run.reason != "too long") continue;
    require(model.too_long.contains(run.line), "a run of long lines begins with one");
    lines += run.lines, line_bytes += run.bytes;
  }
  // A run at the end of the file is not reported yet.
  require(lines <= model.too_long.size() && line_bytes <= model.too_long_bytes, "no line is skipped twice");
  require(whole.counts.skipped_lines >= model.too_long.size(), "every long line is skipped");

  // Any prefix has the same hash as in the transcript: cursors are verified with it.
  PrefixHasher prefix(options.hash_key);
  fuzz::Dice dice(seed);
  for (std::size_t at = 0, line = 0; at < bytes.size();) {
    const std::size_t piece = 1 + dice.below(16);
    prefix.add(bytes.substr(at, piece));
    at += std::min(piece, bytes.size() - at);
    while (line < model.ends.size() && model.ends[line] <= at) ++line;
    require(prefix.value() == (line == 0 ? options.hash_key : model.hashes[line - 1]),
            "the hash of a prefix is that of its complete lines");
  }
  return 0;
}
