// Derives a session's status from the evidence. Pure: reads neither a clock nor a file.
#pragma once
#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "agents/agent.hpp"
#include "status/process_table.hpp"
#include "status/status.hpp"

namespace earshot::status {

/// Default limit for an open turn without growth and without other evidence; above it the status is
/// `unknown`, never `waiting`.
constexpr std::chrono::milliseconds quiet_max = std::chrono::minutes(10);

constexpr std::size_t detail_bytes_max = 200;  // of Status::detail; longer text is cut between characters

/// What the processes of this machine show about a session without a registry entry.
enum class ProcessEvidence {
  unknown,  // nothing was decided
  present,  // a process runs in its directory, or has its transcript open
  gone,     // there was none for a while
};

struct Evidence {
  const AgentProgram* program = &default_program();  // of the session
  const RegistryEntry* entry = nullptr;              // the best registry entry of the session; null: none
  Liveness liveness = Liveness::dead;                // of that entry's process
  bool had_entry = false;                            // there is or was an entry
  bool seen_alive = false;                           // its process was seen alive
  std::int64_t ended_ms = 0;                         // when its end was noticed, since 1970; 0: not noticed
  ProcessEvidence process = ProcessEvidence::unknown;
  std::int64_t process_ended_ms = 0;  // when the end of its process was noticed; 0: it was never seen
  const std::set<std::string>* answered = nullptr;  // open calls that an earlier wait named; null: none
  std::int64_t compacting_ms = 0;  // when a compaction was noticed, since 1970; 0: none since the last growth
  std::chrono::milliseconds quiet{0};  // since a transcript of it grew, by the steady clock
  std::chrono::milliseconds quiet_max = status::quiet_max;
};

/// The first rule that applies:
///   1. The entry was removed or its process is dead: `ended`, unless a turn began later (by a version
///      without a registry).
///   2. The process belongs to another machine or pid namespace: `unknown`.
///   3. The registry states a state: that one. The transcript lags, or an interruption left a turn open.
///   4. Without an entry, no process runs the session: `ended`, whether its turn is open or not.
///   5. The transcript: an unanswered question or plan is `waiting`; an open turn is `working` or, after
///      `quiet_max`, `unknown`, unless a call is open and a process runs the session; otherwise `idle`.
/// A compaction turns `working`, `idle` and the clock's `unknown` into `working` with reason `compaction`.
Status derive_status(const Evidence& evidence, const TranscriptSummary& summary);

/// The call that a wait for permission refers to; null: none, or it may be any of several.
const OpenCall* prompted_call(const Status& status, const Evidence& evidence,
                              const TranscriptSummary& summary);

/// `next` with the `since` of `previous` if state and reason are the same. A later wait in the registry is a
/// new one: the program continued in between for too short a time to be seen.
Status keep_since(const Status& previous, Status next);

}  // namespace earshot::status
