// The whole core: bytes in, events out. Total and deterministic: the output depends on the bytes alone, not
// on how or when they were fed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/text_filter.hpp"
#include "core/cursor.hpp"
#include "core/event.hpp"
#include "core/record_counts.hpp"
#include "core/record_reader.hpp"
#include "core/stream_state.hpp"

namespace earshot {

/// Parsers and scratch memory. One per thread, shared by all transcripts fed there; an idle transcript owns
/// none. Reserves about 2 MiB when it is first used, of which some 200 KiB are touched for common
/// transcripts; what a longer line needs is freed after it (LineParser), but for a buffer of at most 1 MiB.
class Workspace {
 public:
  /// Runs a task on another thread, soon or never.
  using Post = std::function<void(std::function<void()> task)>;

  Workspace();
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  /// From now on feed() lets another thread parse some of the chunks behind the one that it assembles, at
  /// most four, and waits for none that was not begun. Worth it for calls with a MiB and more; needs some
  /// 3 MiB per chunk.
  void parse_ahead(Post post);

 private:
  friend class Transcript;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Bytes after those given to feed() that must be readable; their values do not matter.
constexpr std::size_t feed_padding = 64;

struct TranscriptOptions {
  std::uint64_t hash_key = 0;  // the host's secret
  std::string own_agent;       // the agent's id for a file named agent-<id>.jsonl; empty for a session
  std::size_t line_bytes_max = 16 << 20;  // a longer line is skipped and reported
  const TextFilter* filter = nullptr;     // redacts the previews in state(); outlives the transcript
  const RecordFormat* format = nullptr;   // outlives the transcript; null: records are counted, not read
  bool reads_internal = false;            // as RecordFormat::make_reader()
  std::int64_t split_usage_ms = 0;        // as StreamUsage::split_sums()
};

class Transcript {
 public:
  explicit Transcript(TranscriptOptions options);
  ~Transcript();
  Transcript(Transcript&&) noexcept;
  Transcript& operator=(Transcript&&) noexcept;

  /// Feeds the next bytes of the file, split anywhere. `feed_padding` bytes after them must be readable.
  /// Sends the events of each completed line to `sink` in file order; during the call state() is that after
  /// the event's record. Never throws for content.
  void feed(std::span<const char> bytes, Workspace& workspace, EventSink& sink);

  Cursor end() const;         // after the last complete line and its last event; begin_cursor: no bytes
  Cursor last_event() const;  // of the last event emitted; begin_cursor: none
  std::uint64_t bytes_read() const;   // of all bytes fed, the unterminated tail included
  std::size_t pending_bytes() const;  // of the unterminated tail
  const StreamState& state() const;
  /// These members of state(), read without the redaction of its previews.
  const std::string& project() const;
  const std::string& program() const;
  const StreamUsage& used() const;
  /// True if a record with an id was read.
  bool has_records() const;
  /// True if it has this record, whose id the same key hashed.
  bool has_record(const RecordPlace& record) const;
  /// Adds each record with an id that is fed from now on; null: no more.
  void list_records(std::vector<RecordPlace>* records);
  std::int64_t last_activity_ms() const;
  /// StreamState::used, which is empty afterwards; for a transcript that is not fed any more.
  StreamUsage take_usage();
  const RecordCounts& counts() const;
  /// The session that the records name first. Empty: none yet.
  const std::string& recorded_session() const;
  /// The subagent of this transcript, by its records, for programs that do not name it in the file's name.
  /// Empty: none.
  const std::string& recorded_agent() const;
  /// Frees spare memory; for a transcript that grows slowly from now on. As expensive as reading some lines.
  void fit_memory();
  std::size_t memory_bytes() const;  // held by this transcript, estimated

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace earshot
