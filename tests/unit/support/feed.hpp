// A transcript under test: accepts bytes and keeps the events as text.
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
                TranscriptOptions options = {});  // each line in one write

  /// Feeds the next bytes in one piece. The padding after them has hostile content and ends at the allowed
  /// place.
  Feed& write(std::string_view bytes);
  Feed& write(std::string_view bytes, Workspace& workspace);
  /// Feeds bytes one by one, or in pieces of random sizes.
  Feed& write_bytewise(std::string_view bytes);
  Feed& write_cut(std::string_view bytes, std::uint64_t seed, std::size_t piece_bytes_max);

  /// The encoded events, of host h, stream s, session t.
  const Lines& events() const { return events_; }
  /// One line per event, `type turn[@agent] values…`; session and usage events are left out.
  Lines summary() const;
  /// The given fields of the events of one type or, for a prefix such as "tool.", of several; `-` if absent.
  Lines fields(std::string_view type, std::initializer_list<std::string_view> fields) const;
  std::size_t count(std::string_view type) const;

  const std::vector<Cursor>& cursors() const { return cursors_; }
  const std::string& bytes() const { return bytes_; }
  const Transcript& transcript() const { return transcript_; }
  const StreamState& state() const { return transcript_.state(); }
  const RecordCounts& counts() const { return transcript_.counts(); }

  void on_event(const Event& event) override;

 private:
  Transcript transcript_;
  std::string bytes_;  // all bytes so far
  Lines events_;
  std::vector<Cursor> cursors_;
};

/// One field of an encoded event: text as it is, other values as JSON; `-` if absent.
std::string field(std::string_view event, std::string_view name);

/// Lines as one text. Unlike `+`, the list is evaluated from left to right.
std::string joined(std::initializer_list<std::string> lines);

}  // namespace earshot::test
