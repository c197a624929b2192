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

constexpr char since_mark = '@';

/// `registry:<pid>@<since>`
std::string registry_request(std::int64_t pid, const std::string& since) {
  return "registry:" + std::to_string(pid) + since_mark + since;
}

bool is_same_process(std::string_view one, std::string_view other) {
  return one.substr(0, one.find(since_mark)) == other.substr(0, other.find(since_mark));
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
  } else if (status.reason == "question" && !call) {
    const auto may_ask = [&](const OpenCall& each) { return program.requests().may_ask(each.tool); };
    const auto asks = std::find_if(summary.calls.begin(), summary.calls.end(), may_ask);
    if (std::count_if(summary.calls.begin(), summary.calls.end(), may_ask) == 1)
      status.detail = replace_controls("answer " + asks->tool, detail_bytes_max);
  }
  if (!call) return;
  if (const std::string_view reason = program.requests().prompt_reason(call->tool); !reason.empty())
    status.reason = reason;
  status.detail = describe(program, *call);
}

/// A wait that the records themselves state: the oldest request. Absent: none.
std::optional<Status> recorded_wait(const Evidence& evidence, const TranscriptSummary& summary) {
  if (summary.requests.empty()) return std::nullopt;
  const OpenRequest& oldest = summary.requests.front();
  Status status = make_status("waiting", oldest.kind, "transcript",
                              oldest.started.empty() ? summary.last_activity : oldest.started);
  status.request = oldest.id;
  status.agent = oldest.agent;
  if (const OpenCall* const call = find_call(summary, oldest.call))
    status.detail = describe(*evidence.program, *call);
  else if (oldest.kind == "auth")
    status.detail = replace_controls("sign in: " + oldest.subject, detail_bytes_max);
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
  if (!evidence.program->requests().hides_permissions(summary.permission_mode)) return {};
  const auto call = std::find_if(summary.calls.rbegin(), summary.calls.rend(), [&](const OpenCall& each) {
    return evidence.program->requests().may_need_permission(each.tool) &&
           evidence.quiet_of(each) >= unseen_permission_after;
  });
  if (call == summary.calls.rend()) return {};
  constexpr std::string_view verb = "approve ", note = " (may be waiting for approval: not visible)";
  std::string text = describe(*evidence.program, *call);
  if (text.starts_with(verb)) text.erase(0, verb.size());
  return replace_controls(text, detail_bytes_max - note.size()).append(note);
}

std::uint64_t count_of(const TranscriptSummary& summary, BackgroundWork::Kind kind, bool is_counted = false) {
  std::uint64_t count = 0;
  for (const BackgroundWork& work : summary.background)
    if (work.kind == kind && (work.is_counted || !is_counted)) count += work.count;
  return count;
}

/// True if agents or workflows run that will report. `is_counted`: only those that the program counted.
bool runs_agents(const TranscriptSummary& summary, bool is_counted = false) {
  return count_of(summary, BackgroundWork::Kind::agent, is_counted) +
             count_of(summary, BackgroundWork::Kind::workflow, is_counted) >
         0;
}

std::string number_of(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

/// `2 agents`, `1 agent, 1 workflow`.
std::string describe_agents(const TranscriptSummary& summary) {
  const std::uint64_t agents = count_of(summary, BackgroundWork::Kind::agent);
  const std::uint64_t workflows = count_of(summary, BackgroundWork::Kind::workflow);
  std::string text = agents ? number_of(agents, "agent") : std::string();
  if (workflows) text += (agents ? ", " : "") + number_of(workflows, "workflow");
  return text;
}

/// `npm run dev`, `1 of 2: npm run dev`; empty: what runs is not known.
std::string describe_tasks(const AgentProgram& program, const TranscriptSummary& summary) {
  const std::uint64_t count = count_of(summary, BackgroundWork::Kind::task);
  const auto first =
      std::find_if(summary.background.begin(), summary.background.end(), [](const BackgroundWork& work) {
        return work.kind == BackgroundWork::Kind::task && !work.tool.empty();
      });
  if (first == summary.background.end()) return count ? number_of(count, "task") : std::string();
  std::string text = program.requests().describe_prompt(first->tool, first->input);
  for (const std::string& lead : {std::string("approve "), first->tool + ": "})
    if (text.starts_with(lead)) text.erase(0, lead.size());
  if (count > 1) text.insert(0, "1 of " + std::to_string(count) + ": ");
  return replace_controls(text, detail_bytes_max);
}

/// `idle` without a reason, with that of the schedule that is due next.
Status with_schedule(const TranscriptSummary& summary, Status status) {
  if (status.state != "idle" || !status.reason.empty()) return status;
  std::int64_t next_ms = 0;
  for (const BackgroundWork& work : summary.background) {
    if (work.kind != BackgroundWork::Kind::schedule) continue;
    status.reason = "scheduled";
    if (work.due_ms && (!next_ms || work.due_ms < next_ms)) next_ms = work.due_ms;
  }
  if (next_ms) status.detail = format_time_if_valid(next_ms);
  return status;
}

/// What goes on when the turn is over; absent: nothing.
std::optional<Status> background_status(const Evidence& evidence, const TranscriptSummary& summary,
                                        std::string_view source) {
  const std::string& since = summary.turn_finished.empty() ? summary.last_activity : summary.turn_finished;
  if (runs_agents(summary)) {
    Status status = make_status("working", "background", source, since);
    status.detail = unseen_permission(evidence, summary);
    if (status.detail.empty()) status.detail = describe_agents(summary);
    return status;
  }
  if (count_of(summary, BackgroundWork::Kind::task) == 0) return std::nullopt;
  Status status = make_status("idle", "background", source, since);
  status.detail = describe_tasks(*evidence.program, summary);
  return status;
}

/// The last turn failed, which no statement of the program shows.
bool needs_sign_in(const TranscriptSummary& summary) {
  return std::any_of(summary.requests.begin(), summary.requests.end(),
                     [](const OpenRequest& each) { return each.kind == "auth"; });
}

Status from_registry(const Evidence& evidence, const TranscriptSummary& summary) {
  const RegistryEntry& entry = *evidence.entry;
  Status status = make_status(entry.state, entry.reason, "registry", since_of(entry, summary));
  status.detail = entry.detail;
  if (status.state == "waiting") {
    status.request = registry_request(entry.pid, status.since);
    if (status.reason.empty())
      status.reason = summary.turn_open || runs_agents(summary) ? "permission" : "dialog";
    if (status.detail.empty()) add_pending_call(evidence, summary, status);
  } else if (status.state == "working") {
    if (summary.turn_open || !runs_agents(summary)) return status;
    status.reason = "background";
    status.detail = describe_agents(summary);
  } else if (needs_sign_in(summary)) {
    return recorded_wait(evidence, summary).value_or(std::move(status));
  } else if (runs_agents(summary, true) && !summary.turn_open) {
    return *background_status(evidence, summary, "registry");
  } else if (status.reason == "background") {
    status.detail = describe_tasks(*evidence.program, summary);
  }
  return status;
}

Status from_transcript(const Evidence& evidence, const TranscriptSummary& summary) {
  const bool is_alive = evidence.entry && evidence.liveness == Liveness::alive;
  if (!summary.known && is_alive)  // it starts
    return make_status("idle", "", "registry", since_of(*evidence.entry, summary));
  if (!summary.known) return make_status("unknown", "", "transcript", "");
  const auto or_last_activity = [&](const std::string& time) {
    return time.empty() ? summary.last_activity : time;
  };
  if (summary.is_closed) return make_status("ended", "", "transcript", summary.last_activity);
  if (auto wait = recorded_wait(evidence, summary)) return std::move(*wait);
  if (summary.is_compacting) return make_status("working", "compaction", "transcript", summary.last_activity);
  const auto background = background_status(evidence, summary, "transcript");
  if (!summary.turn_open && !runs_agents(summary))
    return background.value_or(
        make_status("idle", "", "transcript", or_last_activity(summary.turn_finished)));
  const bool has_process = is_alive || evidence.process == ProcessEvidence::present;
  const bool is_run = has_process && (!summary.calls.empty() || !summary.turn_open);
  if (!is_run && evidence.quiet >= evidence.quiet_max)
    return make_status("unknown", "", "clock",
                       format_time_if_valid(summary.last_growth_ms + evidence.quiet_max.count()));
  if (!summary.turn_open) return *background;
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
  if (has_ended(evidence, summary) && evidence.awaits_successor)
    return make_status("working", "", "transcript", summary.turn_started);
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

/// True for what was recorded before any of the processes began that run the session.
bool is_stale(const Evidence& evidence, std::int64_t time_ms) {
  return evidence.run_since_ms && time_ms && time_ms + start_slack.count() < evidence.run_since_ms;
}

/// `all` or, where something of it belongs to an earlier process, `scratch` without that.
const TranscriptSummary& without_stale(const Evidence& evidence, const TranscriptSummary& all,
                                       TranscriptSummary& scratch) {
  const auto is_old = [&](const auto& each) { return is_stale(evidence, each.started_ms); };
  const auto is_old_work = [&](const BackgroundWork& work) { return is_stale(evidence, work.time_ms); };
  const bool is_turn_old =
      is_stale(evidence, all.turn_grown_ms) && (all.turn_open || all.is_compacting || all.is_closed);
  if (!is_turn_old && std::none_of(all.calls.begin(), all.calls.end(), is_old) &&
      std::none_of(all.requests.begin(), all.requests.end(), is_old) &&
      std::none_of(all.background.begin(), all.background.end(), is_old_work))
    return all;
  scratch = all;
  if (is_turn_old) scratch.turn_open = scratch.is_compacting = scratch.is_closed = false;
  std::erase_if(scratch.calls, is_old);
  std::erase_if(scratch.requests, is_old);
  std::erase_if(scratch.background, is_old_work);
  return scratch;
}

}  // namespace

std::chrono::milliseconds Evidence::quiet_of(const OpenCall& call) const {
  if (!call.grown_ms || !now_ms) return quiet;
  return std::max(quiet, std::chrono::milliseconds(now_ms - call.grown_ms));
}

Status derive_status(const Evidence& evidence, const TranscriptSummary& all) {
  TranscriptSummary scratch;
  const TranscriptSummary& summary = without_stale(evidence, all, scratch);
  Status status = with_schedule(summary, without_compaction(evidence, summary));
  return evidence.compacting_ms ? with_compaction(evidence, std::move(status)) : status;
}

bool may_go_on(const Status& status, const TranscriptSummary& summary) {
  return status.state == "idle" && (summary.expects_turn || runs_agents(summary));
}

std::optional<Done> done_of(const Status& status, const Evidence& evidence, const TranscriptSummary& summary,
                            std::int64_t observed_waited_ms) {
  const bool rests = status.state == "idle" || status.state == "ended";
  const std::uint32_t finished = summary.turn - (summary.turn_open ? 1 : 0);
  if (may_go_on(status, summary) && evidence.quiet < next_turn_max) return std::nullopt;
  if (status.state == "ended" && runs_agents(summary)) return std::nullopt;  // they were stopped with it
  if (!rests || summary.prompted.turn == 0 || finished < summary.prompted.turn) return std::nullopt;
  Done done;
  done.outcome = summary.outcome;
  done.turn = summary.prompted.turn;
  done.turns = finished - summary.prompted.turn + 1;
  done.prompted = summary.prompted.time;
  const std::int64_t finished_ms = parse_time(summary.turn_finished).value_or(0);
  if (finished_ms && summary.prompted.time_ms)
    done.duration_ms = std::max<std::int64_t>(0, finished_ms - summary.prompted.time_ms);
  done.waited_ms = std::max(summary.waited_ms, observed_waited_ms);
  if (done.duration_ms) done.waited_ms = std::min(done.waited_ms, *done.duration_ms);
  done.is_headless = summary.is_headless || evidence.is_headless;
  return done;
}

std::string prompted_call(const Status& status, const Evidence& evidence, const TranscriptSummary& all) {
  if (status.state != "waiting" || status.source != "registry") return {};
  TranscriptSummary scratch;
  const TranscriptSummary& summary = without_stale(evidence, all, scratch);
  const std::vector<const OpenCall*> calls = calls_to_approve(evidence, summary.calls);
  return calls.size() == 1 ? calls.front()->call : std::string();
}

Status keep_since(const Status& previous, const Status& derived, Status next) {
  if (previous.state != next.state || previous.since.empty()) return next;
  if (next.state == "waiting" && derived.source == next.source) {
    const bool is_later = parse_time(next.since).value_or(0) > parse_time(derived.since).value_or(0);
    const bool is_other = next.source == "registry"
                              ? is_later || !is_same_process(next.request, derived.request)
                              : next.request != derived.request;
    if (is_other) return next;
  } else if (previous.reason != next.reason) {
    return next;
  }
  next.since = previous.since;
  next.request = previous.request;
  return next;
}

}  // namespace earshot::status
