#include "agents/claude_code/records.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

#include "base/text.hpp"

namespace earshot::claude_code {
namespace {

using IdOf = Assembler::IdOf;

// Stop reasons that end the turn. Others (tool_use, pause_turn, unknown ones) do not.
struct Ending {
  std::string_view stop_reason, outcome;
};
constexpr Ending endings[] = {{"end_turn", "completed"},
                              {"stop_sequence", "completed"},
                              {"max_tokens", "completed"},
                              {"refusal", "failed"}};

// Of a failed request, as the bundle of 2.1.332 names those that a sign-in mends.
constexpr std::string_view sign_in_errors[] = {"authentication_failed", "oauth_org_not_allowed",
                                               "cloud_credential_error"};
bool needs_sign_in(const fact::ApiError& error) {
  const auto* const found = std::find(std::begin(sign_in_errors), std::end(sign_in_errors), error.error);
  return error.fatal && (error.status == 401 || found != std::end(sign_in_errors));
}

std::string_view agent_outcome(std::string_view status) { return status == "killed" ? "stopped" : status; }

}  // namespace

void Records::read(const Record& record, Assembler& to) {
  record_ = &record;
  chain_ = own_chain;
  to.begin_record(record.time, record.time_ms);
  to.count_type(record.type, record.unknown);
  if (record.uuid.empty()) record_name_ = "@" + std::to_string(to.line_offset());
  if (to.recorded_session().empty() && !record.session.empty()) to.set_recorded_session(record.session);
  if (to.raw_state().warmup || !is_new_record(to)) return;
  chain_ = find_chain(to);
  if (chain_ != own_chain) to.set_agent(chains_[chain_].agent);
  if (record.deleted) return;
  if (record.has_turn_position) has_turn_positions_ = true;
  const bool dropped = is_warmup_record(to);
  if (to.raw_state().warmup) return;
  update_session(to);
  if (dropped) return;
  to.note_activity();
  if (to.is_own_chain() && record.author == Record::Author::user)
    to.mutable_state().is_headless = record.is_headless;

  if (to.is_own_chain() && record.author == Record::Author::assistant) {
    const std::string_view message = Assembler::short_id(record.message);
    const bool is_late_block = !message.empty() && message == finished_message_;
    if (!to.raw_state().turn_open && !is_late_block)
      start_turn(std::nullopt, hook_feedback_ ? "hook" : "unknown", to);
    if (!message.empty()) message_ = message;
  }
  for (const Fact& each : record.facts) std::visit([&](const auto& fact) { apply(fact, to); }, each);
  if (record.aborted) interrupt(to);
  update_last_block(to);
}

// False for a record with a uuid that was read before. Remembers the uuid.
bool Records::is_new_record(Assembler& to) {
  if (record_->uuid.empty()) return true;
  if (!to.is_new(record_->uuid)) return false;
  if (pending_titles_->empty()) return true;
  const std::uint64_t id = to.hash(record_->uuid, IdOf::record);
  auto& titles = pending_titles_.change();
  const auto pending =
      std::find_if(titles.begin(), titles.end(), [&](const auto& each) { return each.first == id; });
  if (pending != titles.end()) {
    titles_[static_cast<int>(fact::Title::Kind::summary)] = std::move(pending->second);
    titles.erase(pending);
  }
  return true;
}

// The chain of the record. An inline sidechain is named after its root, the first record whose parent is
// null, unknown or outside the sidechain.
std::uint32_t Records::find_chain(Assembler& to) {
  if (!record_->sidechain || !to.own_agent().empty()) return own_chain;
  std::uint32_t chain = own_chain;
  if (!record_->parent.empty()) {
    if (const auto* known = sidechain_of_uuid_->find(to.hash(record_->parent, IdOf::record))) chain = *known;
  } else if (!record_->has_parent_key) {
    chain = last_sidechain_;
  }
  if (chain == own_chain && chains_.size() > chains_max) {
    chain = static_cast<std::uint32_t>(chains_max);
    ++to.counts().dropped;
  }
  if (chain == own_chain) {
    chain = static_cast<std::uint32_t>(chains_.size());
    chains_.emplace_back();
    chains_.back().agent =
        record_->uuid.empty() ? to.record_name() : std::string(Assembler::short_id(record_->uuid));
  }
  bool fresh = false;
  if (!record_->uuid.empty())
    sidechain_of_uuid_.change().insert(to.hash(record_->uuid, IdOf::record), chain, fresh);
  return last_sidechain_ = chain;
}

// True for a record of an internal cache warm-up, which looks like an agent.
bool Records::is_warmup_record(Assembler& to) {
  Chain& chain = chains_[chain_];
  if (record_->author == Record::Author::user && !chain.user_record_seen &&
      (!to.is_own_chain() || !to.own_agent().empty())) {
    chain.user_record_seen = true;
    chain.warmup = record_->is_warmup && !reads_internal_;
    if (chain.warmup && to.is_own_chain()) to.mutable_state().warmup = true;
  }
  return chain.warmup;
}

void Records::update_session(Assembler& to) {
  const Record& r = *record_;
  const StreamState& known = to.raw_state();
  const bool is_own = to.is_own_chain(), is_first = !known.started && !r.uuid.empty();
  event::SessionUpdated changed;
  bool is_changed = false;
  const auto note = [&](const std::string& before, std::string_view now, OptionalText& field) {
    if (now.empty() || is_same_name(before, now)) return;
    field = now;
    is_changed = true;
  };
  if (is_own || is_first) {
    note(known.cwd, r.cwd, changed.cwd);
    note(known.git_branch, r.git_branch.value_or(""), changed.git_branch);
    note(known.version, r.version, changed.version);
  }
  for (const Fact& one : r.facts) {
    if (const auto* mode = std::get_if<fact::Mode>(&one)) note(known.mode, mode->mode, changed.mode);
    if (const auto* mode = std::get_if<fact::PermissionMode>(&one); mode && is_own)
      note(known.permission_mode, mode->mode, changed.permission_mode);
  }
  update_titles(to);
  const auto title = std::find_if(std::begin(titles_), std::end(titles_),
                                  [](const std::string& one) { return !one.empty(); });
  if (title != std::end(titles_)) note(known.title, *title, changed.title);
  // session.started has every field but the model.
  if (is_first) {
    to.update_session(changed);
    to.start_session({});
    changed = {};
    is_changed = false;
  }
  if (is_own && r.author == Record::Author::assistant) note(known.model, r.model, changed.model);
  if (is_changed) to.update_session(changed);
}

void Records::update_titles(Assembler& to) {
  bool is_summary = false;
  for (const Fact& one : record_->facts) {
    const auto* title = std::get_if<fact::Title>(&one);
    if (!title) continue;
    if (title->kind != fact::Title::Kind::summary) {
      titles_[static_cast<int>(title->kind)] = to.short_text(title->text);
      continue;
    }
    is_summary = true;
    std::string& continues = to.mutable_state().continues;
    if (only_summaries_ && continues.empty()) continues = Assembler::short_id(title->leaf);
    if (to.is_remembered(title->leaf))
      titles_[static_cast<int>(title->kind)] = to.short_text(title->text);
    else if (pending_titles_->size() < titles_max)
      pending_titles_.change().emplace_back(to.hash(title->leaf, IdOf::record), to.short_text(title->text));
    else
      ++to.counts().dropped;
  }
  if (!is_summary) only_summaries_ = false;
}

void Records::update_last_block(const Assembler& to) {
  if (!to.is_own_chain() || record_->outside_turn ||
      (record_->author != Record::Author::user && record_->author != Record::Author::assistant))
    return;
  last_ = Last::other;
  for (const Fact& one : record_->facts) {
    if (std::holds_alternative<fact::Invocation>(one)) last_ = Last::call;
    if (std::holds_alternative<fact::Result>(one)) last_ = Last::result;
    if (const auto* block = std::get_if<fact::MessageBlock>(&one))
      last_ = block->kind == "text" ? Last::text : Last::other;
  }
  if (record_->time_ms) last_ms_ = record_->time_ms;
}

void Records::start_turn(OptionalText prompt, std::string_view origin, Assembler& to) {
  const bool inferred = last_ == Last::text && to.open_calls() == 0;
  close_calls("abandoned", true, to);
  if (to.raw_state().turn_open)
    to.finish_turn(inferred ? "completed" : "superseded", {}, inferred, std::nullopt, last_ms_);
  last_ = Last::other;
  last_ms_ = record_->time_ms;
  hook_feedback_ = false;
  finished_message_.clear();
  to.mutable_state().expects_turn = false;
  // A message of a teammate has the id of the prompt that it works for.
  const bool is_continued = !record_->prompt.empty() && record_->prompt == prompt_;
  prompt_ = Assembler::short_id(record_->prompt);
  to.start_turn(prompt, origin, {}, is_continued);
}

void Records::finish_turn(std::string_view outcome, std::string_view stop_reason,
                          std::optional<std::int64_t> duration_ms, Assembler& to) {
  finished_message_ = message_;
  hook_feedback_ = false;
  to.finish_turn(outcome, stop_reason, false, duration_ms, end_ms());
}

void Records::interrupt(Assembler& to) {
  close_calls("interrupted", false, to);
  // The interrupted turn does not count what still runs; those that the last count had may have reported.
  if (to.is_own_chain()) {
    StreamState& state = to.mutable_state();
    const auto running = std::count_if(state.agents.begin(), state.agents.end(),
                                       [](const RunningAgent& each) { return each.background; });
    state.pending.agents = std::min(state.pending.agents, static_cast<std::uint64_t>(running));
  }
  if (to.is_own_chain() && to.raw_state().turn_open) finish_turn("interrupted", {}, std::nullopt, to);
}

// ---- One function per fact

void Records::apply(const fact::Prompt& prompt, Assembler& to) {
  if (to.is_own_chain())
    start_turn(prompt.text, prompt.origin, to);
  else if (prompt.text)
    to.add_message("user", "text", prompt.text);
  for (const Media& one : prompt.media) to.add_message("user", one.kind, std::nullopt, {}, {}, one);
}

void Records::apply(const fact::MessageBlock& block, Assembler& to) {
  const bool assistant = block.role == "assistant";
  to.add_message(block.role, block.kind, block.text, assistant ? record_->message : std::string_view{},
                 assistant ? record_->model : std::string_view{}, block.media);
}

void Records::apply(const fact::Command& command, Assembler& to) {
  if (!to.is_own_chain()) return;
  command_uuid_ = Assembler::short_id(record_->uuid);
  command_ = command.text;
}

void Records::apply(const fact::Injected& injected, Assembler& to) {
  if (!to.is_own_chain()) return;
  const std::string_view parent = Assembler::short_id(record_->parent);
  if (!parent.empty() && parent == command_uuid_) {
    command_uuid_.clear();
    start_turn(std::string_view(std::exchange(command_, {})), "command", to);
  } else if (!parent.empty() && parent == scheduled_fire_uuid_) {
    to.add_message("user", "text", injected.text);
  } else if (injected.hook_feedback) {
    hook_feedback_ = true;
  }
}

void Records::apply(const fact::ScheduledFire& fire, Assembler& to) {
  if (!to.is_own_chain()) return;
  std::vector<Schedule>& schedules = to.mutable_state().schedules;
  const auto find = [&](std::string_view id) {
    return std::find_if(schedules.begin(), schedules.end(),
                        [&](const Schedule& each) { return each.id == id; });
  };
  auto fired = find(Assembler::short_id(fire.task));
  if (fired == schedules.end()) fired = find({});  // a wake-up: its result does not name it
  if (fired != schedules.end()) {
    fired->due_ms = 0;
    if (!fired->is_recurring) schedules.erase(fired);
  }
  scheduled_fire_uuid_ = Assembler::short_id(record_->uuid);
  start_turn(std::nullopt, "task", to);
}

void Records::apply(const fact::Queue& queue, Assembler& to) {
  bool& expects_turn = to.mutable_state().expects_turn;
  if (queue.operation == "enqueue")
    expects_turn = true;
  else if (queue.operation != "dequeue")  // that begins a turn, or joins one
    expects_turn = false;
  to.emit(queue);
}

void Records::apply(const fact::Absorbed& absorbed, Assembler& to) {
  to.mutable_state().expects_turn = false;
  to.add_message("user", absorbed.media ? absorbed.media->kind : "text", absorbed.text, {}, {},
                 absorbed.media);
}

/// 0: it has none. A short id of a message is unique in its session only: elsewhere with its time.
std::uint64_t Records::request_id(Assembler& to) {
  if (record_->message.empty())
    return record_->uuid.empty() ? 0 : to.hash(record_->uuid, IdOf::unnamed_message);
  const std::uint64_t id =
      to.hash(record_->message, IdOf::message) ^ to.hash(record_->request, IdOf::request);
  if (record_->message.size() >= Assembler::short_id_bytes || !record_->request.empty()) return id;
  bool is_first = false;
  return id + static_cast<std::uint64_t>(short_ids_.change().insert(id, record_->time_ms, is_first));
}

void Records::apply(const fact::MessageUsage& used, Assembler& to) {
  std::string_view message = record_->message;
  if (message.empty()) message = record_->uuid.empty() ? std::string_view(record_name_) : record_->uuid;
  to.account_once({request_id(to), message, used.model, used.model, used.usage, used.cost_usd, true});
}

void Records::apply(const fact::Cost& cost, Assembler& to) {
  StreamState& state = to.mutable_state();
  state.used.cover_all();
  state.cost_total_ms = record_->time_ms ? record_->time_ms : state.last_activity_ms;
  if (state.cost_usd == cost.usd) return;
  state.cost_usd = cost.usd;
  to.emit_totals();
}

void Records::apply(const fact::Stop& stop, Assembler& to) {
  if (!to.is_own_chain() || !to.raw_state().turn_open || to.own_open_calls() > 0) return;
  for (const Ending& one : endings)
    if (one.stop_reason == stop.reason) return finish_turn(one.outcome, stop.reason, stop.duration_ms, to);
}

void Records::apply(const fact::TurnEnd& end, Assembler& to) {
  if (!to.is_own_chain() || !to.raw_state().turn_open) return;
  const bool older = record_->time_ms && record_->time_ms < to.raw_state().turn_started_ms;
  if (end.guarded && (older || last_ == Last::call || last_ == Last::result)) return;
  finish_turn(end.outcome, end.stop_reason, end.duration_ms, to);
  for (const Fact& each : record_->facts)
    if (const auto* error = std::get_if<fact::ApiError>(&each); error && needs_sign_in(*error))
      to.ask_to_sign_in(error->error);
}

void Records::apply(const fact::Pending& pending, Assembler& to) {
  if (to.is_own_chain()) to.mutable_state().pending = {pending.agents, pending.workflows, end_ms()};
}

void Records::apply(const fact::AgentsKilled&, Assembler& to) {
  to.mutable_state().pending = {};
  to.mutable_state().expects_turn = true;
  std::vector<std::string> calls;
  for (const RunningAgent& agent : to.raw_state().agents)
    if (agent.background) calls.push_back(agent.call);
  event::AgentFinished stopped;
  stopped.outcome = "stopped";
  for (const std::string& call : calls) finish_agent(call, stopped, to);
}

void Records::apply(const fact::Continued& continued, Assembler& to) {
  if (to.is_own_chain()) to.mutable_state().continued_in = Assembler::short_id(continued.session);
}

void Records::apply(const fact::Compaction& compaction, Assembler& to) {
  if (compaction.started) return to.emit(event::CompactionStarted{compaction.trigger});
  if (compaction.kind == "full") {
    close_calls("abandoned", to.is_own_chain(), to);  // a sidechain's compaction abandons its own calls only
    awaits_summary_ = true;
  }
  to.emit(event::CompactionFinished{compaction.trigger, compaction.pre_tokens, compaction.post_tokens,
                                    compaction.duration_ms, compaction.kind});
}

void Records::apply(const fact::Summary& summary, Assembler& to) {
  if (!awaits_summary_) apply(fact::Compaction{.started = false, .trigger = {}, .kind = "full"}, to);
  awaits_summary_ = false;
  to.add_message("summary", "text", summary.text);
}

// False if the task was told to have ended so before, and was not resumed since.
bool Records::is_first_end(std::string_view task, std::string_view status, Assembler& to) const {
  const std::uint32_t* const resumed = resume_counts_->find(to.hash(task, IdOf::task));
  std::string end(task);
  end.append(1, '\0').append(std::to_string(resumed ? *resumed : 0)).append(1, '\0').append(status);
  return to.remember(end, IdOf::task);
}

void Records::apply(const fact::Notification& notification, Assembler& to) {
  if (!is_first_end(notification.task, notification.status, to)) return;
  to.emit(
      event::TaskFinished{notification.task, notification.call, notification.status, notification.summary});
  PendingWork& pending = to.mutable_state().pending;
  to.end_task(notification.task);
  const std::vector<RunningAgent>& agents = to.raw_state().agents;
  const std::string_view task = cut_utf8(notification.task, Assembler::text_bytes_max);
  const auto agent = std::find_if(agents.begin(), agents.end(), [&](const RunningAgent& one) {
    return one.background && (one.subagent == task ||
                              (one.subagent.empty() && one.call == Assembler::short_id(notification.call)));
  });
  const Report report{std::string(to.short_text(agent_outcome(notification.status))),
                      notification.duration_ms, notification.tokens, notification.tools};
  if (agent != agents.end()) {
    pending.agents -= pending.agents > 0;
    return finish_agent(std::string(agent->call), agent_end(report), to);
  }
  const std::string_view name = to.short_text(notification.task);
  to.counts().dropped += early_reports_->size() >= early_reports_max && !early_reports_->find(name);
  early_reports_.change()[name] = report;
}

void Records::apply(const fact::AgentLink& link, Assembler& to) {
  RunningAgent* const agent = to.running_agent(link.call);
  if (agent && agent->subagent.empty()) agent->subagent = to.short_text(link.subagent);
}

std::size_t Records::memory_bytes() const {
  std::size_t bytes = sizeof *this + sidechain_of_uuid_->memory_bytes() + resume_counts_->memory_bytes();
  bytes += chains_.capacity() * sizeof(Chain) + command_.size();
  for (const Chain& chain : chains_) bytes += chain.agent.size();
  bytes += (early_reports_->size() + early_results_->size()) * (sizeof(EarlyResult) + 64);
  for (const auto& [task, report] : *early_reports_) bytes += 2 * task.size() + report.outcome.size();
  for (const auto& [id, result] : *early_results_)
    bytes += result.subagent.size() + result.report.outcome.size();
  for (const auto& [leaf, title] : *pending_titles_) bytes += sizeof title + title.size();
  for (const std::string& title : titles_) bytes += title.size();
  return bytes;
}

}  // namespace earshot::claude_code
