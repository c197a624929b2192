// The events: one struct per type, independent of program and dialect. Views are valid only during
// on_event().
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "base/text_filter.hpp"
#include "core/cursor.hpp"

namespace earshot {

using OptionalText = std::optional<std::string_view>;  // nothing: not recorded

/// Tokens. Totals are absolute, never increments.
struct Usage {
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::uint64_t cache_read = 0;
  std::uint64_t cache_write = 0;
  std::uint64_t cache_write_1h = 0;  // the part of cache_write that is kept for an hour; not on the wire
  friend bool operator==(const Usage&, const Usage&) = default;
};

struct Todo {
  std::string id;  // empty: the list has none
  std::string content;
  std::string status;       // pending, in_progress, completed
  std::string active_form;  // empty: none
  std::string priority;     // empty: none
  friend bool operator==(const Todo&, const Todo&) = default;
};

/// One JSON value as it is in the line; the encoder validates and cuts it.
struct Json {
  std::string_view json;  // empty: absent
  bool is_utf8 = false;   // known: it is valid UTF-8
};

/// An image or a document in a message; its content is not kept.
struct Media {
  std::string_view kind;        // image, document
  std::string_view media_type;  // image/png
  std::uint64_t bytes = 0;      // decoded size, 0 when unknown
};

/// One window of a rate limit.
struct LimitWindow {
  std::string name;
  std::optional<double> used_percent;
  std::optional<std::int64_t> window_minutes;
  std::string resets_at;  // RFC 3339; empty: unknown
  friend bool operator==(const LimitWindow&, const LimitWindow&) = default;
};

namespace event {

struct SessionStarted {
  std::string_view program, dialect, version, cwd, git_branch, project, title, continues, mode,
      permission_mode, sandbox, source, originator;  // empty: unknown
  std::string_view parent, agent_type;               // of a subagent that has a stream of its own
};
struct SessionUpdated {  // only what changed
  OptionalText title, cwd, git_branch, model, version, mode, permission_mode, sandbox;
};
struct TurnStarted {
  OptionalText prompt;
  std::string_view origin;  // human, command, queued, task, hook, agent, unknown
};
struct TurnFinished {
  std::string_view outcome;  // completed, interrupted, failed, superseded
  bool inferred = false;
  std::string_view stop_reason;  // empty: none
  std::optional<std::int64_t> duration_ms;
  std::uint32_t tools = 0;
  Usage usage;
  std::optional<std::int64_t> waited_ms = std::nullopt;  // for the user; absent: no wait was recorded
};
struct MessageAdded {
  std::string_view role;  // user, assistant, system, summary
  std::string_view kind;  // text, thinking, image, document, …
  OptionalText text;
  std::string_view message, model;  // empty: none
  std::optional<Media> media;
};
struct ToolInvoked {
  std::string_view call, tool;
  Json input;
  std::string_view message;
};
struct ToolFinished {
  std::string_view call;
  OptionalText tool;         // nothing: the call is unknown
  std::string_view outcome;  // ok, error, denied, interrupted, abandoned
  std::optional<LazyText> output;
  std::vector<Media> media;
  std::optional<std::int64_t> duration_ms;
  std::string_view background;  // the task's id; empty: in the foreground
};
struct TodoUpdated {
  std::span<const Todo> todos;
  std::string_view source;  // the tool's name, or task_reminder
};
struct CompactionStarted {
  std::string_view trigger;  // auto, manual; empty: not recorded
};
struct CompactionFinished {
  std::string_view trigger;
  std::optional<std::uint64_t> pre_tokens, post_tokens;
  std::optional<std::int64_t> duration_ms;
  std::string_view kind;  // full, micro
};
struct AgentStarted {
  std::string_view subagent, agent_type, description, call;  // subagent: empty until a record names it
  bool background = false;
};
struct AgentFinished {
  std::string_view subagent, agent_type, description, call;
  std::string_view outcome;  // completed, failed, denied, interrupted, stopped, abandoned
  std::optional<std::int64_t> duration_ms;
  std::optional<std::uint64_t> tokens, tools;
  bool background = false;
};
struct TaskFinished {
  std::string_view task, call;
  std::string_view outcome;  // completed, failed, killed, stopped
  OptionalText summary;
};
struct QueueChanged {
  std::string_view operation;
  OptionalText text;
};
struct UsageUpdated {
  std::string_view message, model;
  std::optional<Usage> of_message;  // absent for a cost record, which has the total only
  Usage total;
  std::optional<double> cost_usd;
  std::optional<std::uint64_t> reasoning = std::nullopt;  // tokens, part of the message's output
  std::optional<std::uint64_t> context_tokens = std::nullopt, context_window = std::nullopt;
};
/// How much of the account's allowance is used. The newest event of any stream is valid for all.
struct LimitsUpdated {
  std::string_view limit, plan;  // empty: not stated
  std::string_view reached;      // which limit stopped the last request; empty: none
  std::span<const LimitWindow> windows;
};
struct ApiFailed {
  std::optional<std::int64_t> status;
  std::string_view error;
  std::optional<std::int64_t> attempt, max_attempts, retry_in_ms;
  bool fatal = false;
  std::string_view kind = {};  // the program's name of the failure; empty: not stated
};
struct FilesSnapshotted {
  std::string_view message;
  std::vector<std::string_view> files;
};
struct LineSkipped {
  std::uint64_t line = 0;  // offset of the first skipped line
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;  // including LFs
  std::string_view reason;
  bool salvaged = false;
};

}  // namespace event

using EventBody =
    std::variant<event::SessionStarted, event::SessionUpdated, event::TurnStarted, event::TurnFinished,
                 event::MessageAdded, event::ToolInvoked, event::ToolFinished, event::TodoUpdated,
                 event::CompactionStarted, event::CompactionFinished, event::AgentStarted,
                 event::AgentFinished, event::TaskFinished, event::QueueChanged, event::UsageUpdated,
                 event::ApiFailed, event::LimitsUpdated, event::FilesSnapshotted, event::LineSkipped>;

/// An event as another daemon sent it, without the common members.
struct RelayedEvent {
  EventBody body;  // the list of a TodoUpdated is in `todos`, that of a LimitsUpdated in `windows`
  std::uint32_t turn = 0;
  std::string_view agent;
  Json members;  // one JSON object, without `truncated`
  std::vector<TruncatedPath> truncated;
  std::vector<Todo> todos;
  std::vector<LimitWindow> windows;
};

struct Event {
  Event() = default;
  // Initialised as an aggregate, all alternatives of the body would be cleared first.
  template <class Body>
  Event(const Cursor& at, std::string_view line_time, std::int64_t line_time_ms, std::uint32_t in_turn,
        std::string_view of_agent, Body&& content)
      : cursor(at),
        time(line_time),
        time_ms(line_time_ms),
        turn(in_turn),
        agent(of_agent),
        body(std::forward<Body>(content)) {}

  Cursor cursor;
  std::string_view time;     // RFC 3339, from the line; empty: none
  std::int64_t time_ms = 0;  // Unix time in ms; 0: none
  std::uint32_t turn = 0;    // 1, 2, … in this stream; 0 before the first
  std::string_view agent;    // empty on the main chain
  EventBody body;
  const RelayedEvent* relayed = nullptr;  // set: shown instead of `body` in the full view
};

/// The name on the wire: `turn.started` and so on.
std::string_view type_name(const EventBody& body);

/// Receives events one at a time; must not keep views.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace earshot
