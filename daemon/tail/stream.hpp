// One transcript as the rest of the house sees it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/event.hpp"
#include "core/transcript.hpp"

namespace earshot::tail {

/// What `agent-<id>.meta.json` says; every field may be empty.
struct AgentMeta {
  std::string agent_type, description;
  std::string call;          // toolUseId: the parent's call
  std::string parent_agent;  // parentAgentId
  int depth = 0;             // spawnDepth; 0: not said
  friend bool operator==(const AgentMeta&, const AgentMeta&) = default;
};

class Stream {
 public:
  virtual ~Stream() = default;
  virtual const std::string& name()
      const = 0;  // <root>/<path below projects/, without .jsonl>, percent-encoded
  virtual const std::string& session()
      const = 0;  // the session that it belongs to; may become known with the first lines
  virtual const std::string& agent() const = 0;  // the subagent's id; empty for a session's main stream
  virtual const std::string& directory()
      const = 0;  // the name of its directory below projects/: stands for the project until cwd is known
  virtual const std::string& path() const = 0;
  virtual const AgentMeta& meta() const = 0;
  /// Null while the file is only known (cold). Its state is that after the last event that the listener was
  /// given.
  virtual const Transcript* transcript() const = 0;
  virtual std::int64_t modified_ms() const = 0;  // the file's change time, since 1970
  /// So many bytes from its beginning have been told, or passed over in silence: what the listener hears next
  /// is what a fold of the file gives beyond them.
  virtual std::uint64_t published_bytes() const = 0;
};

/// Hears of streams, all on the one thread that owns state. Order for a stream: appeared, then events and
/// changes, then removed.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  /// A stream has a transcript now: folded silently up to here (recent at start, or asked for), or new and
  /// empty: then its events follow.
  virtual void on_added(const Stream& stream) = 0;
  virtual void on_event(const Stream& stream, const Event& event) = 0;
  /// Lines were consumed (events came before this call), or its meta or its session became known: the
  /// snapshot may be another.
  virtual void on_changed(const Stream& stream) = 0;
  /// The bytes that were told are no longer what the file says. The new history's events follow from its
  /// first line.
  virtual void on_reset(const Stream& stream, std::string_view reason) = 0;
  /// Also of one that was only known: whoever asked for it had it from its file.
  virtual void on_removed(const Stream& stream) = 0;
  /// An internal compaction call of this session has begun (its file was born); nothing in the transcript
  /// says so yet.
  virtual void on_compacting(std::string_view session) = 0;
  /// All that one wake-up brought has been told: ring whoever waits.
  virtual void on_batch_end() = 0;
};

}  // namespace earshot::tail
