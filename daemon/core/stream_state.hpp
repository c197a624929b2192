// The current state of a stream, as snapshots show it. Owned and updated by the assembler.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/event.hpp"
#include "core/stream_usage.hpp"
#include "core/turn_times.hpp"

namespace earshot {

struct OpenTool {
  std::string call, tool;
  std::string agent;                     // of an inline sidechain; empty on the own chain
  std::string input;                     // JSON, its strings cut at input_preview_bytes
  std::vector<TruncatedPath> truncated;  // the texts of `input` that were cut: `input/command`
  std::string started;                   // RFC 3339; empty: unknown
  std::int64_t started_ms = 0;
  bool is_raw = false;  // internal to the assembler: `input` is not prepared for display yet
};

/// What only a person can answer, from the record that asks until the one that ends it.
struct OpenRequest {
  std::string id;       // unique in the session: the program's, or that of the call
  std::string kind;     // permission, question, plan, auth
  std::string call;     // that it is about; empty: none
  std::string subject;  // what a permission is for, where no call says so: `shell`; of `auth`: the error
  std::string agent;    // of an inline sidechain; empty on the own chain
  std::string started;  // RFC 3339; empty: unknown
  std::int64_t started_ms = 0;
  bool is_timed = false;  // internal to the assembler: the wait counts in StreamState::times
};

/// A command or monitor that goes on after its call's result.
struct BackgroundTask {
  std::string id;
  OpenTool made_by;     // the call, which is finished; without a tool if it was not listed
  std::string started;  // RFC 3339; empty: unknown
  std::int64_t started_ms = 0;
};

/// A turn that the program will begin by itself.
struct Schedule {
  std::string id;             // empty: a wake-up, of which there is one
  std::int64_t due_ms = 0;    // since 1970; 0: unknown
  std::int64_t time_ms = 0;   // of the record
  bool is_recurring = false;  // otherwise it ends when it begins its turn
};

/// What the program counted at the end of a turn: what still runs in the background and will report.
struct PendingWork {
  std::uint64_t agents = 0, workflows = 0;
  std::int64_t time_ms = 0;  // of the record
  bool any() const { return agents + workflows > 0; }
};

/// The last prompt of a person that began a turn.
struct Prompted {
  std::uint32_t turn = 0;      // 0: there is none
  std::string time;            // RFC 3339; empty: unknown
  std::int64_t time_ms = 0;    // the same; 0: unknown
  std::int64_t waited_ms = 0;  // how long the stream had waited for the user until then
};

struct RunningAgent {
  std::string call, subagent, agent_type, description;
  std::string started;
  bool background = false;
  bool is_resumed = false;  // its first end was an event; later ones are not
};

/// What the last limits.updated of one limit stated.
struct LimitState {
  std::string time;  // RFC 3339; empty: unknown
  std::string limit, plan, reached;
  std::vector<LimitWindow> windows;
};

struct StreamState {
  static constexpr std::size_t open_tools_max = 256;  // further ones are paired and counted, but not listed
  static constexpr std::size_t input_preview_bytes = 512;  // longer strings of an open tool's input are cut
  static constexpr std::size_t input_bytes_max =
      64 << 10;                                  // of a longer input the beginning of its JSON, as a string
  static constexpr std::size_t limits_max = 16;  // further limits are not kept
  static constexpr std::size_t raw_input_bytes_max = 64
                                                     << 10;  // a longer input is cut at once, not on demand

  std::string program, dialect, version, cwd, project, git_branch, title, model, mode, permission_mode,
      continues, sandbox, source, originator, parent, agent_type;
  bool started = false;  // session.started was emitted
  bool warmup = false;   // an internal warm-up agent: no events

  bool has_events = false;  // one was emitted: metadata alone causes none
  std::uint32_t turn = 0;
  bool turn_open = false;
  std::string turn_started;  // RFC 3339
  std::int64_t turn_started_ms = 0;
  std::string turn_prompt;                  // its first input_preview_bytes
  std::uint64_t turn_prompt_truncated = 0;  // bytes of the complete prompt if it is cut; 0: it is not
  std::string last_outcome;                 // of the last finished turn
  std::string last_finished;                // when it finished, RFC 3339

  Prompted prompted;

  // What the records alone prove of the session, for programs that write it.
  std::vector<OpenRequest> requests;  // not answered, oldest first
  std::vector<BackgroundTask> tasks;  // not finished, oldest first
  PendingWork pending;
  static constexpr std::size_t schedules_max = 64;  // beyond, the oldest is dropped
  std::vector<Schedule> schedules;
  bool expects_turn = false;  // a prompt or a notification is queued: the next turn begins by itself
  bool is_announced = false;  // a turn began and has no event yet
  std::string continued_in;   // the session that goes on with the last turn; empty: none
  bool is_compacting = false;
  bool is_closed = false;    // the last record is the end of the program's run
  bool is_headless = false;  // the program was started without a terminal

  std::vector<OpenTool> tools;  // in order of invocation
  std::vector<Todo> todos;      // of the own chain
  std::string todos_time;       // RFC 3339 of the record that set them; empty: never set
  std::vector<RunningAgent> agents;
  Usage usage;       // as the events state it: copies included, and what a program's own total says
  StreamUsage used;  // by request
  std::uint64_t context_tokens = 0;             // of the own chain's last message: input and cache
  std::optional<std::uint64_t> context_window;  // tokens that fit the model's context; absent: unknown
  std::optional<double> cost_usd;               // as recorded
  std::int64_t cost_total_ms = 0;  // of the last record before a recorded total of the session; 0: none
  TurnTimes times;
  std::vector<LimitState> limits;  // of the account, by name
  std::string last_activity;       // RFC 3339 of the newest line with a time
  std::int64_t last_activity_ms = 0;
  std::string last_text;  // the first input_preview_bytes of the own chain's last assistant text
  std::uint64_t last_text_truncated = 0;  // bytes of the complete text if it is cut; 0: it is not

  /// Of the own chain: what is left is unknown until the next answer, unless the record states it.
  void compact(const event::CompactionFinished& compaction) {
    if (compaction.kind == "full") context_tokens = compaction.post_tokens.value_or(0);
  }
  /// `time`: that of the event.
  void set_limits(const event::LimitsUpdated& updated, std::string_view time) {
    auto known = std::find_if(limits.begin(), limits.end(),
                              [&](const LimitState& each) { return each.limit == updated.limit; });
    if (known == limits.end()) {
      if (limits.size() >= limits_max) return;
      known = limits.emplace(known);
    }
    *known = {std::string(time),
              std::string(updated.limit),
              std::string(updated.plan),
              std::string(updated.reached),
              {updated.windows.begin(), updated.windows.end()}};
  }
};

/// A finished call that names its background task: a subagent that it started and that has no id yet has this
/// one.
inline void name_agent(StreamState& state, std::string_view call, std::string_view background) {
  if (background.empty()) return;
  for (RunningAgent& agent : state.agents)
    if (agent.call == call && agent.subagent.empty()) agent.subagent = background;
}

}  // namespace earshot
