// What a session is doing now: what bytes cannot prove. Never replayed: the newest one is the truth.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::status {

struct Status {
  std::string state = "unknown";  // working, waiting, idle, ended, unknown
  /// waiting: permission, question, plan, dialog; idle: background; working: compaction; empty: none.
  std::string reason;
  std::string detail;  // "approve Bash: touch x": the asked-for call, cut; empty: none
  std::string source;  // registry, transcript, clock
  std::string since;   // RFC 3339
  friend bool operator==(const Status&, const Status&) = default;
};

constexpr std::string_view host_offline_reason = "host_offline";
/// Of a session of another host that is not heard. `since`: when it was last, RFC 3339; empty: not known.
inline Status host_offline_status(std::string since) {
  return {"unknown", std::string(host_offline_reason), "", "clock", std::move(since)};
}

/// What the sessions of a host become, by its name.
using HostStatuses = std::map<std::string, Status, std::less<>>;

/// A call that has no result yet, as the transcript shows it.
struct OpenCall {
  std::string call, tool;
  std::string input;    // JSON, cut
  std::string agent;    // empty: the session's own
  std::string started;  // RFC 3339; empty: not said
};

/// What a session's transcripts say, all streams of it together.
struct TranscriptSummary {
  bool known = false;               // a transcript of it was read
  bool turn_open = false;           // of the main stream
  std::string turn_started;         // RFC 3339
  std::string turn_finished;        // RFC 3339, of the last one
  std::vector<OpenCall> calls;      // open ones, oldest first, subagents' included
  std::int64_t last_growth_ms = 0;  // when a file of it last grew (modification time), since 1970
  std::string last_activity;        // RFC 3339, of the newest line with a time
};

}  // namespace earshot::status
