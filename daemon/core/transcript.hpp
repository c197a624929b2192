// The whole core: bytes in, events out. Total and deterministic: how the bytes were cut, and when they came,
// changes nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/text_filter.hpp"
#include "core/cursor.hpp"
#include "core/event.hpp"
#include "core/stream_state.hpp"

namespace earshot {

/// Parsers and scratch memory. One a thread, shared by all transcripts that are fed there: a transcript at
/// rest owns none.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

 private:
  friend class Transcript;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Bytes that must be readable (not meaningful) after the ones given to feed().
constexpr std::size_t feed_padding = 64;

struct TranscriptOptions {
  std::uint64_t hash_key = 0;  // the host's secret
  std::string own_agent;       // the agent's id for a file named agent-<id>.jsonl; empty for a session
  std::size_t line_bytes_max = 16 << 20;  // a longer line is skipped and told
  const TextFilter* filter =
      nullptr;        // outlives the transcript; cleans what state() keeps only the beginning of
  bool told = false;  // its lines are events of other daemons, and nothing else is read from them
};

/// What was read, for --stats and /metrics. `types` counts records by `type` (or `type/subtype`).
struct RecordCounts {
  std::uint64_t lines = 0, empty_lines = 0, records = 0, skipped_lines = 0, duplicates = 0, late_results = 0,
                events = 0;
  std::uint64_t repaired_lines = 0;     // kept with U+FFFD, or with a number too large for a double
  std::uint64_t undecided_records = 0;  // before any record showed a dialect
  std::map<std::string, std::uint64_t, std::less<>> types;
  std::map<std::string, std::uint64_t, std::less<>> unknown_types;  // a part of types
};

class Transcript {
 public:
  explicit Transcript(TranscriptOptions options);
  ~Transcript();
  Transcript(Transcript&&) noexcept;
  Transcript& operator=(Transcript&&) noexcept;

  /// The next bytes of the file, in any cut. `feed_padding` bytes after them must be readable. Events of each
  /// line that they complete go to `sink` in the file's order, with `state()` as it is after that event's
  /// record. Never throws for content.
  void feed(std::span<const char> bytes, Workspace& workspace, EventSink& sink);

  Cursor end() const;         // after the last whole line and its last event; of no bytes: begin_cursor
  Cursor last_event() const;  // of the last event that was told; none: begin_cursor
  std::uint64_t bytes_read() const;   // of all bytes given, the unterminated tail included
  std::size_t pending_bytes() const;  // of the unterminated tail
  const StreamState& state() const;
  const RecordCounts& counts() const;
  /// The `sessionId` of the lines (the first one seen): names the session of an agent's file that lies beside
  /// it. Empty: none yet.
  const std::string& session_of_lines() const;
  std::size_t memory_bytes() const;  // what this transcript holds, estimated

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace earshot
