// claude-code: `system` records by subtype, `attachment` records by kind.
#include <algorithm>

#include "agents/claude_code/reader.hpp"

namespace earshot::claude_code {
namespace {

void system_message(const Fields& f, Record& out) {
  if (const auto content = text_of_content(f.content, out))
    out.facts.push_back(fact::MessageBlock{"system", "text", content, std::nullopt});
}

void turn_duration(const Fields& f, Record& out) {
  out.facts.push_back(fact::TurnEnd{"completed", {}, integer(f.durationMs), true});
}

void stop_hook_summary(const Fields& f, Record& out) {
  dom::array errors;
  const bool failed = f.hookErrors && !f.hookErrors->get_array().get(errors) && errors.size() > 0;
  if (!is_true(f.preventedContinuation) && !failed)
    out.facts.push_back(fact::TurnEnd{"completed", {}, std::nullopt, true});
}

void compaction(const Value& metadata, std::string_view kind, Record& out) {
  fact::Compaction finished{.started = false, .kind = kind};
  if (metadata) {
    finished.trigger = dom::text_of(*metadata, "trigger");
    finished.pre_tokens = dom::count_of(*metadata, "preTokens");
    finished.post_tokens = dom::count_of(*metadata, "postTokens");
    finished.duration_ms = dom::int_of(*metadata, "durationMs");
  }
  out.facts.push_back(finished);
}
void compact_boundary(const Fields& f, Record& out) { compaction(f.compactMetadata, "full", out); }
void microcompact_boundary(const Fields& f, Record& out) { compaction(f.microcompactMetadata, "micro", out); }

void api_error(const Fields& f, Record& out) {
  fact::ApiError failed{.fatal = false};
  if (f.error && f.error->is_object()) {
    failed.status = dom::int_of(*f.error, "status");
    // Since 2.1.219: `formatted`. Before: the API's response, nested once or twice.
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
  failed.attempt = integer(f.retryAttempt);
  failed.max_attempts = integer(f.maxRetries);
  failed.retry_in_ms = integer(f.retryInMs);
  out.facts.push_back(failed);
}

void scheduled_task_fire(const Fields&, Record& out) { out.facts.push_back(fact::ScheduledFire{}); }
void ignore(const Fields&, Record&) {}

void queued_command(const Fields& f, Record& out) {
  const Value prompt = dom::member(*f.attachment, "prompt");
  const auto prompt_text = text_of_content(prompt, out);
  const std::string_view mode = dom::text_of(*f.attachment, "commandMode");
  if (mode == "task-notification" || (prompt_text && prompt_text->starts_with("<task-notification>"))) {
    if (prompt_text) read_notifications(*prompt_text, out);
    return;
  }
  if (prompt_text) {
    const std::string_view text = without_reminders(*prompt_text, out);
    if (!text.empty()) out.facts.push_back(fact::Absorbed{text, std::nullopt});
  }
  dom::array blocks;
  if (!prompt || prompt->get_array().get(blocks)) return;
  for (const dom::element block : blocks) {
    const std::string_view kind = dom::text_of(block, "type");
    if (is_media(kind)) out.facts.push_back(fact::Absorbed{std::nullopt, media_of(kind, block)});
  }
}

void max_turns_reached(const Fields&, Record& out) {
  out.facts.push_back(fact::TurnEnd{"completed", "max_turns", std::nullopt, false});
}

void todo_reminder(const Fields& f, Record& out) {
  if (const auto content = dom::member(*f.attachment, "content"); content && content->is_array())
    out.facts.push_back(fact::TodoList{todos_of(*content), dom::text_of(*f.attachment, "type")});
}

struct Rule {
  std::string_view kind;
  void (*read)(const Fields&, Record&);
  std::string_view versions;  // observed to write it
};

constexpr Rule subtypes[] = {
    {"turn_duration", turn_duration, "2.1.1 -"},
    {"stop_hook_summary", stop_hook_summary, "2.0.64 -"},
    {"compact_boundary", compact_boundary, "1.0.93 -"},
    {"microcompact_boundary", microcompact_boundary, "2.1.12 - 2.1.22"},
    {"api_error", api_error, "2.0.5 -"},
    {"scheduled_task_fire", scheduled_task_fire, "2.1.197 -"},
    {"away_summary", system_message, "2.1.108 -"},
    {"informational", system_message, "2.1.108 -"},
    {"bridge_status", system_message, "2.1.76 - 2.1.197"},
    {"model_refusal_fallback", system_message, "2.1.217 -"},
    {"local_command", ignore, "2.0.76 -"},
};

constexpr Rule attachments[] = {
    {"queued_command", queued_command, "2.1.105 -"},
    {"max_turns_reached", max_turns_reached, "2.1.330 -"},
    {"task_reminder", todo_reminder, "2.1.98 -"},
    {"todo_reminder", todo_reminder, "2.1.220 -"},
    {"agent_listing_delta", ignore, "2.1.146 -"},
    {"auto_mode", ignore, "2.1.119 -"},
    {"auto_mode_exit", ignore, "2.1.119 -"},
    {"batching_reminder_sent", ignore, "2.1.220 -"},
    {"budget_usd", ignore, "2.1.220 -"},
    {"command_permissions", ignore, "2.1.101 -"},
    {"compact_file_reference", ignore, "2.1.217 -"},
    {"date", ignore, "2.1.330 -"},
    {"date_change", ignore, "2.1.108 -"},
    {"deferred_tools_delta", ignore, "2.1.90 -"},
    {"deferred_tools_record", ignore, "2.1.330 -"},
    {"dynamic_skill", ignore, "2.1.220 -"},
    {"edited_text_file", ignore, "2.1.101 -"},
    {"environment", ignore, "2.1.330 -"},
    {"file", ignore, "2.1.209 -"},
    {"goal_status", ignore, "2.1.153 -"},
    {"hook_additional_context", ignore, "2.1.98 -"},
    {"hook_blocking_error", ignore, "2.1.98 -"},
    {"hook_cancelled", ignore, "2.1.215 -"},
    {"hook_non_blocking_error", ignore, "2.1.119 -"},
    {"hook_success", ignore, "2.1.98 -"},
    {"hook_system_message", ignore, "2.1.98 -"},
    {"invoked_skills", ignore, "2.1.220 -"},
    {"mcp_instructions_delta", ignore, "2.1.90 -"},
    {"model", ignore, "2.1.330 -"},
    {"nested_memory", ignore, "2.1.197 -"},
    {"plan_mode", ignore, "2.1.101 -"},
    {"plan_mode_exit", ignore, "2.1.101 -"},
    {"plan_mode_reentry", ignore, "2.1.108 -"},
    {"prompt_snapshot", ignore, "2.1.330 -"},
    {"read_truncation_notice", ignore, "2.1.220 -"},
    {"remote_session_change", ignore, "2.1.330 -"},
    {"session_context", ignore, "2.1.330 -"},
    {"silent_turn_reminder", ignore, "2.1.330 -"},
    {"skill_listing", ignore, "2.1.96 -"},
    {"task_status", ignore, "2.1.220 -"},
    {"total_tokens_reminder", ignore, "2.1.236 -"},
    {"ultra_effort_enter", ignore, "2.1.220 -"},
    {"ultra_effort_exit", ignore, "2.1.220 -"},
    {"unknown_command_fallback", ignore, "2.1.330 -"},
    {"workflow_keyword_request", ignore, "2.1.212 -"},
};

void apply(std::span<const Rule> rules, std::string_view kind, const Fields& f, Record& out) {
  out.type = out.keep(std::string(out.type) + '/' + std::string(kind));
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& each) { return each.kind == kind; });
  out.unknown = rule == rules.end();
  if (!out.unknown) rule->read(f, out);
}

}  // namespace

void read_system(const Fields& f, Record& out) {
  const std::string_view subtype = text(f.subtype);
  if (subtype.empty()) return system_message(f, out);
  apply(subtypes, subtype, f, out);
}

void read_attachment(const Fields& f, Record& out) {
  if (!f.attachment || !f.attachment->is_object()) {
    out.unknown = true;
    return;
  }
  apply(attachments, dom::text_of(*f.attachment, "type"), f, out);
}

}  // namespace earshot::claude_code
