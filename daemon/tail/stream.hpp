// A transcript as the rest of the daemon sees it, and the interface that receives its events.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "agents/agent.hpp"
#include "core/event.hpp"
#include "core/transcript.hpp"

namespace earshot::tail {

class Stream {
 public:
  virtual ~Stream() = default;
  /// `<root>/<path below the transcript directory without .jsonl>`, percent-encoded (agents/stream_name.hpp).
  virtual const std::string& name() const = 0;
  /// May become known with the first lines, or another one.
  virtual const std::string& session() const = 0;
  /// By the path alone: of events before the records name a session or an agent.
  virtual const StreamIdentity& path_identity() const = 0;
  /// False: the records may name another session and agent than the path.
  bool is_identified() const { return !path_identity().is_likely; }
  /// The subagent's id; empty: the session's main stream.
  virtual const std::string& agent() const = 0;
  /// First directory of the path: names the project until its cwd is known.
  virtual const std::string& directory() const = 0;
  virtual const std::string& path() const = 0;
  virtual const SubagentMeta& meta() const = 0;
  /// Null for a cold stream: its file is known but was not read. Its state is the one after the last event
  /// that the observer received.
  virtual const Transcript* transcript() const = 0;
  /// Modification time of the file, since 1970.
  virtual std::int64_t modified_ms() const = 0;
  /// When its file was born, in ns since 1970; 0: unknown.
  virtual std::int64_t origin_ns() const { return 0; }
  /// How many bytes were delivered or skipped: the observer receives next what a fold of the file yields
  /// after them. unknown_bytes: all of a compressed one.
  virtual std::uint64_t published_bytes() const = 0;
};

/// Receives changes of streams on the thread that owns the state. Order for each stream: added, then events
/// and changes, then removed.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  /// The stream has a transcript now: folded without events up to here (at start or on request), or new and
  /// empty; then its events follow.
  virtual void on_added(const Stream& stream) = 0;
  /// The stream's transcript is fed with new bytes next; they may complete no line.
  virtual void on_growing(const Stream&) {}
  virtual void on_event(const Stream& stream, const Event& event) = 0;
  /// Lines were consumed (their events were delivered before this call), or its meta file or session became
  /// known: a snapshot may differ.
  virtual void on_changed(const Stream& stream) = 0;
  /// The file does not begin with the published bytes any more. The events of the new history follow from its
  /// first line.
  virtual void on_reset(const Stream& stream, std::string_view reason) = 0;
  /// The same file has another name now; its history and its cursors go on. Also for cold streams.
  virtual void on_renamed(const Stream&, std::string_view from) = 0;
  /// Also for cold streams: clients may have read their files.
  virtual void on_removed(const Stream& stream) = 0;
  /// Its transcript is freed, as release() requested: the stream is cold again. Do not use it after this.
  virtual void on_released(const Stream&) {}
  /// A compaction of this session has begun. Its transcript does not show that yet.
  virtual void on_compacting(std::string_view session) = 0;
  /// Events were delivered, and work that can wait for them follows: send them now. on_batch_end() follows.
  virtual void on_flush() {}
  /// Everything found in one wake-up was delivered: wake the connections.
  virtual void on_batch_end() = 0;
};

}  // namespace earshot::tail
