#include "agents/claude_code/reader.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "agents/claude_code/records.hpp"
#include "base/quantities.hpp"
#include "core/member_table.hpp"

namespace earshot::claude_code {
namespace {

#define FIELD(name) \
  { #name, &Fields::name }
// clang-format off
constexpr MemberTable<Fields, 512> field_table({
    FIELD(type), FIELD(subtype), FIELD(uuid), FIELD(parentUuid), FIELD(timestamp), FIELD(sessionId),
    FIELD(version), FIELD(cwd), FIELD(gitBranch), FIELD(message), FIELD(isSidechain), FIELD(isMeta),
    FIELD(isDeleted), FIELD(isAborted), FIELD(isCompactSummary), FIELD(isApiErrorMessage),
    FIELD(toolUseResult), FIELD(toolDenialKind), FIELD(toolDenialBeforeRun), FIELD(permissionDecision),
    FIELD(permissionMode), FIELD(promptSource), FIELD(origin), FIELD(turnPosition), FIELD(requestId),
    FIELD(costUSD), FIELD(durationMs), FIELD(content), FIELD(attachment), FIELD(data), FIELD(parentToolUseID),
    FIELD(operation), FIELD(snapshot), FIELD(messageId), FIELD(trackingPath), FIELD(summary), FIELD(leafUuid),
    FIELD(aiTitle), FIELD(customTitle), FIELD(agentName), FIELD(mode), FIELD(totalCostUSD),
    FIELD(compactMetadata), FIELD(microcompactMetadata), FIELD(error), FIELD(apiErrorStatus),
    FIELD(retryInMs), FIELD(retryAttempt), FIELD(maxRetries), FIELD(preventedContinuation), FIELD(hookErrors),
    FIELD(toolName), FIELD(toolArguments), FIELD(isError), FIELD(pendingBackgroundAgentCount),
    FIELD(pendingWorkflowCount), FIELD(entrypoint), FIELD(taskId),
    FIELD(promptId), FIELD(continuedInSessionId),
});
// clang-format on
#undef FIELD

constexpr MemberTable<Block, 64> block_table({{"type", &Block::type},
                                              {"text", &Block::text},
                                              {"thinking", &Block::thinking},
                                              {"id", &Block::id},
                                              {"name", &Block::name},
                                              {"input", &Block::input},
                                              {"tool_use_id", &Block::tool_use_id},
                                              {"content", &Block::content},
                                              {"is_error", &Block::is_error},
                                              {"source", &Block::source}});

void read_summary(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::summary, f.summary.as_text(), f.leafUuid.as_text()});
}
void read_ai_title(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::ai, f.aiTitle.as_text(), {}});
}
void read_custom_title(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::custom, f.customTitle.as_text(), {}});
}
void read_agent_name(const Fields& f, Record& out) {
  out.facts.push_back(fact::Title{fact::Title::Kind::agent_name, f.agentName.as_text(), {}});
}
void read_mode(const Fields& f, Record& out) { out.facts.push_back(fact::Mode{f.mode.as_text()}); }
void read_permission_mode(const Fields& f, Record& out) {
  out.facts.push_back(fact::PermissionMode{f.permissionMode.as_text()});
}
void read_cost(const Fields& f, Record& out) {
  if (const auto usd = f.totalCostUSD.as_double(); usd && *usd >= 0) out.facts.push_back(fact::Cost{*usd});
}
void read_continued(const Fields& f, Record& out) {
  out.facts.push_back(fact::Continued{f.continuedInSessionId.as_text()});
}
void read_queue(const Fields& f, Record& out) {
  const auto content = text_of_content(f.content, out);
  out.facts.push_back(fact::Queue{f.operation.as_text(), content});
  if (content) read_notifications(*content, out);
}
void read_snapshot(const Fields& f, Record& out) {
  fact::Files snapshot{f.messageId.as_text(), {}};
  for (const Member& file : f.snapshot.member("trackedFileBackups").members())
    if (std::find(snapshot.files.begin(), snapshot.files.end(), file.key) == snapshot.files.end())
      snapshot.files.push_back(file.key);
  if (!snapshot.files.empty()) out.facts.push_back(std::move(snapshot));
}
void read_delta(const Fields& f, Record& out) {
  if (const auto path = f.trackingPath.as_text(); !path.empty())
    out.facts.push_back(fact::Files{f.messageId.as_text(), {path}});
}
void read_progress(const Fields& f, Record& out) {
  if (f.data.text_of("type") == "agent_progress")
    out.facts.push_back(fact::AgentLink{f.parentToolUseID.as_text(), f.data.text_of("agentId")});
}

// Chain records other than user and assistant.
constexpr Rule chain_rules[] = {
    {"system", read_system, "1.0.43 -"},
    {"attachment", read_attachment, "2.1.90 -"},
    {"progress", read_progress, "2.1.12 - 2.1.81"},
};

// Session state, written repeatedly, and records without facts.
constexpr Rule metadata_rules[] = {
    {"summary", read_summary, "0.2 - 2.1.29"},
    {"ai-title", read_ai_title, "2.1.126 -"},
    {"custom-title", read_custom_title, "2.1.81 -"},
    {"agent-name", read_agent_name, "2.1.81 - 2.1.108"},
    {"mode", read_mode, "2.1.205 -"},
    {"permission-mode", read_permission_mode, "2.1.92 -"},
    {"queue-operation", read_queue, "2.0.37 -"},
    {"file-history-snapshot", read_snapshot, "2.0.5 -"},
    {"file-history-delta", read_delta, "2.1.212 -"},
    {"cost-state", read_cost, "2.1.330 -"},
    {"continued-in", read_continued, "2.1.332 -"},
};
constexpr std::string_view metadata_without_facts[] = {"agent-color",
                                                       "api-request-resumed",
                                                       "artifact-autoreact-ledger",
                                                       "artifact-comment-monitor",
                                                       "attribution-snapshot",
                                                       "content-replacement",
                                                       "data-flow-incomplete",
                                                       "data-flow-records",
                                                       "derived-from",
                                                       "dev-mods",
                                                       "ended-by-model",
                                                       "fork-context-ref",
                                                       "history-suppression",
                                                       "isolation-latch",
                                                       "memory-mode",
                                                       "observer-ref",
                                                       "resume-head-vouch",
                                                       "session-owner",
                                                       "task-summary",
                                                       "last-prompt",
                                                       "pr-link",
                                                       "bridge-session",
                                                       "frame-link",
                                                       "atis-latch",
                                                       "tools-used",
                                                       "api-request",
                                                       "api-request-blob",
                                                       "api-request-shape",
                                                       "worktree-state",
                                                       "relocated",
                                                       "agent-setting",
                                                       "tag"};

bool is_metadata(std::string_view type) {
  return find_rule(metadata_rules, type) || is_one_of(type, metadata_without_facts);
}

constexpr RecordDialect code_dialect{{"claude-code"}, read_code};
constexpr RecordDialect flat_dialect{{"claude-flat"}, read_flat};
constexpr RecordDialect messages_dialect{{"claude-messages"}, read_messages};

// Signs of each dialect, most specific first. The path of a file proves nothing.

bool is_messages(const Fields& f, std::string_view type) {
  return f.timestamp.is_number() || type == "human" || type == "tool_result" || type == "compact_prelude" ||
         type == "compact_recap";
}
bool is_flat(const Fields& f, std::string_view type) {
  return f.message.is_string() || f.toolName || f.toolArguments || type == "compact_system";
}
bool is_code(const Fields& f, std::string_view type) {
  const bool is_chain = type == "user" || type == "assistant" || find_rule(chain_rules, type) != nullptr;
  return is_chain && (f.uuid || f.sessionId || f.message.is_object());
}

struct Sign {
  bool (*matches)(const Fields&, std::string_view type);
  const Dialect* dialect;
};
const Sign signs[] = {
    {is_messages, &messages_dialect},
    {is_flat, &flat_dialect},
    {is_code, &code_dialect},
};

class Format final : public RecordFormat {
 public:
  std::string_view program() const override { return program_name; }

  const Dialect* detect(const Value& json) const override {
    const Fields fields(json);
    const std::string_view type = fields.type.as_text();
    if (is_metadata(type)) return nullptr;
    for (const Sign& sign : signs)
      if (sign.matches(fields, type)) return sign.dialect;
    return nullptr;
  }
  const Dialect* metadata_dialect(const Value& json) const override {
    return is_metadata(json.text_of("type")) ? &code_dialect : nullptr;
  }
  std::unique_ptr<RecordReader> make_reader(bool reads_internal) const override {
    return std::make_unique<Records>(reads_internal);
  }
  std::unique_ptr<RecordsAhead> make_ahead() const override { return std::make_unique<ReadRecords>(); }
};

}  // namespace

const RecordFormat& format() {
  static const Format format;
  return format;
}

void read_code(const Value& json, Record& out) {
  const Fields fields(json);
  out.type = fields.type.as_text();
  read_header(fields, out);
  if (out.type == "user") return read_user(fields, out);
  if (out.type == "assistant") return read_assistant(fields, out);
  const Rule* rule = find_rule(chain_rules, out.type);
  if (!rule) rule = find_rule(metadata_rules, out.type);
  if (rule)
    rule->read(fields, out);
  else
    out.unknown = !is_one_of(out.type, metadata_without_facts);
}

const Rule* find_rule(std::span<const Rule> rules, std::string_view kind) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.kind == kind; });
  return found == rules.end() ? nullptr : &*found;
}

Fields::Fields(const Value& json) { field_table.read(json, *this); }
Block::Block(const Value& json) { block_table.read(json, *this); }

void read_header(const Fields& fields, Record& out) {
  out.uuid = fields.uuid.as_text();
  out.parent = fields.parentUuid.as_text();
  out.has_parent_key = static_cast<bool>(fields.parentUuid);
  out.session = fields.sessionId.as_text();
  out.version = fields.version.as_text();
  out.cwd = fields.cwd.as_text();
  out.git_branch = fields.gitBranch.as_optional_text();
  out.is_headless = fields.entrypoint.as_text().starts_with("sdk");  // `claude -p` and its SDKs
  out.prompt = fields.promptId.as_text();
  out.sidechain = fields.isSidechain.as_bool();
  out.deleted = fields.isDeleted.as_bool();
  out.aborted = fields.isAborted.as_bool();
  out.has_turn_position = fields.turnPosition.is_object();
  out.request = fields.requestId.as_text();
  if (fields.timestamp.is_string()) {
    const std::string_view written = fields.timestamp.as_text();
    if (const auto ms = parse_time(written)) {
      out.time = written;
      out.time_ms = *ms;
    }
  } else if (const auto ms = fields.timestamp.as_int();
             ms && *ms > 0 && *ms < 253'402'300'800'000) {  // year 10000
    out.time = out.keep(format_time(*ms));
    out.time_ms = *ms;
  }
}

bool is_media(std::string_view block_type) { return block_type == "image" || block_type == "document"; }

Media media_of(std::string_view block_type, const Value& source) {
  Media media{block_type, {}, 0};
  if (source) {
    media.media_type = source.text_of("media_type");
    std::string_view data = source.text_of("data");
    if (source.text_of("type") == "base64") {
      while (!data.empty() && data.back() == '=') data.remove_suffix(1);
      media.bytes = data.size() * 3 / 4;
    } else {
      media.bytes = data.size();
    }
  }
  return media;
}

std::optional<std::string_view> text_of_content(const Value& content, Record& out) {
  const std::optional<LazyText> text = lazy_text_of_content(content, out);
  return text ? std::optional(text->view()) : std::nullopt;
}

std::optional<LazyText> lazy_text_of_content(const Value& content, Record& out) {
  if (content.is_string()) return content.as_lazy_text();
  std::optional<LazyText> found;
  std::string joined;
  bool joins = false;
  for (const Value& block : content.items()) {
    const Value text = block.text_of("type") == "text" ? block.member("text") : Value{};
    if (!text.is_string()) continue;
    if (!found) {
      found = text.as_lazy_text();
      continue;
    }
    if (!joins) joined = found->view();
    joins = true;
    joined += '\n';
    joined += text.as_text();
  }
  return joins ? LazyText(out.keep(std::move(joined))) : found;
}

}  // namespace earshot::claude_code
