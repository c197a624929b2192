#include "core/assembler.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "core/event_json.hpp"

namespace earshot {
namespace {

// Stop reasons that end the turn. Others (tool_use, pause_turn, unknown ones) do not.
struct Ending {
  std::string_view stop_reason, outcome;
};
constexpr Ending endings[] = {{"end_turn", "completed"},
                              {"stop_sequence", "completed"},
                              {"max_tokens", "completed"},
                              {"refusal", "failed"}};

std::string_view agent_outcome(std::string_view status) { return status == "killed" ? "stopped" : status; }

}  // namespace

Assembler::Assembler(std::string own_agent, std::string_view program, std::uint64_t key,
                     const TextFilter* filter)
    : own_agent_(std::move(own_agent)), key_(key), filter_(filter), chains_(1) {
  state_.program = program;
  chains_[own_chain].agent = own_agent_;
}

std::uint64_t Assembler::hash(std::string_view text, HashKind kind) const {
  return XXH3_64bits_withSeed(text.data(), text.size(), key_ ^ static_cast<std::uint64_t>(kind));
}

std::string_view Assembler::short_text(std::string_view text) {
  counts_.dropped += text.size() > text_bytes_max;
  return cut_utf8(text, text_bytes_max);
}

// Updates `field` if the record has another value; `changed` is then the new value.
void Assembler::update(std::string& field, std::string_view value, OptionalText& changed) {
  if (value.empty() || is_same_name(field, value)) return;
  value = short_text(value);
  if (field == value) return;
  field = value;
  changed = field;
}

std::string_view Assembler::preview_source(std::string_view text) const {
  return cut_utf8(text, StreamState::input_preview_bytes + (filter_ ? filter_->reach() : 0));
}

void Assembler::set_input(OpenTool& tool, const Json& input) const {
  TruncatedPaths truncated;
  const TruncatedPaths::Scope scope(truncated, "input");
  append_json(tool.input, input.json, StreamState::input_preview_bytes, filter_, truncated, input.is_utf8);
  tool.truncated = truncated.list();
}

void Assembler::prepare_state() const {
  std::string scratch;
  const auto prepare = [&](std::string& text, std::uint64_t& bytes, unsigned which) {
    if (!(pending_previews_ & which)) return;
    const Beginning shown = clean_beginning(filter_, text, StreamState::input_preview_bytes, scratch);
    if (!shown.cut && bytes <= text.size()) bytes = 0;
    text = std::string(shown.text);  // frees the capacity beyond it
  };
  prepare(state_.turn_prompt, state_.turn_prompt_truncated, prompt_preview);
  prepare(state_.last_text, state_.last_text_truncated, text_preview);
  pending_previews_ = 0;
  for (OpenTool& tool : state_.tools) {
    if (!std::exchange(tool.is_raw, false)) continue;
    const std::string raw = std::exchange(tool.input, {});
    set_input(tool, {raw});
  }
}

void Assembler::begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink) {
  line_offset_ = line_offset;
  cursor_ = end;
  index_ = 0;
  sink_ = &sink;
}

void Assembler::skip_lines(const event::LineSkipped& lines) {
  record_ = nullptr;
  if (!state_.warmup) emit(lines);
}

void Assembler::record(const Record& record) {
  record_ = &record;
  state_.usage_by_model.set_time(record.time_ms);
  chain_ = own_chain;
  count_type(record.type, record.unknown);
  ++counts_.records;
  if (record.uuid.empty()) record_name_ = "@" + std::to_string(line_offset_);
  if (recorded_session_.empty() && !record.session.empty()) recorded_session_ = record.session;
  if (state_.warmup || !is_new_record()) return;
  chain_ = find_chain();
  if (record.deleted) return;
  if (record.has_turn_position) has_turn_positions_ = true;
  const bool dropped = is_warmup_record();
  if (state_.warmup) return;
  emit_session_changes();
  if (dropped) return;
  if (record.time_ms > state_.last_activity_ms) {
    state_.last_activity_ms = record.time_ms;
    state_.last_activity = record.time;
  }

  if (is_own_chain() && record.author == Record::Author::assistant) {
    const bool is_late_block = !record.message.empty() && record.message == finished_message_;
    if (!state_.turn_open && !is_late_block) start_turn(std::nullopt, hook_feedback_ ? "hook" : "unknown");
    if (!record.message.empty()) message_ = record.message;
  }
  if (record.relayed) return apply_relayed(*record.relayed);
  for (const Fact& each : record.facts) std::visit([this](const auto& fact) { apply(fact); }, each);
  if (record.aborted) interrupt();
  update_last_block();
}

// False for a record whose uuid was read before. Remembers the uuid.
bool Assembler::is_new_record() {
  if (record_->uuid.empty()) return true;
  const std::uint64_t id = hash(record_->uuid);
  if (!uuids_.insert(id)) {
    ++counts_.duplicates;
    return false;
  }
  if (pending_titles_->empty()) return true;
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
std::uint32_t Assembler::find_chain() {
  if (!record_->sidechain || !own_agent_.empty()) return own_chain;
  std::uint32_t chain = own_chain;
  if (!record_->parent.empty()) {
    if (const auto* known = sidechain_of_uuid_->find(hash(record_->parent))) chain = *known;
  } else if (!record_->has_parent_key) {
    chain = last_sidechain_;
  }
  if (chain == own_chain && chains_.size() > chains_max) {
    chain = static_cast<std::uint32_t>(chains_max);
    ++counts_.dropped;
  }
  if (chain == own_chain) {
    chain = static_cast<std::uint32_t>(chains_.size());
    chains_.emplace_back();
    chains_.back().agent = record_->uuid.empty() ? record_name_ : std::string(short_id(record_->uuid));
  }
  bool fresh = false;
  if (!record_->uuid.empty()) sidechain_of_uuid_.change().insert(hash(record_->uuid), chain, fresh);
  return last_sidechain_ = chain;
}

// True for a record of an internal cache warm-up, which looks like an agent.
bool Assembler::is_warmup_record() {
  Chain& chain = chains_[chain_];
  if (record_->author == Record::Author::user && !chain.user_record_seen &&
      (!is_own_chain() || !own_agent_.empty())) {
    chain.user_record_seen = true;
    chain.warmup = record_->is_warmup;
    if (chain.warmup && is_own_chain()) state_.warmup = true;
  }
  return chain.warmup;
}

void Assembler::emit_session_changes() {
  event::SessionUpdated changed;
  const Record& r = *record_;
  const bool first = !state_.started && !r.uuid.empty();
  if (is_own_chain() || first) {
    update(state_.cwd, r.cwd, changed.cwd);
    update(state_.git_branch, r.git_branch.value_or(""), changed.git_branch);
    update(state_.version, r.version, changed.version);
    if (state_.project.empty()) state_.project = state_.cwd;
  }
  if (is_own_chain() && r.author == Record::Author::assistant) update(state_.model, r.model, changed.model);
  bool is_summary = false;
  for (const Fact& one : r.facts) {
    if (const auto* mode = std::get_if<fact::Mode>(&one)) update(state_.mode, mode->mode, changed.mode);
    if (const auto* mode = std::get_if<fact::PermissionMode>(&one); mode && is_own_chain())
      update(state_.permission_mode, mode->mode, changed.permission_mode);
    const auto* title = std::get_if<fact::Title>(&one);
    if (!title) continue;
    if (title->kind != fact::Title::Kind::summary) {
      titles_[static_cast<int>(title->kind)] = short_text(title->text);
      continue;
    }
    is_summary = true;
    if (only_summaries_ && state_.continues.empty()) state_.continues = short_id(title->leaf);
    if (const std::uint64_t leaf = hash(title->leaf); uuids_.contains(leaf))
      titles_[static_cast<int>(title->kind)] = short_text(title->text);
    else if (pending_titles_->size() < titles_max)
      pending_titles_.change().emplace_back(leaf, short_text(title->text));
    else
      ++counts_.dropped;
  }
  if (!is_summary) only_summaries_ = false;
  const auto title = std::find_if(std::begin(titles_), std::end(titles_),
                                  [](const std::string& one) { return !one.empty(); });
  if (title != std::end(titles_)) update(state_.title, *title, changed.title);

  if (first) {
    state_.started = true;
    emit(event::SessionStarted{state_.program, state_.dialect, state_.version, state_.cwd, state_.git_branch,
                               state_.project, state_.title, state_.continues, state_.mode,
                               state_.permission_mode});
    // session.started has every field but the model.
    changed = event::SessionUpdated{.title = {},
                                    .cwd = {},
                                    .git_branch = {},
                                    .model = changed.model,
                                    .version = {},
                                    .mode = {},
                                    .permission_mode = {}};
  }
  if (!state_.started) return;
  if (changed.title || changed.cwd || changed.git_branch || changed.model || changed.version ||
      changed.mode || changed.permission_mode)
    emit(changed);
}

void Assembler::update_last_block() {
  if (!is_own_chain() || record_->outside_turn ||
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

void Assembler::start_turn(OptionalText prompt, std::string_view origin) {
  const bool inferred = last_ == Last::text && open_calls_.empty();
  close_calls("abandoned", true);
  if (state_.turn_open)
    finish_turn(inferred ? "completed" : "superseded", inferred, {}, std::nullopt, last_ms_);
  ++state_.turn;
  state_.turn_open = true;
  state_.turn_started = record_->time;
  state_.turn_started_ms = record_->time_ms;
  state_.turn_prompt = preview_source(prompt.value_or(""));
  state_.turn_prompt_truncated = prompt ? prompt->size() : 0;
  pending_previews_ |= prompt_preview;
  last_ = Last::other;
  last_ms_ = record_->time_ms;
  turn_tools_ = 0;
  turn_usage_ = state_.usage;
  state_.times.start_turn(record_->time_ms);
  hook_feedback_ = false;
  finished_message_.clear();
  emit(event::TurnStarted{prompt, own_agent_.empty() ? origin : "agent"});
}

void Assembler::finish_turn(std::string_view outcome, bool inferred, std::string_view stop_reason,
                            std::optional<std::int64_t> duration_ms, std::int64_t end_ms) {
  if (!duration_ms && end_ms && state_.turn_started_ms)
    duration_ms = std::max<std::int64_t>(0, end_ms - state_.turn_started_ms);
  const auto difference = [](std::uint64_t total, std::uint64_t start) {
    return total > start ? total - start : 0;
  };
  const Usage& total = state_.usage;
  const Usage used{difference(total.input, turn_usage_.input), difference(total.output, turn_usage_.output),
                   difference(total.cache_read, turn_usage_.cache_read),
                   difference(total.cache_write, turn_usage_.cache_write)};
  state_.turn_open = false;
  state_.last_outcome = outcome;
  state_.last_finished = record_->time;
  state_.times.finish_turn(end_ms);
  finished_message_ = message_;
  hook_feedback_ = false;
  emit(event::TurnFinished{outcome, inferred, stop_reason, duration_ms, turn_tools_, used,
                           state_.times.turn_waited()});
}

void Assembler::interrupt() {
  close_calls("interrupted", false);
  if (is_own_chain() && state_.turn_open)
    finish_turn("interrupted", false, {}, std::nullopt, record_->time_ms ? record_->time_ms : last_ms_);
}

// ---- One function per fact

void Assembler::apply(const fact::Prompt& prompt) {
  if (is_own_chain()) {
    start_turn(prompt.text, prompt.origin);
  } else if (prompt.text) {
    emit(event::MessageAdded{"user", "text", prompt.text, {}, {}, std::nullopt});
  }
  for (const Media& one : prompt.media)
    emit(event::MessageAdded{"user", one.kind, std::nullopt, {}, {}, one});
}

void Assembler::apply(const fact::MessageBlock& block) {
  const bool assistant = block.role == "assistant";
  if (assistant && is_own_chain() && block.kind == "text") {
    state_.last_text = preview_source(block.text.value_or(""));
    state_.last_text_truncated = block.text ? block.text->size() : 0;
    pending_previews_ |= text_preview;
  }
  emit(event::MessageAdded{block.role, block.kind, block.text,
                           assistant ? record_->message : std::string_view{},
                           assistant ? record_->model : std::string_view{}, block.media});
}

void Assembler::apply(const fact::Command& command) {
  if (!is_own_chain()) return;
  command_uuid_ = record_->uuid;
  command_ = command.text;
}

void Assembler::apply(const fact::Injected& injected) {
  if (!is_own_chain()) return;
  const std::string_view parent = record_->parent;
  if (!parent.empty() && parent == command_uuid_) {
    command_uuid_.clear();
    start_turn(std::string_view(command_), "command");
  } else if (!parent.empty() && parent == scheduled_fire_uuid_) {
    emit(event::MessageAdded{"user", "text", injected.text, {}, {}, std::nullopt});
  } else if (injected.hook_feedback) {
    hook_feedback_ = true;
  }
}

void Assembler::apply(const fact::ScheduledFire&) {
  if (!is_own_chain()) return;
  scheduled_fire_uuid_ = record_->uuid;
  start_turn(std::nullopt, "task");
}

void Assembler::apply(const fact::Absorbed& absorbed) {
  emit(event::MessageAdded{
      "user", absorbed.media ? absorbed.media->kind : "text", absorbed.text, {}, {}, absorbed.media});
}

void Assembler::apply(const fact::MessageUsage& used) {
  std::string_view message = record_->message;
  std::uint64_t id = hash(message, HashKind::message) ^ hash(record_->request, HashKind::request);
  if (message.empty()) {
    message = record_->uuid.empty() ? std::string_view(record_name_) : record_->uuid;
    id = hash(message, HashKind::record);
  }
  bool fresh = false;
  Tokens& small = usage_by_message_.insert(id, {}, fresh);
  const Usage* const large = large_usage_->find(id);
  const Usage before = large ? *large : Usage{small.input, small.output, small.cache_read, small.cache_write};
  Usage now{std::max(before.input, used.usage.input), std::max(before.output, used.usage.output),
            std::max(before.cache_read, used.usage.cache_read),
            std::max(before.cache_write, used.usage.cache_write)};
  now.cache_write_1h = std::min(used.usage.cache_write_1h, now.cache_write);
  constexpr std::uint64_t small_max = std::numeric_limits<std::uint32_t>::max();
  if (std::max({now.input, now.output, now.cache_read, now.cache_write}) > small_max) {
    large_usage_.change().insert(id, now, fresh) = now;
  } else {
    small = {static_cast<std::uint32_t>(now.input), static_cast<std::uint32_t>(now.output),
             static_cast<std::uint32_t>(now.cache_read), static_cast<std::uint32_t>(now.cache_write)};
  }
  Usage more{now.input - before.input, now.output - before.output, now.cache_read - before.cache_read,
             now.cache_write - before.cache_write};
  // Not kept by message: the lines of a message repeat how long its cache is kept.
  more.cache_write_1h = std::min(more.cache_write, now.cache_write_1h);
  const bool is_higher = more != Usage{};
  state_.usage.input += more.input;
  state_.usage.output += more.output;
  state_.usage.cache_read += more.cache_read;
  state_.usage.cache_write += more.cache_write;
  state_.usage.cache_write_1h += more.cache_write_1h;
  if (is_own_chain()) state_.context_tokens = now.input + now.cache_read + now.cache_write;
  bool is_cost_higher = false;
  if (used.cost_usd) {
    double& cost = cost_by_message_.change().insert(id, 0, fresh);
    if (fresh) state_.usage_by_model.cover(used.model, before);
    is_cost_higher = *used.cost_usd > cost;
    if (is_cost_higher) {
      state_.cost_usd = state_.cost_usd.value_or(0) + *used.cost_usd - cost;
      state_.usage_by_model.add_cost(used.model, *used.cost_usd - cost);
    }
    cost = std::max(cost, *used.cost_usd);
  }
  if (is_higher) state_.usage_by_model.add(used.model, more, cost_by_message_->contains(id));
  if (is_higher || is_cost_higher)
    emit(event::UsageUpdated{message, used.model, now, state_.usage, state_.cost_usd});
}

void Assembler::apply(const fact::Cost& cost) {
  state_.usage_by_model.cover_all();
  state_.cost_total_ms = record_->time_ms ? record_->time_ms : state_.last_activity_ms;
  if (state_.cost_usd == cost.usd) return;
  state_.cost_usd = cost.usd;
  emit(event::UsageUpdated{{}, {}, std::nullopt, state_.usage, state_.cost_usd});
}

void Assembler::apply(const fact::Stop& stop) {
  if (!is_own_chain() || !state_.turn_open || own_open_calls_ > 0) return;
  for (const Ending& one : endings)
    if (one.stop_reason == stop.reason)
      return finish_turn(one.outcome, false, stop.reason, stop.duration_ms,
                         record_->time_ms ? record_->time_ms : last_ms_);
}

void Assembler::apply(const fact::TurnEnd& end) {
  if (!is_own_chain() || !state_.turn_open) return;
  const bool older = record_->time_ms && record_->time_ms < state_.turn_started_ms;
  if (end.guarded && (older || last_ == Last::call || last_ == Last::result)) return;
  finish_turn(end.outcome, false, end.stop_reason, end.duration_ms,
              record_->time_ms ? record_->time_ms : last_ms_);
}

void Assembler::apply(const fact::Interrupted&) { interrupt(); }

void Assembler::apply(const fact::Compaction& compaction) {
  if (compaction.started) return emit(event::CompactionStarted{compaction.trigger});
  if (compaction.kind == "full") {
    close_calls("abandoned", is_own_chain());  // a sidechain's compaction abandons its own calls only
    awaits_summary_ = true;
  }
  emit(event::CompactionFinished{compaction.trigger, compaction.pre_tokens, compaction.post_tokens,
                                 compaction.duration_ms, compaction.kind});
}

void Assembler::apply(const fact::Summary& summary) {
  if (!awaits_summary_) apply(fact::Compaction{.started = false, .trigger = {}, .kind = "full"});
  awaits_summary_ = false;
  emit(event::MessageAdded{"summary", "text", summary.text, {}, {}, std::nullopt});
}

void Assembler::apply(const fact::Notification& notification) {
  const std::uint64_t task = hash(notification.task, HashKind::task);
  const std::uint32_t* const resumed = resume_counts_->find(task);
  const std::uint64_t generation = resumed ? *resumed : 0;
  if (!finished_tasks_.change().insert(hash(notification.status, static_cast<HashKind>(task + generation))))
    return;
  emit(event::TaskFinished{notification.task, notification.call, notification.status, notification.summary});
  const auto agent = std::find_if(state_.agents.begin(), state_.agents.end(), [&](const RunningAgent& one) {
    return one.background && (one.subagent == cut_utf8(notification.task, text_bytes_max) ||
                              (one.subagent.empty() && one.call == short_id(notification.call)));
  });
  if (agent == state_.agents.end()) {
    const std::string_view name = short_text(notification.task);
    counts_.dropped += early_reports_->size() >= early_reports_max && !early_reports_->find(name);
    early_reports_.change()[name] = Report{std::string(short_text(agent_outcome(notification.status))),
                                           notification.duration_ms, notification.tokens, notification.tools};
    return;
  }
  const std::string call = agent->call;
  event::AgentFinished finished;
  finished.outcome = agent_outcome(notification.status);
  finished.duration_ms = notification.duration_ms, finished.tokens = notification.tokens,
  finished.tools = notification.tools;
  finish_agent(call, finished);
}

void Assembler::apply(const fact::TodoList& list) { set_todos(list.todos, list.source); }

void Assembler::apply(const fact::AgentLink& link) {
  for (RunningAgent& one : state_.agents)
    if (one.call == short_id(link.call) && one.subagent.empty()) one.subagent = short_text(link.subagent);
}

std::size_t Assembler::memory_bytes() const {
  std::size_t bytes = sizeof *this + uuids_.memory_bytes() + sidechain_of_uuid_->memory_bytes() +
                      call_numbers_.memory_bytes() + usage_by_message_.memory_bytes() +
                      finished_tasks_->memory_bytes();
  bytes += large_usage_->memory_bytes() + cost_by_message_->memory_bytes() + resume_counts_->memory_bytes();
  bytes += chains_.capacity() * sizeof(Chain) + todo_lists_bytes_ + open_call_bytes_;
  for (const Chain& chain : chains_) bytes += chain.agent.size();
  bytes += (early_reports_->size() + early_results_->size()) * (sizeof(EarlyResult) + 64);
  for (const auto& [task, report] : *early_reports_) bytes += 2 * task.size() + report.outcome.size();
  for (const auto& [id, result] : *early_results_)
    bytes += result.subagent.size() + result.report.outcome.size();
  for (const Todo& todo : state_.todos) bytes += sizeof todo + todo.content.size() + todo.active_form.size();
  for (const OpenTool& tool : state_.tools)
    bytes += sizeof tool + tool.call.size() + tool.tool.size() + tool.agent.size() + tool.input.capacity();
  for (const RunningAgent& agent : state_.agents)
    bytes += sizeof agent + agent.call.size() + agent.subagent.size() + agent.agent_type.size() +
             agent.description.size();
  for (const auto& [leaf, title] : *pending_titles_) bytes += sizeof title + title.size();
  for (const std::string& title : titles_) bytes += title.size();
  bytes += state_.usage_by_model.memory_bytes();
  return bytes;
}

}  // namespace earshot
