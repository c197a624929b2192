// claude-code: what Claude Code writes since its first public versions, all eras; one tolerant reader.
//
// A record is a JSON object with a `type`. Chain records (user, assistant, system, attachment, progress) have
// uuid, parentUuid, timestamp, sessionId, cwd and version; metadata records (mode, ai-title, queue-operation,
// …) mostly have none of them and are appended again and again, unchanged. user and assistant carry an API
// message:
//   {"type":"assistant","uuid":…,"message":{"id":…,"model":…,"content":[{"type":"text","text":…}],"stop_reason":…,"usage":{…}}}
//   {"type":"user","uuid":…,"message":{"content":[{"type":"tool_result","tool_use_id":…,"content":…}]},"toolUseResult":{…}}
// One content block a line since 1.0.17; the older format allows several. Eras differ in fields, never in
// meaning.
#pragma once
#include "core/dialect.hpp"
#include "core/dialects/fields.hpp"

namespace earshot::dialects {

const Dialect& claude_code();
const Dialect& claude_messages();
const Dialect& claude_flat();

/// A chain record whose type claude-code knows.
bool is_claude_code_chain(std::string_view type);
/// A metadata record that claude-code knows.
bool is_claude_code_metadata(std::string_view type);

// The parts that claude-messages shares.
void read_user(const Fields& fields, std::string_view raw, Record& out);
void read_assistant(const Fields& fields, std::string_view raw, Record& out);
void read_system(const Fields& fields, Record& out);
void read_attachment(const Fields& fields, Record& out);

/// What a todo or task list item says, in any era's words.
std::vector<Todo> todos_of(const dom::element& list);
Todo todo_of(const dom::element& item);

/// Every `<task-notification>` of a text.
void read_notifications(std::string_view text, Record& out);

/// A call; `raw_input` is its input as JSON text.
fact::Invocation invocation(std::string_view call, std::string_view tool, const Value& input,
                            std::string_view raw_input);

/// Text without what `<system-reminder>` put into it, trimmed.
std::string_view without_reminders(std::string_view text, Record& out);

}  // namespace earshot::dialects
