// What was exported, by stream: the content of the file `otlp.json` in the state directory. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/cursor.hpp"
#include "otlp/span.hpp"

namespace earshot::otlp {

struct Position {
  Cursor exported;                    // events up to here were exported, or have nothing to export
  Cursor anchor;                      // from here on they are read again, see StreamSpans::anchor()
  std::int64_t newest_ms = 0;         // time of the newest event; 0: none has a time
  std::optional<SpanContext> parent;  // of the turn at the anchor
  std::int64_t anchor_ms = 0;         // the last known time up to the anchor; 0: none
  std::vector<Cursor> marks = {};     // before `exported`, in their order: see Marks
  friend bool operator==(const Position&, const Position&) = default;
};

class Positions {
 public:
  static constexpr std::size_t streams_max = 8192;  // above it the stream with the oldest event is dropped
  static constexpr std::size_t text_bytes_max = 16 << 20;  // of a text that is read
  static constexpr std::size_t text_bytes_aim = 8 << 20;   // above it a text is written without marks

  /// Nothing if the text is not one that text() wrote.
  static std::optional<Positions> parse(std::string_view text);
  /// At most text_bytes_max: then without the last streams.
  std::string text() const;

  const Position* find(std::string_view stream) const;
  void set(const std::string& stream, Position position);
  void remove(std::string_view stream);
  /// Drops streams whose newest event is older: nothing of them would be exported again.
  void drop_before(std::int64_t ms);
  const std::map<std::string, Position, std::less<>>& all() const { return all_; }

 private:
  std::string text(bool with_marks) const;

  std::map<std::string, Position, std::less<>> all_;
};

}  // namespace earshot::otlp
