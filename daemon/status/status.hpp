// The present status of a session, the evidence for it, and how it is derived from that: purely, without a
// clock or a file. Status is never replayed: only the latest value counts.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agents/agent.hpp"
#include "core/event.hpp"
#include "core/stream_state.hpp"
#include "status/process_table.hpp"

namespace earshot::status {

/// What a person's prompt led to, once the session rests: all turns that it began, and its subagents.
struct Done {
  std::string outcome;                      // of the last turn
  std::uint32_t turn = 0;                   // that the prompt began
  std::uint32_t turns = 0;                  // finished since, that one included
  std::string prompted;                     // RFC 3339: when the prompt was given; empty: unknown
  std::optional<std::int64_t> duration_ms;  // from the prompt to the end of the last turn
  std::int64_t waited_ms = 0;               // of that, for the user
  bool is_headless = false;                 // no person is at a terminal
  friend bool operator==(const Done&, const Done&) = default;
};

inline bool is_same_prompt(const std::optional<Done>& one, const Done& other) {
  return one && one->turn == other.turn && one->prompted == other.prompted;
}

struct Status {
  std::string state = "unknown";  // working, waiting, idle, ended, unknown
  /// waiting: permission, question, plan, auth, dialog; idle: background, scheduled; working: compaction,
  /// background; empty: none.
  std::string reason;
  std::string detail;  // "approve Bash: touch x": the pending call, shortened; "2 agents"; empty: none
  std::string source;  // registry, transcript, process, clock
  std::string since;   // RFC 3339
  /// waiting: which request it is. The same one may get a better reason or detail; another one is another
  /// wait, even if nothing else differs. Empty: unknown.
  std::string request{};
  std::string agent{};  // waiting: the subagent that asks; empty: the session itself, or unknown
  /// As the registry states them, before the first line of a transcript; empty: unknown.
  std::string program{}, project{}, title{};
  /// As its host states them at a hub, if the session is in use in several: the text may be of any of them.
  std::vector<std::string> projects{};
  /// idle, ended: what the last prompt led to; absent: nothing, or its turns have not ended.
  std::optional<Done> done{};
  /// `done` is news: told once for each prompt, and not for what ended before the daemon looked.
  bool tells_done = false;
  friend bool operator==(const Status&, const Status&) = default;
};

/// True if both state the same wait for the user.
inline bool is_same_wait(const Status& one, const Status& other) {
  return one.state == "waiting" && other.state == "waiting" && one.since == other.since &&
         one.request == other.request;
}

constexpr std::string_view host_offline_reason = "host_offline";
/// The status of a session on a host that is offline. `since`: when the host was last online, RFC 3339;
/// empty: unknown.
inline Status host_offline_status(std::string since) {
  return {"unknown", std::string(host_offline_reason), "", "clock", std::move(since)};
}

/// The status that replaces those of a host's sessions, by the host's name.
using HostStatuses = std::map<std::string, Status, std::less<>>;

/// A call without a result.
struct OpenCall {
  std::string call, tool;
  std::string input;            // JSON, shortened
  std::string agent;            // the subagent that made it; empty: the session itself
  std::string started;          // RFC 3339; empty: unknown
  std::int64_t started_ms = 0;  // 0: unknown
  std::int64_t grown_ms = 0;    // modification time of its stream, since 1970; 0: unknown
};

/// What goes on without a turn of the main stream.
struct BackgroundWork {
  enum class Kind { agent, workflow, task, schedule };
  Kind kind = Kind::agent;
  std::uint64_t count = 1;
  std::int64_t time_ms = 0;     // of its newest record; 0: unknown
  bool is_counted = false;      // the program counted it as running when it ended its turn
  std::string tool{}, input{};  // of the call that began a task; empty: unknown
  std::int64_t due_ms = 0;      // of a schedule: when it begins a turn, since 1970; 0: unknown
};

/// The state of a session in its transcripts, those of subagents included.
struct TranscriptSummary {
  bool known = false;                 // a transcript of it was read
  bool is_blank = false;              // with metadata only: no conversation began
  bool turn_open = false;             // in the main stream
  std::string turn_started;           // RFC 3339
  std::string answered;               // RFC 3339: when its last recorded wait for the user ended; empty: none
  std::string turn_finished;          // RFC 3339, of the last finished turn
  std::string outcome;                // of that turn
  std::uint32_t turn = 0;             // the number of the last turn
  Prompted prompted;                  // the last prompt of a person
  std::int64_t waited_ms = 0;         // since then, as far as the records state it
  bool expects_turn = false;          // of the main stream: the next one begins by itself
  std::string continued_in;           // the session that goes on with its last turn; empty: none
  bool is_headless = false;           // no person is at a terminal
  std::vector<OpenCall> calls;        // oldest first
  std::vector<OpenRequest> requests;  // not answered, oldest first; `agent`: the subagent that asks
  // What the records say of the session itself, where the program writes it (StreamState).
  std::string permission_mode;  // empty: unknown
  bool is_compacting = false;
  bool is_closed = false;                  // the program wrote that its run is over
  std::vector<BackgroundWork> background;  // what outlives its call and continues
  std::int64_t turn_grown_ms = 0;          // time of the newest record of the main stream; 0: unknown
  std::int64_t last_growth_ms = 0;         // modification time of its newest file, since 1970
  std::string last_activity;               // RFC 3339, of the newest line with a time
  std::string program, version;            // of the agent program; empty: unknown
  std::vector<std::string> directories;    // its first and its present working directory, as far as known
  std::string path;                        // of the main transcript
};

/// A session's todos as its todo files have them.
struct TodoList {
  std::vector<Todo> todos;
  std::int64_t modified_ms = 0;  // of the newest file, since 1970
  std::string modified;          // the same, RFC 3339
  std::string source;            // TodoSource::name
  friend bool operator==(const TodoList&, const TodoList&) = default;
};

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
  const RegistryEntry* entry = nullptr;              // that applies, of the session's registry; null: none
  Liveness liveness = Liveness::dead;                // of that entry's process
  bool had_entry = false;                            // there is or was an entry
  bool seen_alive = false;                           // its process was seen alive
  std::int64_t ended_ms = 0;                         // when its end was noticed, since 1970; 0: not noticed
  ProcessEvidence process = ProcessEvidence::unknown;
  std::int64_t process_ended_ms = 0;  // when the end of its process was noticed; 0: it was never seen
  bool is_headless = false;           // by its process: no person is at a terminal
  bool awaits_successor = false;      // the session that continues it has no process yet
  const std::set<std::string>* answered = nullptr;  // open calls that an earlier wait named; null: none
  std::int64_t compacting_ms = 0;  // when a compaction was noticed, since 1970; 0: none since the last growth
  /// When the first of the processes began that run the session, since 1970; 0: unknown, or none does.
  std::int64_t run_since_ms = 0;
  std::int64_t now_ms = 0;             // since 1970
  std::chrono::milliseconds quiet{0};  // since a transcript of it grew, by the steady clock
  std::chrono::milliseconds quiet_max = status::quiet_max;

  /// How long the stream of this call has not grown, at least as long as the whole session.
  std::chrono::milliseconds quiet_of(const OpenCall& call) const;
};

/// An open call of a program that writes no question for permission may wait for one when it takes longer
/// than calls usually do to start: `detail` states this, and that it cannot be seen.
constexpr std::chrono::milliseconds unseen_permission_after = std::chrono::seconds(5);

/// How exact the start of a process is known, compared with the times of records.
constexpr std::chrono::milliseconds start_slack{200};

/// Work and requests that are older than every process of the session are those of an earlier process: they
/// do not count. Then the first rule that applies:
///   1. The entry was removed or its process is dead: `ended`, unless a turn began later (by a version
///      without a registry); `working` while the session that goes on with its turn has no process yet.
///   2. The process belongs to another machine or pid namespace: `unknown`.
///   3. The registry states a state: that one. The transcript lags, or an interruption left a turn open. Only
///      work that the program counted at the end of its turn makes `idle` to `working`, reason `background`,
///      and a turn that failed for want of a sign-in to `waiting`, reason `auth`.
///      A wait that is not known is `permission` while something works, otherwise `dialog`.
///   4. Without an entry, no process runs the session: `ended`, whether its turn is open or not.
///   5. The transcript: the end of the program's run is `ended`; an unanswered request for permission,
///      question or plan is `waiting`; an open turn is `working` or, after `quiet_max`, `unknown`, unless a
///      call is open and a process runs the session; subagents and workflows alone are `working` with reason
///      `background`, tasks alone `idle` with that reason; otherwise `idle`.
/// A compaction turns `working`, `idle` and the clock's `unknown` into `working` with reason `compaction`.
Status derive_status(const Evidence& evidence, const TranscriptSummary& summary);

/// The process of a session that continues another one is seen within this time, or not at all.
constexpr std::chrono::milliseconds successor_max = std::chrono::seconds(15);

/// A turn that follows by itself, of a notification or a teammate's message, begins within this time.
constexpr std::chrono::milliseconds next_turn_max{3000};

/// What the last prompt led to; absent: its turns have not ended, work goes on, or a turn may follow by
/// itself. `observed_waited_ms`: how long the session was seen waiting since.
std::optional<Done> done_of(const Status& status, const Evidence& evidence, const TranscriptSummary& summary,
                            std::int64_t observed_waited_ms);
/// True if only the time that next_turn_max states is missing.
bool may_go_on(const Status& status, const TranscriptSummary& summary);

/// The call that a wait for permission refers to; empty: none, or it may be any of several.
std::string prompted_call(const Status& status, const Evidence& evidence, const TranscriptSummary& summary);

/// `next` with the `since` of `previous` if state and reason are the same; for a wait, if the request is:
/// then the reason may differ. A later wait in the registry is a new one, as is one of another process: the
/// program continued in between for too short a time to be seen. Where another source states a wait of the
/// same reason, it is the same request.
/// `derived`: what `previous` was made of, as derive_status() returned it.
Status keep_since(const Status& previous, const Status& derived, Status next);

}  // namespace earshot::status
