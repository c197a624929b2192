// Reads the records of Claude Code: every version since its first public one, with one tolerant reader per
// dialect.
//
// A record is a JSON object with a `type`. Chain records (user, assistant, system, attachment, progress) have
// uuid, parentUuid, timestamp, sessionId, cwd and version. Metadata records (mode, ai-title, queue-operation,
// …) mostly have none of them and are appended repeatedly, unchanged. user and assistant carry an API
// message:
//   {"type":"assistant","uuid":…,"message":{"id":…,"model":…,"content":[{"type":"text","text":…}],"stop_reason":…,"usage":{…}}}
//   {"type":"user","uuid":…,"message":{"content":[{"type":"tool_result","tool_use_id":…,"content":…}]},"toolUseResult":{…}}
// Since 1.0.17 a line has one content block; older versions write several. Versions differ in fields, never
// in meaning.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "agents/claude_code/record.hpp"
#include "core/record_reader.hpp"

namespace earshot::claude_code {

constexpr std::string_view program_name = "claude-code";

/// Detects the dialect of a transcript: claude-code, claude-flat or claude-messages.
const RecordFormat& format();

// What follows is shared by the reader's source files.

// The reader of each dialect.
void read_code(const Value& json, Record& out);
void read_flat(const Value& json, Record& out);
void read_messages(const Value& json, Record& out);

/// The members that records of any version may have, found in one pass. The last of two equal keys wins.
struct Fields {
  Value type, subtype, uuid, parentUuid, timestamp, sessionId, version, cwd, gitBranch, message, isSidechain,
      isMeta, isDeleted, isAborted, isCompactSummary, isApiErrorMessage, toolUseResult, toolDenialKind,
      toolDenialBeforeRun, permissionDecision, permissionMode, promptSource, origin, turnPosition, requestId,
      costUSD, durationMs, content, attachment, data, parentToolUseID, operation, snapshot, messageId,
      trackingPath, summary, leafUuid, aiTitle, customTitle, agentName, mode, totalCostUSD, compactMetadata,
      microcompactMetadata, error, apiErrorStatus, retryInMs, retryAttempt, maxRetries, preventedContinuation,
      hookErrors, toolName, toolArguments, isError, pendingBackgroundAgentCount, pendingWorkflowCount,
      entrypoint, taskId, promptId, continuedInSessionId;

  explicit Fields(const Value& json);
};

/// The members that content blocks of any type may have.
struct Block {
  Value type, text, thinking, id, name, input, tool_use_id, content, is_error, source;

  explicit Block(const Value& json);
};

/// How to read one kind of record.
struct Rule {
  std::string_view kind;
  void (*read)(const Fields&, Record&);
  std::string_view versions;  // observed to write it
};
/// Null: no rule of this kind.
const Rule* find_rule(std::span<const Rule> rules, std::string_view kind);

/// Reads uuid, parent, time, session and so on: everything but the facts.
void read_header(const Fields& fields, Record& out);
void read_user(const Fields& fields, Record& out);
void read_assistant(const Fields& fields, Record& out);
void read_system(const Fields& fields, Record& out);
void read_attachment(const Fields& fields, Record& out);

/// Absent if it is negative, which no duration or count is.
inline std::optional<std::int64_t> not_negative(std::optional<std::int64_t> number) {
  return number && *number >= 0 ? number : std::nullopt;
}

/// The items of a todo or task list in any version's spelling; deleted ones are left out.
std::vector<Todo> todos_of(const Value& list);
Todo todo_of(const Value& item);

/// Appends a fact for every `<task-notification>` in the text.
void read_notifications(std::string_view text, Record& out);

fact::Invocation invocation(std::string_view call, std::string_view tool, const Value& input);

/// The text without its `<system-reminder>` elements, trimmed.
std::string_view without_reminders(std::string_view text, Record& out);

bool is_media(std::string_view block_type);
/// `source`: of the block.
Media media_of(std::string_view block_type, const Value& source);

/// The text of `content`: a string, or its text blocks joined by newlines.
std::optional<std::string_view> text_of_content(const Value& content, Record& out);
std::optional<LazyText> lazy_text_of_content(const Value& content, Record& out);

}  // namespace earshot::claude_code
