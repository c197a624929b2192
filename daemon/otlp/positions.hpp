// What was exported, by stream: the content of the file `otlp.json` in the state directory. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/cursor.hpp"
#include "otlp/span.hpp"

namespace earshot::otlp {

struct Position {
  Cursor exported;                    // events up to here were exported, or have nothing to export
  Cursor anchor;                      // from here on they are read again, see StreamSpans::anchor()
  std::int64_t newest_ms = 0;         // time of the newest event; 0: none has a time
  std::optional<SpanContext> parent;  // of the turn at the anchor
  std::int64_t anchor_ms = 0;         // the last known time up to the anchor; 0: none
  friend bool operator==(const Position&, const Position&) = default;
};

/// True if the events `last` and `next`, which follow each other, show that `exported` is not an event of
/// this transcript: it was rewritten. A cursor contains the hash of all bytes before it. The events of one
/// line may be others: another version of the daemon exported them.
bool is_rewritten(const Cursor& exported, const Cursor& last, const Cursor& next);

class Positions {
 public:
  static constexpr std::size_t streams_max = 8192;  // above it the stream with the oldest event is dropped
  static constexpr std::size_t text_bytes_max = 16 << 20;

  /// Nothing if the text is not one that text() wrote.
  static std::optional<Positions> parse(std::string_view text);
  /// At most text_bytes_max: then without the last streams.
  std::string text() const;

  const Position* find(std::string_view stream) const;
  void set(const std::string& stream, Position position);
  /// Drops streams whose newest event is older: nothing of them would be exported again.
  void drop_before(std::int64_t ms);
  const std::map<std::string, Position, std::less<>>& all() const { return all_; }

 private:
  std::map<std::string, Position, std::less<>> all_;
};

}  // namespace earshot::otlp
