// claude-code: `system` records by subtype, `attachment` records by kind.
#include "agents/claude_code/reader.hpp"

namespace earshot::claude_code {
namespace {

void system_message(const Fields& f, Record& out) {
  if (const auto content = text_of_content(f.content, out))
    out.facts.push_back(fact::MessageBlock{"system", "text", content, std::nullopt});
}

void turn_duration(const Fields& f, Record& out) {
  out.facts.push_back(fact::TurnEnd{"completed", {}, not_negative(f.durationMs.as_int()), true});
  out.facts.push_back(fact::Pending{f.pendingBackgroundAgentCount.as_count().value_or(0),
                                    f.pendingWorkflowCount.as_count().value_or(0)});
}

void agents_killed(const Fields&, Record& out) { out.facts.push_back(fact::AgentsKilled{}); }

void stop_hook_summary(const Fields& f, Record& out) {
  const bool failed = !f.hookErrors.items().empty();
  if (!f.preventedContinuation.as_bool() && !failed)
    out.facts.push_back(fact::TurnEnd{"completed", {}, std::nullopt, true});
}

void compaction(const Value& metadata, std::string_view kind, Record& out) {
  fact::Compaction finished{.started = false, .kind = kind};
  if (metadata) {
    finished.trigger = metadata.text_of("trigger");
    finished.pre_tokens = metadata.count_of("preTokens");
    finished.post_tokens = metadata.count_of("postTokens");
    finished.duration_ms = not_negative(metadata.int_of("durationMs"));
  }
  out.facts.push_back(finished);
}
void compact_boundary(const Fields& f, Record& out) { compaction(f.compactMetadata, "full", out); }
void microcompact_boundary(const Fields& f, Record& out) { compaction(f.microcompactMetadata, "micro", out); }

void api_error(const Fields& f, Record& out) {
  fact::ApiError failed{.fatal = false};
  if (f.error.is_object()) {
    failed.status = f.error.int_of("status");
    // Since 2.1.219: `formatted`. Before: the API's response, nested once or twice.
    failed.error = f.error.text_of("formatted");
    Value inner = f.error;
    while (failed.error.empty() && inner.is_object()) {
      failed.error = inner.text_of("message");
      inner = inner.member("error");
    }
    if (failed.error.empty()) failed.error = f.error.member("cause").text_of("code");
  } else {
    failed.error = f.error.as_text();
  }
  failed.attempt = not_negative(f.retryAttempt.as_int());
  failed.max_attempts = not_negative(f.maxRetries.as_int());
  failed.retry_in_ms = not_negative(f.retryInMs.as_int());
  out.facts.push_back(failed);
}

void scheduled_task_fire(const Fields& f, Record& out) {
  out.facts.push_back(fact::ScheduledFire{f.taskId.as_text()});
}

void queued_command(const Fields& f, Record& out) {
  const Value prompt = f.attachment.member("prompt");
  const auto prompt_text = text_of_content(prompt, out);
  const std::string_view mode = f.attachment.text_of("commandMode");
  if (mode == "task-notification" || (prompt_text && prompt_text->starts_with("<task-notification>"))) {
    if (prompt_text) read_notifications(*prompt_text, out);
    return;
  }
  if (prompt_text) {
    const std::string_view text = without_reminders(*prompt_text, out);
    if (!text.empty()) out.facts.push_back(fact::Absorbed{text, std::nullopt});
  }
  for (const Value& block : prompt.items()) {
    const std::string_view kind = block.text_of("type");
    if (is_media(kind))
      out.facts.push_back(fact::Absorbed{std::nullopt, media_of(kind, block.member("source"))});
  }
}

void max_turns_reached(const Fields&, Record& out) {
  out.facts.push_back(fact::TurnEnd{"completed", "max_turns", std::nullopt, false});
}

void todo_reminder(const Fields& f, Record& out) {
  if (const Value content = f.attachment.member("content"); content.is_array())
    out.facts.push_back(fact::TodoList{todos_of(content), f.attachment.text_of("type")});
}

constexpr Rule subtypes[] = {
    {"turn_duration", turn_duration, "2.1.1 -"},
    {"agents_killed", agents_killed, "2.1.332 -"},
    {"stop_hook_summary", stop_hook_summary, "2.0.64 -"},
    {"compact_boundary", compact_boundary, "1.0.93 -"},
    {"microcompact_boundary", microcompact_boundary, "2.1.12 - 2.1.22"},
    {"api_error", api_error, "2.0.5 -"},
    {"scheduled_task_fire", scheduled_task_fire, "2.1.197 -"},
    {"away_summary", system_message, "2.1.108 -"},
    {"informational", system_message, "2.1.108 -"},
    {"bridge_status", system_message, "2.1.76 - 2.1.197"},
    {"model_refusal_fallback", system_message, "2.1.217 -"},
};

constexpr Rule attachments[] = {
    {"queued_command", queued_command, "2.1.105 -"},
    {"max_turns_reached", max_turns_reached, "2.1.330 -"},
    {"task_reminder", todo_reminder, "2.1.98 -"},
    {"todo_reminder", todo_reminder, "2.1.220 -"},
};

constexpr std::string_view subtypes_without_facts[] = {"local_command"};
constexpr std::string_view attachments_without_facts[] = {"agent_listing_delta",
                                                          "fork_briefing",
                                                          "auto_mode",
                                                          "auto_mode_exit",
                                                          "batching_reminder_sent",
                                                          "budget_usd",
                                                          "command_permissions",
                                                          "compact_file_reference",
                                                          "date",
                                                          "date_change",
                                                          "deferred_tools_delta",
                                                          "deferred_tools_record",
                                                          "dynamic_skill",
                                                          "edited_text_file",
                                                          "environment",
                                                          "file",
                                                          "goal_status",
                                                          "hook_additional_context",
                                                          "hook_blocking_error",
                                                          "hook_cancelled",
                                                          "hook_non_blocking_error",
                                                          "hook_success",
                                                          "hook_system_message",
                                                          "invoked_skills",
                                                          "mcp_instructions_delta",
                                                          "model",
                                                          "nested_memory",
                                                          "plan_mode",
                                                          "plan_mode_exit",
                                                          "plan_mode_reentry",
                                                          "prompt_snapshot",
                                                          "read_truncation_notice",
                                                          "remote_session_change",
                                                          "sandbox_instructions",
                                                          "session_context",
                                                          "session_cron_carry",
                                                          "silent_turn_reminder",
                                                          "skill_listing",
                                                          "task_status",
                                                          "total_tokens_reminder",
                                                          "ultra_effort_enter",
                                                          "ultra_effort_exit",
                                                          "unknown_command_fallback",
                                                          "workflow_keyword_request"};

void apply(std::span<const Rule> rules, std::span<const std::string_view> without_facts,
           std::string_view kind, const Fields& f, Record& out) {
  out.type = out.keep(std::string(out.type) + '/' + std::string(kind));
  if (const Rule* rule = find_rule(rules, kind)) return rule->read(f, out);
  out.unknown = !is_one_of(kind, without_facts);
}

}  // namespace

void read_system(const Fields& f, Record& out) {
  const std::string_view subtype = f.subtype.as_text();
  if (subtype.empty()) return system_message(f, out);
  apply(subtypes, subtypes_without_facts, subtype, f, out);
}

void read_attachment(const Fields& f, Record& out) {
  if (!f.attachment.is_object()) {
    out.unknown = true;
    return;
  }
  apply(attachments, attachments_without_facts, f.attachment.text_of("type"), f, out);
}

}  // namespace earshot::claude_code
