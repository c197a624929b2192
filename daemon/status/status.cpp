#include "status/status.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/display_text.hpp"
#include "base/quantities.hpp"

namespace earshot::status {
namespace {

Status make_status(std::string_view state, std::string_view reason, std::string_view source,
                   std::string since) {
  Status status;
  status.state = state;
  status.reason = reason;
  status.source = source;
  status.since = std::move(since);
  return status;
}

/// The entry's time or, if it states none, that of the transcript.
std::string since_of(const RegistryEntry& entry, const TranscriptSummary& summary) {
  std::string since = format_time_if_valid(entry.updated_ms);
  return since.empty() ? summary.last_activity : since;
}

std::string later(const std::string& one, const std::string& other) {
  return parse_time(one).value_or(0) < parse_time(other).value_or(0) ? other : one;
}

Status ended(const Evidence& evidence, const TranscriptSummary& summary) {
  std::string since;
  if (evidence.seen_alive)
    since = format_time_if_valid(evidence.ended_ms);
  else
    since = later(evidence.entry ? format_time_if_valid(evidence.entry->updated_ms) : std::string(),
                  summary.last_activity);
  return make_status("ended", "", "registry", std::move(since));
}

std::string describe(const AgentProgram& program, const OpenCall& call) {
  return replace_controls(program.requests().describe_prompt(call.tool, call.input), detail_bytes_max);
}

/// `approve one of 2: Write: <file_path>; Bash: <command>`, newest first.
std::string describe(const AgentProgram& program, const std::vector<const OpenCall*>& calls) {
  constexpr std::string_view verb = "approve ";
  std::string text = "approve one of " + std::to_string(calls.size()) + ":";
  for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
    std::string one = describe(program, **call);
    if (one.starts_with(verb)) one.erase(0, verb.size());
    text += (call == calls.rbegin() ? " " : "; ") + one;
  }
  return replace_controls(text, detail_bytes_max);
}

/// Null: it is not open.
const OpenCall* find_call(const TranscriptSummary& summary, const std::string& call) {
  const auto found = std::find_if(summary.calls.begin(), summary.calls.end(),
                                  [&](const OpenCall& each) { return each.call == call; });
  return call.empty() || found == summary.calls.end() ? nullptr : &*found;
}

/// The oldest question or plan that a call asks; null: none.
const OpenRequest* oldest_prompt(const TranscriptSummary& summary) {
  const auto found =
      std::find_if(summary.requests.begin(), summary.requests.end(),
                   [](const OpenRequest& each) { return each.kind != "permission" && !each.call.empty(); });
  return found == summary.requests.end() ? nullptr : &*found;
}

/// The open calls that may wait for permission. The transcript does not state which of several it is.
std::vector<const OpenCall*> calls_to_approve(const Evidence& evidence, const std::vector<OpenCall>& calls) {
  std::vector<const OpenCall*> found;
  for (const OpenCall& call : calls) {
    const bool is_answered = evidence.answered && evidence.answered->contains(call.call);
    if (!is_answered && evidence.program->requests().may_need_permission(call.tool)) found.push_back(&call);
  }
  return found;
}

/// Adds the pending call of a wait from the transcript, and a more exact reason.
void add_pending_call(const Evidence& evidence, const TranscriptSummary& summary, Status& status) {
  const AgentProgram& program = *evidence.program;
  const OpenRequest* const prompt = oldest_prompt(summary);
  const OpenCall* call = prompt ? find_call(summary, prompt->call) : nullptr;
  if (status.reason == "permission") {
    const std::vector<const OpenCall*> calls = calls_to_approve(evidence, summary.calls);
    if (calls.size() > 1) status.detail = describe(program, calls);
    call = calls.size() == 1 ? calls.front() : nullptr;
  }
  if (!call) return;
  if (const std::string_view reason = program.requests().prompt_reason(call->tool); !reason.empty())
    status.reason = reason;
  status.detail = describe(program, *call);
}

Status from_registry(const Evidence& evidence, const TranscriptSummary& summary) {
  const RegistryEntry& entry = *evidence.entry;
  Status status = make_status(entry.state, entry.reason, "registry", since_of(entry, summary));
  if (status.state != "waiting") return status;
  status.request = status.source + '@' + status.since;
  add_pending_call(evidence, summary, status);
  return status;
}

/// A wait that the records themselves state: the oldest request. Absent: none.
std::optional<Status> recorded_wait(const Evidence& evidence, const TranscriptSummary& summary) {
  if (summary.requests.empty()) return std::nullopt;
  const OpenRequest& oldest = summary.requests.front();
  Status status = make_status("waiting", oldest.kind, "transcript",
                              oldest.started.empty() ? summary.last_activity : oldest.started);
  status.request = oldest.id;
  if (const OpenCall* const call = find_call(summary, oldest.call))
    status.detail = describe(*evidence.program, *call);
  else if (!oldest.subject.empty())
    status.detail = replace_controls("approve " + oldest.subject, detail_bytes_max);
  if (summary.requests.size() == 1) return status;
  const std::string count = "1 of " + std::to_string(summary.requests.size());
  status.detail =
      status.detail.empty() ? count : replace_controls(count + ": " + status.detail, detail_bytes_max);
  return status;
}

/// `Bash: make (may be waiting for approval: not visible)`; empty: nothing hints at it.
std::string unseen_permission(const Evidence& evidence, const TranscriptSummary& summary) {
  if (!evidence.program->requests().hides_permissions(summary.permission_mode) ||
      evidence.quiet < unseen_permission_after)
    return {};
  const auto call = std::find_if(summary.calls.rbegin(), summary.calls.rend(), [&](const OpenCall& each) {
    return evidence.program->requests().may_need_permission(each.tool);
  });
  if (call == summary.calls.rend()) return {};
  constexpr std::string_view verb = "approve ", note = " (may be waiting for approval: not visible)";
  std::string text = describe(*evidence.program, *call);
  if (text.starts_with(verb)) text.erase(0, verb.size());
  return replace_controls(text, detail_bytes_max - note.size()).append(note);
}

Status from_transcript(const Evidence& evidence, const TranscriptSummary& summary) {
  if (!summary.known)
    return make_status("unknown", "", "transcript", evidence.entry ? since_of(*evidence.entry, summary) : "");
  const auto or_last_activity = [&](const std::string& time) {
    return time.empty() ? summary.last_activity : time;
  };
  if (summary.is_closed) return make_status("ended", "", "transcript", summary.last_activity);
  if (auto wait = recorded_wait(evidence, summary)) return std::move(*wait);
  if (summary.is_compacting) return make_status("working", "compaction", "transcript", summary.last_activity);
  if (!summary.turn_open)
    return make_status("idle", summary.runs_background ? "background" : "", "transcript",
                       or_last_activity(summary.turn_finished));
  const bool runs_call = !summary.calls.empty() && evidence.process == ProcessEvidence::present;
  if (!runs_call && evidence.quiet >= evidence.quiet_max)
    return make_status("unknown", "", "clock",
                       format_time_if_valid(summary.last_growth_ms + evidence.quiet_max.count()));
  Status status = make_status("working", "", "transcript",
                              or_last_activity(later(summary.turn_started, summary.answered)));
  status.detail = unseen_permission(evidence, summary);
  return status;
}

Status with_compaction(const Evidence& evidence, Status status) {
  const bool applies = status.state == "working" || status.state == "idle" || status.source == "clock";
  if (!applies) return status;
  return make_status("working", "compaction", "transcript", format_time_if_valid(evidence.compacting_ms));
}

bool has_ended(const Evidence& evidence, const TranscriptSummary& summary) {
  if (!evidence.had_entry || (evidence.entry && evidence.liveness != Liveness::dead)) return false;
  const bool resumed = evidence.ended_ms && parse_time(summary.turn_started).value_or(0) > evidence.ended_ms;
  return !resumed;
}

Status without_compaction(const Evidence& evidence, const TranscriptSummary& summary) {
  if (has_ended(evidence, summary)) return ended(evidence, summary);
  if (evidence.entry && evidence.liveness == Liveness::foreign)
    return make_status("unknown", "", "registry", since_of(*evidence.entry, summary));
  if (evidence.entry && evidence.liveness == Liveness::alive && !evidence.entry->state.empty())
    return from_registry(evidence, summary);
  if (summary.known && summary.is_closed) return from_transcript(evidence, summary);
  if (!evidence.entry && evidence.process == ProcessEvidence::gone) {
    std::string since = format_time_if_valid(evidence.process_ended_ms);
    return make_status("ended", "", "process", since.empty() ? summary.last_activity : std::move(since));
  }
  return from_transcript(evidence, summary);
}

}  // namespace

Status derive_status(const Evidence& evidence, const TranscriptSummary& summary) {
  Status status = without_compaction(evidence, summary);
  return evidence.compacting_ms ? with_compaction(evidence, std::move(status)) : status;
}

const OpenCall* prompted_call(const Status& status, const Evidence& evidence,
                              const TranscriptSummary& summary) {
  if (status.state != "waiting" || status.source != "registry") return nullptr;
  const std::vector<const OpenCall*> calls = calls_to_approve(evidence, summary.calls);
  return calls.size() == 1 ? calls.front() : nullptr;
}

Status keep_since(const Status& previous, const Status& derived, Status next) {
  if (previous.state != next.state || previous.since.empty()) return next;
  if (next.state == "waiting" && derived.source == next.source) {
    const bool is_later = parse_time(next.since).value_or(0) > parse_time(derived.since).value_or(0);
    if (next.source == "registry" ? is_later : next.request != derived.request) return next;
  } else if (previous.reason != next.reason) {
    return next;
  }
  next.since = previous.since;
  next.request = previous.request;
  return next;
}

}  // namespace earshot::status
