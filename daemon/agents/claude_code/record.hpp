// The content of one record, whatever its dialect: a header, and facts in the order of their events.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/event.hpp"
#include "core/line_value.hpp"

namespace earshot::claude_code {

namespace fact {

/// Work for the agent. Starts a turn.
struct Prompt {
  OptionalText text;
  std::string_view origin;
  std::vector<Media> media;
};
/// A content block of a message of any role.
struct MessageBlock {
  std::string_view role, kind;
  OptionalText text;
  std::optional<Media> media;
};
/// A typed slash command. It starts a turn only if an Injected record answers it.
struct Command {
  std::string_view text;  // /name args
};
/// Text that the program added for the model. Its meaning depends on the record it answers.
struct Injected {
  std::string_view text;
  bool hook_feedback = false;
};
struct ScheduledFire {
  std::string_view task;
};
/// A prompt that joined the running turn.
struct Absorbed {
  OptionalText text;
  std::optional<Media> media;
};
struct Invocation {
  enum class Purpose { plain, subagent, todo_write, todo_create, todo_update, todo_list };
  Purpose purpose = Purpose::plain;
  std::string_view call, tool;  // call: empty in dialects without ids; the record's name is used instead
  Json input;
  std::string_view agent_type, description;  // of a subagent's call
  bool background = false;
  std::string_view asks;    // the kind of the call's request: question, plan; empty: none
  std::vector<Todo> todos;  // the list to set, or the one task to create or update
};
/// A result's effect on the todo list. The purpose of the call selects the member that applies.
struct TodoChange {
  std::optional<std::vector<Todo>> list;
  std::optional<Todo> item;  // created or updated; empty fields: unchanged
  bool refused = false;      // the program reported that it did nothing
};
struct Result {
  std::string_view call;
  bool by_position = false;  // no ids in its dialect: the result of the call that is the record's parent
  std::string_view outcome;
  std::optional<LazyText> output;
  std::vector<Media> media;
  std::string_view background;     // the task's id: the call continues in the background
  bool launch = false;             // of a background subagent or a teammate
  bool is_late_rejection = false;  // rejected while running: an interruption if records have turn positions
  std::string_view subagent, resumed, stopped;
  bool is_stop_told = false;           // a notification of the stopped task follows
  std::string_view monitor;            // the task's id: it runs until its notification
  std::optional<std::int64_t> due_ms;  // of a schedule, since 1970
  std::string_view schedule;           // its id; empty: a wake-up
  bool is_recurring = false;
  std::optional<std::int64_t> duration_ms;  // of the subagent
  std::optional<std::uint64_t> tokens, tools;
  TodoChange todo;
};
struct MessageUsage {
  std::string_view model;
  Usage usage;
  std::optional<double> cost_usd;
};
/// The stop reason of an assistant message, from a record with more than thinking and calls.
struct Stop {
  std::string_view reason;
  std::optional<std::int64_t> duration_ms;  // as recorded
};
/// The end of the turn. `guarded`: ignored if older than the turn, or after a call or a result.
struct TurnEnd {
  std::string_view outcome, stop_reason;
  std::optional<std::int64_t> duration_ms;
  bool guarded = false;
};
/// At the end of a turn: what runs in the background and will report.
struct Pending {
  std::uint64_t agents = 0, workflows = 0;
};
/// The user stopped all background agents.
struct AgentsKilled {};
/// Another session goes on with this one's turn.
struct Continued {
  std::string_view session;
};
struct Interrupted {};
struct Compaction {
  bool started = false;  // else finished
  std::string_view trigger, kind;
  std::optional<std::uint64_t> pre_tokens, post_tokens;
  std::optional<std::int64_t> duration_ms;
};
struct Summary {
  OptionalText text;
};
struct Notification {
  std::string_view task, call, status;
  OptionalText summary;
  std::optional<std::int64_t> duration_ms;
  std::optional<std::uint64_t> tokens, tools;
};
struct TodoList {
  std::vector<Todo> todos;
  std::string_view source;
};
struct AgentLink {
  std::string_view call, subagent;
};
struct Cost {
  double usd = 0;
};
struct Title {
  enum class Kind { custom, ai, summary, agent_name } kind;
  std::string_view text, leaf;
};
struct Mode {
  std::string_view mode;
};
struct PermissionMode {
  std::string_view mode;
};
// Emitted as they are.
using ApiError = event::ApiFailed;
using Files = event::FilesSnapshotted;
using Queue = event::QueueChanged;

}  // namespace fact

using Fact = std::variant<fact::Prompt, fact::MessageBlock, fact::Command, fact::Injected,
                          fact::ScheduledFire, fact::Absorbed, fact::Invocation, fact::Result,
                          fact::MessageUsage, fact::Stop, fact::TurnEnd, fact::Pending, fact::AgentsKilled,
                          fact::Continued, fact::Interrupted, fact::Compaction, fact::Summary, fact::Queue,
                          fact::Notification, fact::TodoList, fact::AgentLink, fact::ApiError, fact::Files,
                          fact::Cost, fact::Title, fact::Mode, fact::PermissionMode>;

/// Everything about a record but its facts.
struct RecordHeader {
  enum class Author {
    other,
    user,
    assistant,
    program,  // written by the program in the assistant's name
  };

  std::string_view type;  // for counting: `type`, or `type/subtype`
  bool unknown = false;   // no dialect has a rule for this type
  std::string_view uuid, parent;
  bool has_parent_key = false;  // `parentUuid` is present or null
  std::string_view time;        // RFC 3339; empty: none
  std::int64_t time_ms = 0;
  std::string_view session, version, cwd, model, message, request, prompt;
  std::optional<std::string_view> git_branch;
  Author author = Author::other;
  bool outside_turn = false;  // a user record outside any turn (a local command's echo and output)
  bool sidechain = false, deleted = false, aborted = false, has_turn_position = false;
  bool is_headless = false;
  bool is_warmup = false;  // a user record that can start an internal warm-up agent
};

/// Views are valid until the next record is read.
struct Record : RecordHeader {
  std::vector<Fact> facts;

  /// Stores text that is not in the line, until the record is cleared.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  void clear() {
    static_cast<RecordHeader&>(*this) = {};
    facts.clear();
    if (!texts_.empty()) texts_.clear();
  }

 private:
  std::deque<std::string> texts_;
};

}  // namespace earshot::claude_code
