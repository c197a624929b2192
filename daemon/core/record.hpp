// What a line said, in no dialect: a header and a short list of facts, in the order in which they are told.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/event.hpp"

namespace earshot {

namespace fact {

using OptionalText = std::optional<std::string_view>;

/// Somebody gave the agent work. Starts a turn.
struct Prompt {
  OptionalText text;
  std::string_view origin;
  std::vector<Media> media;
};
/// A message of any role. `while_working`: an assistant's words, which prove that a turn is open.
struct Said {
  std::string_view role, kind;
  OptionalText text;
  std::optional<Media> media;
};
/// A slash command was typed; it starts a turn only if a record that is injected for it follows.
struct Command {
  std::string_view text;  // /name args
};
/// Put there for the model, not a prompt; what it means depends on the record that it answers.
struct Injected {
  std::string_view text;
  bool hook_feedback = false;
};
struct ScheduledFire {};
/// A prompt that the running turn took up.
struct Absorbed {
  OptionalText text;
  std::optional<Media> media;
};
struct Invocation {
  enum class Purpose { plain, subagent, todo_whole, todo_create, todo_update, todo_list };
  Purpose purpose = Purpose::plain;
  std::string_view call, tool;  // call is empty where the dialect has no ids: the record's own name stands in
  std::string_view input;       // JSON text
  std::string_view agent_type, description;  // of a subagent's call
  bool background = false;
  std::vector<Todo> todos;  // the list that the call sets, or the one task that it names
};
/// What a result says of the todo list; which of it counts depends on what the call was for.
struct TodoChange {
  std::optional<std::vector<Todo>> whole;
  std::optional<Todo> item;  // created or updated; empty fields: not said
  bool refused = false;      // the program's own word that nothing was done
};
struct Result {
  std::string_view call;
  bool by_place = false;  // no ids in its dialect: the record answers the call that it stands under
  std::string_view outcome;
  OptionalText output;
  std::vector<Media> media;
  std::string_view background;  // the task's id: the call goes on in the background
  bool launch = false;          // of a subagent in the background or a teammate
  bool rejected_while_running_if_known =
      false;  // a user's rejection that is an interruption where the program tells positions
  std::string_view subagent, resumed;
  std::optional<std::int64_t> duration_ms;  // of the subagent
  std::optional<std::uint64_t> tokens, tools;
  TodoChange todo;
};
struct UsageSeen {
  std::string_view model;
  Usage usage;
  std::optional<double> cost_usd;
};
/// The assistant's message ended, for this reason, with a record that shows more than thoughts and calls.
struct Stop {
  std::string_view reason;
  std::optional<std::int64_t> duration_ms;  // as the record itself says it
};
/// A record that says the turn is over. `guarded`: not if it is older than the turn or follows a call or a
/// result.
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
struct Queue {
  std::string_view operation;
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
struct ApiError {
  std::optional<std::int64_t> status;
  std::string_view error;
  std::optional<std::int64_t> attempt, max_attempts, retry_in_ms;
  bool fatal = false;
};
struct Files {
  std::string_view message;
  std::vector<std::string_view> files;
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

}  // namespace fact

using Fact = std::variant<fact::Prompt, fact::Said, fact::Command, fact::Injected, fact::ScheduledFire,
                          fact::Absorbed, fact::Invocation, fact::Result, fact::UsageSeen, fact::Stop,
                          fact::TurnEnd, fact::Interrupted, fact::Compaction, fact::Summary, fact::Queue,
                          fact::Notification, fact::TodoList, fact::AgentLink, fact::ApiError, fact::Files,
                          fact::Cost, fact::Title, fact::Mode, fact::PermissionMode>;

/// Everything about a record but what it says.
struct RecordHeader {
  enum class By {
    other,
    user,
    assistant,
    machine
  };  // machine: made by the program itself in the assistant's name

  std::string_view type;  // for counting: `type`, or `type/subtype`
  bool unknown = false;   // no dialect knows this type
  std::string_view uuid, parent;
  bool has_parent_key = false;  // `parentUuid` stands there, be it null
  std::string_view time;        // RFC 3339; empty: none
  std::int64_t time_ms = 0;
  std::string_view session, version, cwd, model, message, request;
  std::optional<std::string_view> git_branch;
  By by = By::other;
  bool outside = false;  // a user record that is no part of a turn (a local command's echo and output)
  bool sidechain = false, deleted = false, aborted = false, knows_positions = false;
  std::string_view first_user_text;  // of a user record: to recognise an internal warm-up
};

/// An event of another daemon's, passed on as it is. Nothing is concluded from it.
struct Told {
  EventBody body;  // a list of todos: `todos`
  std::uint32_t turn = 0;
  std::string_view agent;
  Json members;  // all but the common ones: one JSON object
  std::vector<Todo> todos;
};

/// Views are valid until the next record is read.
struct Record : RecordHeader {
  std::vector<Fact> facts;

  /// Text that stands nowhere in the line: kept as long as the record.
  std::string_view keep(std::string text) { return made_.emplace_back(std::move(text)); }
  void clear() {
    static_cast<RecordHeader&>(*this) = {};
    facts.clear();
    told.reset();
    if (!made_.empty()) made_.clear();
  }

 private:
  std::deque<std::string> made_;

 public:
  std::optional<Told> told;  // then there are no facts
};

}  // namespace earshot
