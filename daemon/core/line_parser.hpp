// Lines of a transcript → values. Accepts exactly what simdjson's DOM accepts, and reads the same: lines are
// walked over an index of a whole chunk, and the DOM decides about those that the walk is in doubt about.
#pragma once
#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/line_index.hpp"
#include "core/line_scan.hpp"
#include "core/line_value.hpp"

namespace earshot {

/// Memory: an index (LineIndex) and, once a line needed it, a DOM parser of up to 10 bytes per byte of the
/// line. Repaired lines have an index of their own. What a line longer than a chunk needed is freed after it.
class LineParser {
 public:
  static constexpr std::size_t chunk_bytes_max = 256 << 10;

  enum class Kind {
    blank,
    object,
    other,    // JSON, but no object
    refused,  // not JSON, nested too deeply, or a number does not fit a double or 64 bits
  };
  /// The value is that of an object; valid until the next line is parsed, or the next chunk begins.
  struct Parsed {
    Kind kind = Kind::refused;
    Value value = {};
  };

  explicit LineParser(LineScanner::Kernel kernel = LineScanner::fastest_kernel()) : index_(kernel) {}

  /// Prepares a chunk of whole lines, each with its LF, of at most chunk_bytes_max bytes, that stays in
  /// place; scan_padding bytes after it are readable. False: parse each line on its own.
  bool begin_chunk(std::string_view lines);
  /// The offsets of the chunk's LFs.
  const std::vector<std::uint32_t>& line_ends() const;
  /// Parses the chunk's next line, which ends at `line_end`; `line` is its text, with or without the LF.
  Parsed next_line(std::string_view line, std::uint32_t line_end);
  /// The values of a chunk's lines stay valid until the next chunk begins.
  void keep_values() { keeps_values_ = true; }
  void skip_line(std::uint32_t line_end);

  /// Parses one line, with its LF; scan_padding bytes after it are readable. Ends the chunk.
  Parsed parse(std::string_view line);
  /// Parses a line made by repair_json(): one more level than the DOM permits, and any number. The chunk
  /// continues.
  Parsed parse_repaired(std::string_view line);

  /// Frees what only a line longer than a chunk needs.
  void release_long();

 private:
  // What the DOM decides about the line that begins with the index's entry `root`.
  Parsed decide(std::string_view line, std::uint32_t line_end, std::uint32_t root);

  LineIndex index_;
  bool keeps_values_ = false;
  std::unique_ptr<simdjson::dom::parser> dom_;  // created when a line needs it
  std::unique_ptr<LineIndex> repaired_;         // created when a line needs it
};

}  // namespace earshot
