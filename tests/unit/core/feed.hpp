// A transcript under test: bytes go in, and what was told comes out as text that a test can compare.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_json.hpp"
#include "core/transcript.hpp"

namespace earshot::test {

using Lines = std::vector<std::string>;

/// Defaults, with the reader of Claude Code.
TranscriptOptions claude_code_options();

class Feed final : public EventSink {
 public:
  explicit Feed(TranscriptOptions options = {});
  explicit Feed(std::initializer_list<std::string> lines,
                TranscriptOptions options = {});  // each written at once

  /// The next bytes, in one piece. What lies behind them in memory is hostile on purpose, and ends where it
  /// may end.
  Feed& write(std::string_view bytes);
  /// The same bytes in pieces: one by one, or cut at places that `seed` chooses.
  Feed& write_bytewise(std::string_view bytes);
  Feed& write_cut(std::string_view bytes, std::uint64_t seed, std::size_t piece_bytes_max);

  /// Each event as the wire shows it, of host h, stream s, session t.
  const Lines& events() const { return events_; }
  /// Each event in short: `type turn[@agent] values…`, the fields that tell types apart; sessions' and
  /// usage's are left out.
  Lines story() const;
  /// Of the events of one type, or of several with one beginning ("tool."), the fields asked for; `-` where
  /// one is absent.
  Lines told(std::string_view type, std::initializer_list<std::string_view> fields) const;
  std::size_t count(std::string_view type) const;

  const std::vector<Cursor>& cursors() const { return cursors_; }
  const std::string& bytes() const { return bytes_; }
  const Transcript& transcript() const { return transcript_; }
  const StreamState& state() const { return transcript_.state(); }
  const RecordCounts& counts() const { return transcript_.counts(); }

  void on_event(const Event& event) override;

 private:
  Transcript transcript_;
  std::string bytes_;  // all that was written
  Lines events_;
  std::vector<Cursor> cursors_;
};

/// One field of an event that append_event wrote: text as it is, other values as JSON; `-` when absent.
std::string field(std::string_view event, std::string_view name);

/// Lines as one text. The list is evaluated from left to right, as `+` is not.
std::string joined(std::initializer_list<std::string> lines);

}  // namespace earshot::test
