// The members that records of every era may have, found in one pass. The last of two equal keys wins.
#pragma once
#include <optional>
#include <string_view>

#include "base/json_dom.hpp"
#include "core/record.hpp"

namespace earshot::dialects {

using Value = std::optional<dom::element>;

struct Fields {
  Value type, subtype, uuid, parentUuid, timestamp, sessionId, version, cwd, gitBranch, message, isSidechain,
      isMeta, isDeleted, isAborted, isCompactSummary, isApiErrorMessage, toolUseResult, toolDenialKind,
      toolDenialBeforeRun, permissionDecision, permissionMode, promptSource, origin, turnPosition, requestId,
      costUSD, durationMs, content, attachment, data, parentToolUseID, operation, snapshot, messageId,
      trackingPath, summary, leafUuid, aiTitle, customTitle, agentName, mode, totalCostUSD, compactMetadata,
      microcompactMetadata, error, apiErrorStatus, retryInMs, retryAttempt, maxRetries, preventedContinuation,
      hookErrors, toolName, toolArguments, isError;

  explicit Fields(const dom::element& json);
};

inline std::string_view text(const Value& value) { return value ? dom::text(*value) : std::string_view{}; }
inline bool truth(const Value& value) { return value && dom::truth(*value); }

/// uuid, parent, time, session and so on: everything about the record but what it says.
void read_header(const Fields& fields, Record& out);

/// The blocks of a message that hold what a person or a model said.
struct Block {
  std::string_view type;
  dom::element json;
  std::size_t index;  // in the content array
};

/// A media block's kind, type and decoded size.
Media media_of(std::string_view kind, const dom::element& block);

/// The text of `content`: a string, or its text blocks, a newline between.
std::optional<std::string_view> text_of_content(const Value& content, Record& out);

}  // namespace earshot::dialects
