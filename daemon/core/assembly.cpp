#include "core/assembly.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/quantities.hpp"
#include "base/text.hpp"
#include "core/event_json.hpp"
#include "core/transcript.hpp"

namespace earshot {

Assembly::Assembly(std::string own_agent, std::string_view program, std::uint64_t key,
                   const TextFilter* filter, RecordCounts& counts)
    : own_agent_(std::move(own_agent)), key_(key), filter_(filter), counts_(counts), types_(counts) {
  state_.program = program;
}

std::uint64_t Assembly::hash(std::string_view text, HashKind kind) const {
  return XXH3_64bits_withSeed(text.data(), text.size(), key_ ^ static_cast<std::uint64_t>(kind));
}

std::unique_ptr<RecordAssembler> RecordReader::make_assembler() const { return nullptr; }

// ---- Lines and records

void Assembly::begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink) {
  line_offset_ = line_offset;
  cursor_ = end;
  index_ = 0;
  records_in_line_ = 0;
  sink_ = &sink;
  time_ = {};
  time_ms_ = 0;
  agent_ = own_agent_;
}

void Assembly::begin_record(std::string_view time) {
  const auto ms = parse_time(time);
  time_ = ms ? time : std::string_view{};
  time_ms_ = ms.value_or(0);
  state_.usage_by_model.set_time(time_ms_);
  agent_ = own_agent_;
  ++records_in_line_;
  ++counts_.records;
  if (time_ms_ > state_.last_activity_ms) {
    state_.last_activity_ms = time_ms_;
    state_.last_activity = time_;
  }
}

std::string Assembly::record_name() const {
  std::string name = "@" + std::to_string(line_offset_);
  if (records_in_line_ > 1) name += "." + std::to_string(records_in_line_ - 1);
  return name;
}

void Assembly::set_own_agent(std::string_view agent) {
  for (auto& [number, call] : open_calls_)
    if (call.agent == own_agent_) call.agent = agent;
  agent_ = own_agent_ = agent;
}

bool Assembly::is_new(std::string_view id) {
  const bool is_new = records_.insert(hash(id, HashKind::record));
  counts_.duplicates += !is_new;
  return is_new;
}

std::uint64_t& Assembly::counts_duplicates() { return counts_.duplicates; }

// ---- Session

void Assembly::start_session(event::SessionStarted fields) {
  state_.started = true;
  const auto take = [](std::string& known, std::string_view& field) {
    if (!field.empty()) known = field;
    field = known;
  };
  take(state_.version, fields.version);
  take(state_.cwd, fields.cwd);
  take(state_.git_branch, fields.git_branch);
  if (state_.project.empty()) state_.project = state_.cwd;
  take(state_.project, fields.project);
  take(state_.title, fields.title);
  take(state_.continues, fields.continues);
  take(state_.mode, fields.mode);
  take(state_.permission_mode, fields.permission_mode);
  take(state_.sandbox, fields.sandbox);
  take(state_.source, fields.source);
  take(state_.originator, fields.originator);
  take(state_.parent, fields.parent);
  take(state_.agent_type, fields.agent_type);
  fields.program = state_.program;
  fields.dialect = state_.dialect;
  emit(fields);
}

void Assembly::update_session(const event::SessionUpdated& fields) {
  event::SessionUpdated changed;
  bool any = false;
  const auto update = [&](std::string& known, const OptionalText& field, OptionalText& out) {
    if (!field || field->empty() || known == *field) return;
    known = *field;
    out = known;
    any = true;
  };
  update(state_.title, fields.title, changed.title);
  update(state_.cwd, fields.cwd, changed.cwd);
  update(state_.git_branch, fields.git_branch, changed.git_branch);
  update(state_.model, fields.model, changed.model);
  update(state_.version, fields.version, changed.version);
  update(state_.mode, fields.mode, changed.mode);
  update(state_.permission_mode, fields.permission_mode, changed.permission_mode);
  update(state_.sandbox, fields.sandbox, changed.sandbox);
  if (state_.project.empty()) state_.project = state_.cwd;
  if (any && state_.started) emit(changed);
}

// ---- Turns

void Assembly::start_turn(OptionalText prompt, std::string_view origin, std::string_view began) {
  const auto began_ms = parse_time(began);
  ++state_.turn;
  state_.turn_open = true;
  state_.turn_started = began_ms ? began : time_;
  state_.turn_started_ms = began_ms.value_or(time_ms_);
  state_.turn_prompt = preview_source(prompt.value_or(""));
  state_.turn_prompt_truncated = prompt ? prompt->size() : 0;
  pending_previews_ |= prompt_preview;
  turn_tools_ = 0;
  turn_usage_ = state_.usage;
  state_.times.start_turn(state_.turn_started_ms);
  emit(event::TurnStarted{prompt, own_agent_.empty() ? origin : "agent"});
}

void Assembly::finish_turn(std::string_view outcome, std::string_view stop_reason, bool inferred,
                           std::optional<std::int64_t> duration_ms, std::int64_t end_ms) {
  if (!duration_ms && end_ms && state_.turn_started_ms)
    duration_ms = std::max<std::int64_t>(0, end_ms - state_.turn_started_ms);
  const auto grown = [&](std::uint64_t Usage::*count) {
    return std::max(state_.usage.*count, turn_usage_.*count) - turn_usage_.*count;
  };
  state_.turn_open = false;
  state_.last_outcome = outcome;
  state_.last_finished = time_;
  state_.times.finish_turn(end_ms);
  emit(event::TurnFinished{
      outcome,
      inferred,
      stop_reason,
      duration_ms,
      turn_tools_,
      {grown(&Usage::input), grown(&Usage::output), grown(&Usage::cache_read), grown(&Usage::cache_write)},
      state_.times.turn_waited()});
}

// ---- Content

void Assembly::add_message(std::string_view role, std::string_view kind, OptionalText text,
                           std::string_view message, std::string_view model, std::optional<Media> media) {
  if (role == "assistant" && kind == "text" && is_own_chain()) {
    state_.last_text = preview_source(text.value_or(""));
    state_.last_text_truncated = text ? text->size() : 0;
    pending_previews_ |= text_preview;
  }
  emit(event::MessageAdded{role, kind, text, message, model, media});
}

Assembly::Call* Assembly::invoke(std::string_view call, std::string_view tool, std::string_view input_json,
                                 std::string_view message) {
  bool fresh = false;
  calls_.insert(hash(call, HashKind::call), call_count_ + 1, fresh);
  if (!fresh) return nullptr;
  if (open_calls_.size() >= open_calls_max) {
    Call& oldest = open_calls_.begin()->second;
    *calls_.find(hash(oldest.call, HashKind::call)) = 0;
    own_open_calls_ -= oldest.agent == own_agent_;
    if (oldest.asks) end_wait(0, false);
    std::erase_if(state_.tools, [&](const OpenTool& one) { return one.call == oldest.call; });
    open_calls_.erase(open_calls_.begin());
  }
  Call& made = open_calls_[++call_count_];
  made.call = call, made.tool = tool, made.agent = agent_, made.started = time_, made.started_ms = time_ms_;
  own_open_calls_ += is_own_chain();
  turn_tools_ += is_own_chain();
  list_tool(made, input_json);
  emit(event::ToolInvoked{call, tool, Json{input_json}, message});
  return &made;
}

void Assembly::wait_for_answer(Call& call) {
  if (call.agent != own_agent_ || std::exchange(call.asks, true)) return;
  begin_wait();
}

void Assembly::list_tool(const Call& call, std::string_view input_json) {
  if (state_.tools.size() >= StreamState::open_tools_max) return;
  OpenTool shown;
  shown.call = call.call, shown.tool = call.tool;
  if (!is_own_chain()) shown.agent = call.agent;
  shown.started = call.started, shown.started_ms = call.started_ms;
  shown.is_raw = !input_json.empty() && input_json.size() <= StreamState::raw_input_bytes_max;
  if (shown.is_raw)
    shown.input = input_json;
  else if (!input_json.empty())
    set_input(shown, input_json);
  if (shown.is_raw) pending_previews_ |= input_preview;
  state_.tools.push_back(std::move(shown));
}

const Assembly::Call* Assembly::open_call(std::string_view call) const {
  const std::uint32_t* number = calls_.find(hash(call, HashKind::call));
  return number && *number != 0 ? &open_calls_.at(*number) : nullptr;
}

std::optional<Assembly::Call> Assembly::finish_call(std::string_view call, event::ToolFinished finished) {
  std::uint32_t* number = calls_.find(hash(call, HashKind::call));
  if (!number || *number == 0) {
    ++counts_.late_results;
    return std::nullopt;
  }
  Call done = std::move(open_calls_.extract(std::exchange(*number, 0)).mapped());
  emit_finished(done, std::move(finished));
  return done;
}

void Assembly::close_calls(std::string_view outcome, const std::function<void(const Call&)>& finished,
                           std::optional<std::string_view> agent) {
  const std::string_view current = agent_;
  for (auto next = open_calls_.begin(); next != open_calls_.end();) {
    const auto one = next++;
    if (agent && one->second.agent != *agent) continue;
    Call call = std::move(open_calls_.extract(one).mapped());
    *calls_.find(hash(call.call, HashKind::call)) = 0;
    agent_ = call.agent;
    event::ToolFinished end;
    end.outcome = outcome;
    emit_finished(call, std::move(end));
    if (finished) finished(call);
    agent_ = current;
  }
}

// An abandoned call has no duration: when it ended is not known.
void Assembly::emit_finished(Call& call, event::ToolFinished finished) {
  own_open_calls_ -= call.agent == own_agent_;
  if (call.asks) end_wait(call.started_ms, finished.outcome != "abandoned");
  std::erase_if(state_.tools, [&](const OpenTool& one) { return one.call == call.call; });
  name_agent(state_, call.call, finished.background);
  finished.call = call.call;
  finished.tool = std::string_view(call.tool);
  if (!finished.duration_ms && finished.outcome != "abandoned" && time_ms_ && call.started_ms)
    finished.duration_ms = std::max<std::int64_t>(0, time_ms_ - call.started_ms);
  emit(std::move(finished));
}

void Assembly::start_agent(const event::AgentStarted& started) {
  if (state_.agents.size() >= agents_max) state_.agents.erase(state_.agents.begin());
  state_.agents.push_back({std::string(started.call), std::string(started.subagent),
                           std::string(started.agent_type), std::string(started.description),
                           std::string(time_), started.background});
  emit(started);
}

void Assembly::finish_agent(const event::AgentFinished& finished) {
  const auto is_it = [&](const RunningAgent& one) {
    return finished.subagent.empty() || one.subagent.empty() ? one.call == finished.call
                                                             : one.subagent == finished.subagent;
  };
  const auto found = std::find_if(state_.agents.begin(), state_.agents.end(), is_it);
  if (found != state_.agents.end()) state_.agents.erase(found);
  emit(finished);
}

void Assembly::set_todos(std::vector<Todo> todos, std::string_view source) {
  if (is_own_chain()) state_.todos_time = time_;
  auto current = todo_lists_.find(agent_);
  if (current == todo_lists_.end()) {
    if (todos.empty() || todo_lists_.size() >= todo_lists_max) return;
    current = todo_lists_.emplace(agent_, std::vector<Todo>{}).first;
  }
  if (todos == current->second) return;
  current->second = std::move(todos);
  if (is_own_chain()) state_.todos = current->second;
  emit(event::TodoUpdated{current->second, source});
}

// ---- State

std::string_view Assembly::preview_source(std::string_view text) const {
  return cut_utf8(text, StreamState::input_preview_bytes + (filter_ ? filter_->reach() : 0));
}

void Assembly::set_input(OpenTool& tool, std::string_view json) const {
  TruncatedPaths truncated;
  const TruncatedPaths::Scope scope(truncated, "input");
  append_json(tool.input, json, StreamState::input_preview_bytes, filter_, truncated);
  tool.truncated = truncated.list();
}

const StreamState& Assembly::state() const {
  if (!pending_previews_) return state_;
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
    if (std::exchange(tool.is_raw, false)) set_input(tool, std::exchange(tool.input, {}));
  }
  return state_;
}

std::size_t Assembly::memory_bytes() const {
  std::size_t bytes = sizeof *this + records_.memory_bytes() + calls_.memory_bytes() +
                      open_calls_.size() * (sizeof(Call) + 64) + todo_lists_.size() * 128;
  bytes += state_.tools.capacity() * sizeof(OpenTool) + state_.todos.capacity() * sizeof(Todo) +
           state_.agents.capacity() * sizeof(RunningAgent);
  for (const OpenTool& tool : state_.tools) bytes += tool.input.capacity();
  bytes += state_.usage_by_model.memory_bytes();
  return bytes;
}

}  // namespace earshot
