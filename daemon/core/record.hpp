// The content of one record, independent of program and dialect: a header and facts in the order of their
// events; and the interface through which a transcript reads the records of one agent program.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/event.hpp"
#include "core/line_value.hpp"

namespace earshot {

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
struct ScheduledFire {};
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
  bool asks = false;        // the call waits for the user's answer
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
  std::string_view subagent, resumed;
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

using Fact =
    std::variant<fact::Prompt, fact::MessageBlock, fact::Command, fact::Injected, fact::ScheduledFire,
                 fact::Absorbed, fact::Invocation, fact::Result, fact::MessageUsage, fact::Stop,
                 fact::TurnEnd, fact::Interrupted, fact::Compaction, fact::Summary, fact::Queue,
                 fact::Notification, fact::TodoList, fact::AgentLink, fact::ApiError, fact::Files, fact::Cost,
                 fact::Title, fact::Mode, fact::PermissionMode>;

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
  std::string_view session, version, cwd, model, message, request;
  std::optional<std::string_view> git_branch;
  Author author = Author::other;
  bool outside_turn = false;  // a user record outside any turn (a local command's echo and output)
  bool sidechain = false, deleted = false, aborted = false, has_turn_position = false;
  bool is_warmup = false;  // a user record that can start an internal warm-up agent
};

/// Views are valid until the next record is read.
struct Record : RecordHeader {
  std::vector<Fact> facts;
  std::optional<RelayedEvent> relayed;  // of another daemon: emitted unchanged; there are no facts

  /// Stores text that is not in the line, until the record is cleared.
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  void clear() {
    static_cast<RecordHeader&>(*this) = {};
    facts.clear();
    relayed.reset();
    if (!texts_.empty()) texts_.clear();
  }

 private:
  std::deque<std::string> texts_;
};

/// One era of one program's record format. Stateless and thread-safe.
class Dialect {
 public:
  virtual ~Dialect() = default;
  /// As in session.started; empty where the records themselves name it.
  virtual std::string_view name() const = 0;
  /// `raw` is the record's text if Value::raw() is not: without EARSHOT_LINE_WALK, and where numbers that the
  /// DOM refuses were replaced. Otherwise it is empty. Views in `out` may point into both.
  virtual void read(const Value& json, std::string_view raw, Record& out) const = 0;
};

class RecordAssembler;

/// Selects the dialect of a transcript. Stateless and thread-safe; outlives the transcripts that use it.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// The agent program, as on the wire (`claude-code`); empty where the records themselves name it.
  virtual std::string_view program() const = 0;
  /// The dialect that this record proves; null if it proves none. Asked until a record proves one.
  virtual const Dialect* detect(const Value& json) const = 0;
  /// Reads metadata before the first record that proves a dialect; null if this record is no such metadata.
  virtual const Dialect* metadata_dialect(const Value& json) const = 0;
  /// For a program whose records mean something by those before them: what reads one transcript, from the
  /// first record that detect() accepts. Null: the dialect's facts are assembled.
  virtual std::unique_ptr<RecordAssembler> make_assembler() const;
};

}  // namespace earshot
