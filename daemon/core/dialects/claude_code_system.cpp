// claude-code: `system` records by subtype, `attachment` records by kind.
#include <algorithm>

#include "core/dialects/claude_code.hpp"

namespace earshot::dialects {
namespace {

void said(const Fields& f, Record& out) {
  if (const auto content = text_of_content(f.content, out))
    out.facts.push_back(fact::MessageBlock{"system", "text", content, std::nullopt});
}

void turn_duration(const Fields& f, Record& out) {
  out.facts.push_back(
      fact::TurnEnd{"completed", {}, f.durationMs ? dom::as_int(*f.durationMs) : std::nullopt, true});
}

void stop_hook_summary(const Fields& f, Record& out) {
  dom::array errors;
  const bool failed = f.hookErrors && !f.hookErrors->get_array().get(errors) && errors.size() > 0;
  if (!truth(f.preventedContinuation) && !failed)
    out.facts.push_back(fact::TurnEnd{"completed", {}, std::nullopt, true});
}

void compaction(const Value& metadata, std::string_view kind, Record& out) {
  fact::Compaction done{.started = false, .kind = kind};
  if (metadata) {
    done.trigger = dom::text_of(*metadata, "trigger");
    done.pre_tokens = dom::count_of(*metadata, "preTokens");
    done.post_tokens = dom::count_of(*metadata, "postTokens");
    done.duration_ms = dom::int_of(*metadata, "durationMs");
  }
  out.facts.push_back(done);
}
void compact_boundary(const Fields& f, Record& out) { compaction(f.compactMetadata, "full", out); }
void microcompact_boundary(const Fields& f, Record& out) { compaction(f.microcompactMetadata, "micro", out); }

void api_error(const Fields& f, Record& out) {
  fact::ApiError failed{.fatal = false};
  if (f.error && f.error->is_object()) {
    failed.status = dom::int_of(*f.error, "status");
    // 2.1.219 on: `formatted`; before, the API's own answer stands inside, once or twice.
    failed.error = dom::text_of(*f.error, "formatted");
    Value inner = *f.error;
    while (failed.error.empty() && inner && inner->is_object()) {
      failed.error = dom::text_of(*inner, "message");
      inner = dom::member(*inner, "error");
    }
    if (failed.error.empty())
      if (const auto cause = dom::member(*f.error, "cause")) failed.error = dom::text_of(*cause, "code");
  } else {
    failed.error = text(f.error);
  }
  if (f.retryAttempt) failed.attempt = dom::as_int(*f.retryAttempt);
  if (f.maxRetries) failed.max_attempts = dom::as_int(*f.maxRetries);
  if (f.retryInMs) failed.retry_in_ms = dom::as_int(*f.retryInMs);
  out.facts.push_back(failed);
}

void scheduled_task_fire(const Fields&, Record& out) { out.facts.push_back(fact::ScheduledFire{}); }
void nothing(const Fields&, Record&) {}

void queued_command(const Fields& f, Record& out) {
  const Value prompt = dom::member(*f.attachment, "prompt");
  const auto said_text = text_of_content(prompt, out);
  const std::string_view mode = dom::text_of(*f.attachment, "commandMode");
  if (mode == "task-notification" || (said_text && said_text->starts_with("<task-notification>"))) {
    if (said_text) read_notifications(*said_text, out);
    return;
  }
  if (said_text) {
    const std::string_view kept = without_reminders(*said_text, out);
    if (!kept.empty()) out.facts.push_back(fact::Absorbed{kept, std::nullopt});
  }
  dom::array blocks;
  if (!prompt || prompt->get_array().get(blocks)) return;
  for (const dom::element block : blocks) {
    const std::string_view kind = dom::text_of(block, "type");
    if (kind == "image" || kind == "document")
      out.facts.push_back(fact::Absorbed{std::nullopt, media_of(kind, block)});
  }
}

void max_turns_reached(const Fields&, Record& out) {
  out.facts.push_back(fact::TurnEnd{"completed", "max_turns", std::nullopt, false});
}

void reminder(const Fields& f, Record& out) {
  if (const auto content = dom::member(*f.attachment, "content"); content && content->is_array())
    out.facts.push_back(fact::TodoList{todos_of(*content), dom::text_of(*f.attachment, "type")});
}

struct Rule {
  std::string_view kind;
  void (*read)(const Fields&, Record&);
  std::string_view versions;  // that were seen to write it
};

constexpr Rule subtypes[] = {
    {"turn_duration", turn_duration, "2.1.1 -"},
    {"stop_hook_summary", stop_hook_summary, "2.0.64 -"},
    {"compact_boundary", compact_boundary, "1.0.93 -"},
    {"microcompact_boundary", microcompact_boundary, "2.1.12 - 2.1.22"},
    {"api_error", api_error, "2.0.5 -"},
    {"scheduled_task_fire", scheduled_task_fire, "2.1.197 -"},
    {"away_summary", said, "2.1.108 -"},
    {"informational", said, "2.1.108 -"},
    {"bridge_status", said, "2.1.76 - 2.1.197"},
    {"model_refusal_fallback", said, "2.1.217 -"},
    {"local_command", nothing, "2.0.76 -"},
};

constexpr Rule attachments[] = {
    {"queued_command", queued_command, "2.1.105 -"},
    {"max_turns_reached", max_turns_reached, "2.1.330 -"},
    {"task_reminder", reminder, "2.1.98 -"},
    {"todo_reminder", reminder, "2.1.220 -"},
    {"agent_listing_delta", nothing, "2.1.146 -"},
    {"auto_mode", nothing, "2.1.119 -"},
    {"auto_mode_exit", nothing, "2.1.119 -"},
    {"batching_reminder_sent", nothing, "2.1.220 -"},
    {"budget_usd", nothing, "2.1.220 -"},
    {"command_permissions", nothing, "2.1.101 -"},
    {"compact_file_reference", nothing, "2.1.217 -"},
    {"date", nothing, "2.1.330 -"},
    {"date_change", nothing, "2.1.108 -"},
    {"deferred_tools_delta", nothing, "2.1.90 -"},
    {"deferred_tools_record", nothing, "2.1.330 -"},
    {"dynamic_skill", nothing, "2.1.220 -"},
    {"edited_text_file", nothing, "2.1.101 -"},
    {"environment", nothing, "2.1.330 -"},
    {"file", nothing, "2.1.209 -"},
    {"goal_status", nothing, "2.1.153 -"},
    {"hook_additional_context", nothing, "2.1.98 -"},
    {"hook_blocking_error", nothing, "2.1.98 -"},
    {"hook_cancelled", nothing, "2.1.215 -"},
    {"hook_non_blocking_error", nothing, "2.1.119 -"},
    {"hook_success", nothing, "2.1.98 -"},
    {"hook_system_message", nothing, "2.1.98 -"},
    {"invoked_skills", nothing, "2.1.220 -"},
    {"mcp_instructions_delta", nothing, "2.1.90 -"},
    {"model", nothing, "2.1.330 -"},
    {"nested_memory", nothing, "2.1.197 -"},
    {"plan_mode", nothing, "2.1.101 -"},
    {"plan_mode_exit", nothing, "2.1.101 -"},
    {"plan_mode_reentry", nothing, "2.1.108 -"},
    {"prompt_snapshot", nothing, "2.1.330 -"},
    {"read_truncation_notice", nothing, "2.1.220 -"},
    {"remote_session_change", nothing, "2.1.330 -"},
    {"session_context", nothing, "2.1.330 -"},
    {"silent_turn_reminder", nothing, "2.1.330 -"},
    {"skill_listing", nothing, "2.1.96 -"},
    {"task_status", nothing, "2.1.220 -"},
    {"total_tokens_reminder", nothing, "2.1.236 -"},
    {"ultra_effort_enter", nothing, "2.1.220 -"},
    {"ultra_effort_exit", nothing, "2.1.220 -"},
    {"unknown_command_fallback", nothing, "2.1.330 -"},
    {"workflow_keyword_request", nothing, "2.1.212 -"},
};

void apply(std::span<const Rule> rules, std::string_view kind, const Fields& f, Record& out) {
  out.type = out.keep(std::string(out.type) + '/' + std::string(kind));
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& one) { return one.kind == kind; });
  out.unknown = rule == rules.end();
  if (!out.unknown) rule->read(f, out);
}

}  // namespace

void read_system(const Fields& f, Record& out) {
  const std::string_view subtype = text(f.subtype);
  if (subtype.empty()) return said(f, out);
  apply(subtypes, subtype, f, out);
}

void read_attachment(const Fields& f, Record& out) {
  if (!f.attachment || !f.attachment->is_object()) {
    out.unknown = true;
    return;
  }
  apply(attachments, dom::text_of(*f.attachment, "type"), f, out);
}

}  // namespace earshot::dialects
