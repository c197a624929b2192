// The present status of a session, and the evidence for it. Status is never replayed: only the latest value
// counts.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/event.hpp"

namespace earshot::status {

struct Status {
  std::string state = "unknown";  // working, waiting, idle, ended, unknown
  /// waiting: permission, question, plan, dialog; idle: background; working: compaction; empty: none.
  std::string reason;
  std::string detail;  // "approve Bash: touch x": the pending call, shortened; empty: none
  std::string source;  // registry, transcript, process, clock
  std::string since;   // RFC 3339
  /// As the registry states them, before the first line of a transcript; empty: unknown.
  std::string program{}, project{}, title{};
  friend bool operator==(const Status&, const Status&) = default;
};

constexpr std::string_view host_offline_reason = "host_offline";
/// The status of a session on a host that is offline. `since`: when the host was last online, RFC 3339;
/// empty: unknown.
inline Status host_offline_status(std::string since) {
  return {"unknown", std::string(host_offline_reason), "", "clock", std::move(since), "", "", ""};
}

/// The status that replaces those of a host's sessions, by the host's name.
using HostStatuses = std::map<std::string, Status, std::less<>>;

/// A call without a result.
struct OpenCall {
  std::string call, tool;
  std::string input;    // JSON, shortened
  std::string agent;    // the subagent that made it; empty: the session itself
  std::string started;  // RFC 3339; empty: unknown
};

/// The state of a session in its transcripts, those of subagents included.
struct TranscriptSummary {
  bool known = false;                    // a transcript of it was read
  bool turn_open = false;                // in the main stream
  std::string turn_started;              // RFC 3339
  std::string turn_finished;             // RFC 3339, of the last finished turn
  std::vector<OpenCall> calls;           // oldest first
  std::int64_t last_growth_ms = 0;       // modification time of its newest file, since 1970
  std::string last_activity;             // RFC 3339, of the newest line with a time
  std::string program, version;          // of the agent program; empty: unknown
  std::vector<std::string> directories;  // its first and its present working directory, as far as known
  std::string path;                      // of the main transcript
};

/// A session's todos as its todo files have them.
struct TodoList {
  std::vector<Todo> todos;
  std::int64_t modified_ms = 0;  // of the newest file, since 1970
  std::string modified;          // the same, RFC 3339
  std::string source;            // TodoSource::name
  friend bool operator==(const TodoList&, const TodoList&) = default;
};

}  // namespace earshot::status
