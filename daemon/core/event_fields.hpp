// One table of fields per event type. It drives the encoder (event_json) and the reader of relayed events
// (team/relayed_reader), so that a field is declared once. Order is the order on the wire.
#pragma once
#include <string_view>
#include <tuple>

#include "core/event.hpp"

namespace earshot {

/// How a field is written. An empty string or optional is left out.
enum class FieldKind {
  id,            // a name of the protocol or an identifier: never redacted, in both views
  label,         // short text, redacted, in both views
  text,          // text of any length: redacted, cut, in the full view only
  number,        // an integer or a decimal number
  flag,          // true or false
  flag_if_true,  // left out if false
  usage,         // an object of four token counts
  usage_inline,  // the same four counts as members of the event
  media,         // an object; a list of objects
  input,         // a tool's input, in the full view only
  todos,
  windows,  // of a rate limit
  files,    // paths; their number (`files_count`) in the meta view
};

/// A member's name as it is written, `,"name":`, built at compile time.
struct FieldKey {
  static constexpr std::size_t name_bytes_max = 28;  // a longer one does not compile
  consteval FieldKey(const char* name) {
    for (const char c : {',', '"'}) text[size++] = c;
    for (; *name; ++name) text[size++] = *name;
    for (const char c : {'"', ':'}) text[size++] = c;
  }
  constexpr std::string_view name() const { return {text + 2, size - 4}; }
  char text[name_bytes_max + 4] = {};
  std::size_t size = 0;
};

template <FieldKind kind_, class Body, class Value>
struct EventField {
  static constexpr FieldKind kind = kind_;
  FieldKey key;
  Value Body::*member;
  bool is_required = false;  // every event of the type has it, in both views

  consteval EventField required() const { return {key, member, true}; }
};
template <FieldKind kind, class Body, class Value>
consteval EventField<kind, Body, Value> event_field(FieldKey key, Value Body::*member) {
  return {key, member};
}

/// The table of one event type: its name on the wire and its fields.
template <class Body>
struct EventTable;

#define EARSHOT_EVENT(Body, name, ...)             \
  template <>                                      \
  struct EventTable<event::Body> {                 \
    using E = event::Body;                         \
    static constexpr std::string_view type = name; \
    static constexpr auto fields = [] {            \
      using enum FieldKind;                        \
      return std::tuple{__VA_ARGS__};              \
    }();                                           \
  }

EARSHOT_EVENT(SessionStarted, "session.started",  //
              event_field<id>("program", &E::program).required(),
              event_field<id>("dialect", &E::dialect).required(), event_field<label>("version", &E::version),
              event_field<label>("cwd", &E::cwd), event_field<label>("git_branch", &E::git_branch),
              event_field<label>("project", &E::project), event_field<text>("title", &E::title),
              event_field<id>("continues", &E::continues), event_field<label>("mode", &E::mode),
              event_field<label>("permission_mode", &E::permission_mode),
              event_field<label>("sandbox", &E::sandbox), event_field<label>("source", &E::source),
              event_field<label>("originator", &E::originator), event_field<id>("parent", &E::parent),
              event_field<label>("agent_type", &E::agent_type));

EARSHOT_EVENT(SessionUpdated, "session.updated",  //
              event_field<text>("title", &E::title), event_field<label>("cwd", &E::cwd),
              event_field<label>("git_branch", &E::git_branch), event_field<label>("model", &E::model),
              event_field<label>("version", &E::version), event_field<label>("mode", &E::mode),
              event_field<label>("permission_mode", &E::permission_mode),
              event_field<label>("sandbox", &E::sandbox));

EARSHOT_EVENT(TurnStarted, "turn.started",  //
              event_field<text>("prompt", &E::prompt), event_field<id>("origin", &E::origin).required());

EARSHOT_EVENT(TurnFinished, "turn.finished",  //
              event_field<id>("outcome", &E::outcome).required(),
              event_field<flag_if_true>("inferred", &E::inferred),
              event_field<label>("stop_reason", &E::stop_reason),
              event_field<number>("duration_ms", &E::duration_ms),
              event_field<number>("tools", &E::tools).required(),
              event_field<usage>("usage", &E::usage).required(),
              event_field<number>("waited_ms", &E::waited_ms));

EARSHOT_EVENT(MessageAdded, "message.added",  //
              event_field<id>("role", &E::role).required(), event_field<label>("kind", &E::kind).required(),
              event_field<text>("text", &E::text), event_field<id>("message", &E::message),
              event_field<label>("model", &E::model), event_field<media>("media", &E::media));

EARSHOT_EVENT(ToolInvoked, "tool.invoked",  //
              event_field<id>("call", &E::call).required(), event_field<label>("tool", &E::tool).required(),
              event_field<input>("input", &E::input), event_field<id>("message", &E::message));

EARSHOT_EVENT(ToolFinished, "tool.finished",  //
              event_field<id>("call", &E::call).required(), event_field<label>("tool", &E::tool),
              event_field<id>("outcome", &E::outcome).required(), event_field<text>("output", &E::output),
              event_field<media>("media", &E::media), event_field<number>("duration_ms", &E::duration_ms),
              event_field<id>("background", &E::background));

EARSHOT_EVENT(TodoUpdated, "todo.updated",  //
              event_field<todos>("todos", &E::todos).required(),
              event_field<label>("source", &E::source).required());

EARSHOT_EVENT(CompactionStarted, "compaction.started", event_field<label>("trigger", &E::trigger));

EARSHOT_EVENT(CompactionFinished, "compaction.finished",  //
              event_field<label>("trigger", &E::trigger), event_field<number>("pre_tokens", &E::pre_tokens),
              event_field<number>("post_tokens", &E::post_tokens),
              event_field<number>("duration_ms", &E::duration_ms),
              event_field<label>("kind", &E::kind).required());

EARSHOT_EVENT(AgentStarted, "agent.started",  //
              event_field<id>("subagent", &E::subagent), event_field<label>("agent_type", &E::agent_type),
              event_field<text>("description", &E::description), event_field<id>("call", &E::call).required(),
              event_field<flag_if_true>("background", &E::background));

EARSHOT_EVENT(AgentFinished, "agent.finished",  //
              event_field<id>("subagent", &E::subagent), event_field<label>("agent_type", &E::agent_type),
              event_field<text>("description", &E::description), event_field<id>("call", &E::call),
              event_field<id>("outcome", &E::outcome).required(),
              event_field<number>("duration_ms", &E::duration_ms), event_field<number>("tokens", &E::tokens),
              event_field<number>("tools", &E::tools),
              event_field<flag_if_true>("background", &E::background));

EARSHOT_EVENT(TaskFinished, "task.finished",  //
              event_field<id>("task", &E::task).required(), event_field<id>("call", &E::call),
              event_field<id>("outcome", &E::outcome).required(), event_field<text>("summary", &E::summary));

EARSHOT_EVENT(QueueChanged, "queue.changed",  //
              event_field<label>("operation", &E::operation).required(), event_field<text>("text", &E::text));

EARSHOT_EVENT(UsageUpdated, "usage.updated",  //
              event_field<id>("message", &E::message), event_field<label>("model", &E::model),
              event_field<usage_inline>("", &E::of_message),
              event_field<usage>("total", &E::total).required(),
              event_field<number>("cost_usd", &E::cost_usd), event_field<number>("reasoning", &E::reasoning),
              event_field<number>("context_tokens", &E::context_tokens),
              event_field<number>("context_window", &E::context_window));

EARSHOT_EVENT(LimitsUpdated, "limits.updated",  //
              event_field<label>("limit", &E::limit), event_field<label>("plan", &E::plan),
              event_field<label>("reached", &E::reached),
              event_field<windows>("windows", &E::windows).required());

EARSHOT_EVENT(ApiFailed, "api.failed",  //
              event_field<number>("status", &E::status), event_field<text>("error", &E::error),
              event_field<number>("attempt", &E::attempt),
              event_field<number>("max_attempts", &E::max_attempts),
              event_field<number>("retry_in_ms", &E::retry_in_ms),
              event_field<flag>("fatal", &E::fatal).required(), event_field<label>("kind", &E::kind));

EARSHOT_EVENT(FilesSnapshotted, "files.snapshotted",  //
              event_field<id>("message", &E::message), event_field<files>("files", &E::files));

EARSHOT_EVENT(LineSkipped, "line.skipped",  //
              event_field<number>("line", &E::line).required(),
              event_field<number>("lines", &E::lines).required(),
              event_field<number>("bytes", &E::bytes).required(),
              event_field<label>("reason", &E::reason).required(),
              event_field<flag>("salvaged", &E::salvaged).required());

#undef EARSHOT_EVENT

}  // namespace earshot
