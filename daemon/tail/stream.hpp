// One transcript as the rest of the house sees it.
#pragma once
#include <cstdint>
#include <string>

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
  virtual std::uint64_t bytes() const = 0;
};

}  // namespace earshot::tail
