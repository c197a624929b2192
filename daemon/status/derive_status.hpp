// Evidence in, status out. Pure: no clock, no file.
#pragma once
#include <chrono>
#include <cstdint>
#include <set>
#include <string>

#include "agents/claude_code/registry_file.hpp"
#include "status/process.hpp"
#include "status/status.hpp"

namespace earshot::status {

/// An open turn without an open call that did not grow for so long is `unknown`. Never a guess of `waiting`.
constexpr std::chrono::milliseconds quiet_max = std::chrono::minutes(10);

struct Evidence {
  const RegistryEntry* entry =
      nullptr;  // the session's registry file, the best one if there are several; null: none
  Liveness life = Liveness::dead;                   // of that file's process
  bool had_entry = false;                           // there is or was one
  bool seen_alive = false;                          // its process lived while we looked
  std::int64_t ended_ms = 0;                        // when its end was noticed, since 1970; 0: not noticed
  const std::set<std::string>* answered = nullptr;  // open calls that an earlier wait named; null: none
  std::int64_t compacting_ms = 0;      // when a compaction's call was noticed; 0: none since the last growth
  std::chrono::milliseconds quiet{0};  // since a transcript of it grew, by the steady clock
  std::chrono::milliseconds quiet_max = status::quiet_max;
};

/// The rules, first match wins:
///   1. the file gone or the process dead → `ended`, unless a turn began later (a version without a registry)
///   2. another machine or pid namespace → `unknown`
///   3. the registry's word, if it says one: the transcript lags, and an interruption may leave its turn open
///   4. the transcript: an unanswered question or plan → `waiting`; an open turn → `working` or, by the
///      clock, `unknown`; else `idle`
/// A compaction turns `working`, `idle` and the clock's `unknown` into `working` with reason `compaction`.
Status decide(const Evidence& evidence, const TranscriptSummary& said);

/// The call that a wait for permission names; null: none, or it may be any of several.
const OpenCall* named_call(const Status& status, const TranscriptSummary& said,
                           const std::set<std::string>& answered);

/// `next` with the `since` of `previous` while state and reason stay. A registry that tells of a later wait
/// is a new wait: the program went on in between, too quickly to be seen.
Status settle(const Status& previous, Status next);

}  // namespace earshot::status
