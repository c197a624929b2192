#include "core/assembler.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/json_rewrite.hpp"
#include "base/quantities.hpp"
#include "core/event_json.hpp"

namespace earshot {
namespace {

// Sizes as the limits count them. They are the same on every platform: the events depend on them.
constexpr std::size_t todo_bytes = 160, call_bytes = 256;  // without texts

std::size_t bytes_of(const Todo& todo) {
  return todo_bytes + todo.id.size() + todo.content.size() + todo.status.size() + todo.active_form.size() +
         todo.priority.size();
}

std::size_t bytes_of(const std::vector<Todo>& todos) {
  std::size_t bytes = 0;
  for (const Todo& one : todos) bytes += bytes_of(one);
  return bytes;
}

}  // namespace

std::size_t Assembler::Call::bytes() const {
  return call_bytes + call.size() + tool.size() + started.size() + description.size() + bytes_of(todos);
}

Assembler::Assembler(std::string own_agent, std::string_view program, std::uint64_t key,
                     const TextFilter* filter)
    : own_agent_(std::move(own_agent)), key_(key), filter_(filter) {
  state_.program = program;
}

std::uint64_t Assembler::hash(std::string_view text, IdOf kind) const {
  return XXH3_64bits_withSeed(text.data(), text.size(), key_ ^ static_cast<std::uint64_t>(kind));
}

// ---- Lines and records

void Assembler::begin_line(std::uint64_t line_offset, const Cursor& end, EventSink& sink) {
  line_offset_ = line_offset;
  cursor_ = end;
  index_ = 0;
  records_in_line_ = 0;
  sink_ = &sink;
  time_ = {};
  time_ms_ = 0;
  agent_ = own_agent_;
  is_own_chain_ = true;
}

void Assembler::begin_record(std::string_view time, std::int64_t time_ms) {
  time_ = time.size() <= time_bytes_max ? time : std::string_view{};
  time_ms_ = time_ms;
  state_.used.begin_record(time_ms_);
  agent_ = own_agent_;
  is_own_chain_ = true;
  ++records_in_line_;
  ++counts_.records;
}

void Assembler::begin_record(std::string_view time) {
  const auto ms = parse_time(time);
  begin_record(ms ? time : std::string_view{}, ms.value_or(0));
  note_activity();
}

void Assembler::note_activity() {
  if (time_ms_ <= state_.last_activity_ms) return;
  state_.last_activity_ms = time_ms_;
  state_.last_activity = time_;
}

void Assembler::set_own_agent(std::string_view agent) {
  agent = short_id(agent);
  for (auto& [number, call] : open_calls_)
    if (call.agent == own_agent_) call.agent = agent;
  own_agent_ = agent;
  set_agent(own_agent_);
}

std::string Assembler::record_name() const {
  std::string name = "@" + std::to_string(line_offset_);
  if (records_in_line_ > 1) name += "." + std::to_string(records_in_line_ - 1);
  return name;
}

void Assembler::emit_relayed(EventBody body, const RelayedEvent& relayed) {
  cursor_.index = ++index_;
  last_event_ = cursor_;
  ++counts_.events;
  state_.has_events = true;
  Event event(cursor_, time_, time_ms_, relayed.turn, relayed.agent, std::move(body));
  event.relayed = &relayed;
  sink_->on_event(event);
}

// ---- Session

void Assembler::start_session(event::SessionStarted fields) {
  state_.started = true;
  const auto take = [&](std::string& known, std::string_view& field) {
    if (!field.empty()) known = short_text(field);
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

void Assembler::update_session(event::SessionUpdated fields) {
  bool any = false;
  const auto update = [&](std::string& known, OptionalText& field) {
    if (!field) return;
    if (field->empty() || is_same_name(known, *field)) return field.reset();
    const std::string_view value = short_text(*field);
    if (known == value) return field.reset();
    known = value;
    field = known;
    any = true;
  };
  update(state_.title, fields.title);
  update(state_.cwd, fields.cwd);
  update(state_.git_branch, fields.git_branch);
  update(state_.model, fields.model);
  update(state_.version, fields.version);
  update(state_.mode, fields.mode);
  update(state_.permission_mode, fields.permission_mode);
  update(state_.sandbox, fields.sandbox);
  if (state_.project.empty()) state_.project = state_.cwd;
  if (any && state_.started) emit(fields);
}

// ---- Turns

void Assembler::start_turn(OptionalText prompt, std::string_view origin, std::string_view began,
                           bool is_continued) {
  const auto began_ms = parse_time(began);
  answer(false, [](const OpenRequest& request) { return request.kind == "auth"; });
  state_.continued_in.clear();
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
  is_continued |= origin == "task" || origin == "hook" || origin == "agent" || origin == "unknown";
  if (!is_continued || state_.prompted.turn == 0)
    state_.prompted = {state_.turn, state_.turn_started, state_.turn_started_ms,
                       state_.times.until(0).waited};
  emit(event::TurnStarted{prompt, own_agent_.empty() ? origin : "agent"});
}

void Assembler::finish_turn(std::string_view outcome, std::string_view stop_reason, bool inferred,
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

void Assembler::add_message(std::string_view role, std::string_view kind, OptionalText text,
                            std::string_view message, std::string_view model, std::optional<Media> media) {
  if (is_own_chain_ && role == "assistant" && kind == "text") {
    state_.last_text = preview_source(text.value_or(""));
    state_.last_text_truncated = text ? text->size() : 0;
    pending_previews_ |= text_preview;
  }
  emit(event::MessageAdded{role, kind, text, message, model, media});
}

// ---- Calls

bool Assembler::invoke(Call call, const Json& input, std::string_view message) {
  if (call.call.size() > id_bytes_max) call.call = std::string(short_id(call.call));
  bool is_new = false;
  call_numbers_.insert(hash(call.call, IdOf::call), call_count_ + 1, is_new);
  if (!is_new) return false;
  if (call.description.size() > text_bytes_max) call.description = std::string(short_text(call.description));
  call.agent = agent_, call.started = time_, call.started_ms = time_ms_;
  if (!call.asks.empty()) {
    OpenRequest request;
    request.id = request.call = call.call, request.kind = call.asks;
    ask(std::move(request));
  }
  open_call_bytes_ += call.bytes();
  own_open_calls_ += is_own_chain_;
  turn_tools_ += is_own_chain_;
  const Call& made = open_calls_.emplace_hint(open_calls_.end(), ++call_count_, std::move(call))->second;
  if (state_.tools.size() < StreamState::open_tools_max) {
    OpenTool shown;
    shown.call = made.call, shown.tool = cut_utf8(made.tool, text_bytes_max);
    if (!is_own_chain_) shown.agent = made.agent;
    list_tool(std::move(shown), input);
  }
  emit(event::ToolInvoked{made.call, made.tool, input, message});
  return true;
}

void Assembler::invoke_finished(std::string_view call, std::string_view tool, const Json& input,
                                std::string_view message) {
  turn_tools_ += is_own_chain_;
  emit(event::ToolInvoked{short_id(call), tool, input, message});
}

void Assembler::list_tool(OpenTool tool, const Json& input) {
  if (state_.tools.size() >= StreamState::open_tools_max) return;
  tool.started = time_, tool.started_ms = time_ms_;
  tool.is_raw = !input.json.empty() && input.json.size() <= StreamState::raw_input_bytes_max;
  if (tool.is_raw) {
    tool.input = input.json;
    pending_previews_ |= input_preview;
  } else if (!input.json.empty()) {
    set_input(tool, input);
  }
  state_.tools.push_back(std::move(tool));
}

const Assembler::Call* Assembler::open_call(std::string_view call) const {
  const std::uint32_t* number = call_numbers_.find(hash_of_call(call));
  return number && *number != 0 ? &open_calls_.at(*number) : nullptr;
}

const Assembler::Call* Assembler::last_open_call(std::string_view agent) const {
  const auto last = std::find_if(open_calls_.rbegin(), open_calls_.rend(),
                                 [&](const auto& one) { return one.second.agent == agent; });
  return last == open_calls_.rend() ? nullptr : &last->second;
}

Assembler::Call Assembler::take_call(std::uint32_t& number) {
  Call call = std::move(open_calls_.extract(std::exchange(number, 0)).mapped());
  open_call_bytes_ -= call.bytes();
  own_open_calls_ -= call.agent == own_agent_;
  return call;
}

std::optional<Assembler::Call> Assembler::finish_call(std::string_view call, event::ToolFinished finished) {
  std::uint32_t* const number = call_numbers_.find(hash_of_call(call));
  if (!number || *number == 0) {
    ++counts_.late_results;
    return std::nullopt;
  }
  std::optional<Call> done = take_call(*number);
  emit_finished(*done, std::move(finished));
  return done;
}

bool Assembler::finish_unknown_call(std::string_view call, event::ToolFinished finished) {
  bool is_new = false;
  if (!call.empty()) call_numbers_.insert(hash_of_call(call), 0, is_new);
  if (!is_new) {
    ++counts_.late_results;
    return false;
  }
  finished.call = short_id(call);
  emit(std::move(finished));
  return true;
}

// An abandoned call has no duration: when it ended is not known.
void Assembler::emit_finished(const Call& call, event::ToolFinished finished) {
  const bool is_end_known = finished.outcome != "abandoned";
  if (!call.asks.empty())
    answer(is_end_known, [&](const OpenRequest& request) { return request.id == call.call; });
  std::erase_if(state_.tools, [&](const OpenTool& one) { return one.call == call.call; });
  if (call.background) name_agent(state_, call.call, short_id(finished.background));
  finished.call = call.call;
  finished.tool = std::string_view(call.tool);
  if (!finished.duration_ms && is_end_known && time_ms_ && call.started_ms)
    finished.duration_ms = std::max<std::int64_t>(0, time_ms_ - call.started_ms);
  emit(std::move(finished));
}

void Assembler::close_calls(std::string_view outcome, const CallClosed& closed,
                            std::optional<std::string_view> agent) {
  const std::string_view current = agent_;
  for (auto next = open_calls_.begin(); next != open_calls_.end();) {
    const auto one = next++;
    if (agent && one->second.agent != *agent) continue;
    const Call call = take_call(*call_numbers_.find(hash(one->second.call, IdOf::call)));
    set_agent(call.agent);
    event::ToolFinished finished;
    finished.outcome = outcome;
    emit_finished(call, std::move(finished));
    if (closed) closed(call);
    set_agent(current);
  }
}

// The newest call stays, however large it is.
void Assembler::abandon_oldest_calls(const CallClosed& closed) {
  const std::string_view current = agent_;
  while (open_calls_.size() > 1 &&
         (open_calls_.size() > open_calls_max || open_call_bytes_ > open_call_bytes_max)) {
    ++counts_.dropped;
    const Call oldest = take_call(*call_numbers_.find(hash(open_calls_.begin()->second.call, IdOf::call)));
    set_agent(oldest.agent);  // its events carry its own agent
    event::ToolFinished finished;
    finished.outcome = "abandoned";
    emit_finished(oldest, std::move(finished));
    if (closed) closed(oldest);
    set_agent(current);
  }
}

void Assembler::restart_call(std::string_view id) {
  Call* const call = open_call(id);
  if (!call || !time_ms_) return;
  call->started_ms = time_ms_;
  for (OpenRequest& request : state_.requests)
    if (request.id == call->call) request.started_ms = time_ms_;
}

// ---- Requests and background tasks

void Assembler::ask(OpenRequest request) {
  request.is_timed = is_own_chain_;
  if (request.is_timed) state_.times.begin_wait(time_ms_);
  add_request(std::move(request));
}

void Assembler::ask_after_turn(OpenRequest request) {
  state_.times.ask_after_turn();
  add_request(std::move(request));
}

void Assembler::ask_to_sign_in(std::string_view error) {
  OpenRequest request;
  request.id = record_name(), request.kind = "auth", request.subject = short_text(error);
  add_request(std::move(request));
}

void Assembler::add_request(OpenRequest request) {
  answer(true, [&](const OpenRequest& one) { return one.id == request.id; });
  if (state_.requests.size() >= requests_max) {
    ++counts_.dropped;
    answer(false, [&](const OpenRequest& one) { return &one == &state_.requests.front(); });
  }
  if (!is_own_chain_) request.agent = short_id(agent_);
  request.started = time_, request.started_ms = time_ms_;
  state_.requests.push_back(std::move(request));
}

void Assembler::start_task(std::string_view id, std::string_view call) {
  if (id.empty()) return;
  if (state_.tasks.size() >= tasks_max) {
    ++counts_.dropped;
    state_.tasks.erase(state_.tasks.begin());
  }
  BackgroundTask& task = state_.tasks.emplace_back(BackgroundTask{std::string(short_id(id)), {}, {}, 0});
  const auto made = std::find_if(state_.tools.begin(), state_.tools.end(),
                                 [&](const OpenTool& tool) { return tool.call == short_id(call); });
  if (made != state_.tools.end()) task.made_by = *made;
  task.made_by.call = short_id(call);
  task.started = time_, task.started_ms = time_ms_;
}

std::optional<BackgroundTask> Assembler::take_task(const std::function<bool(const BackgroundTask&)>& is_it) {
  const auto found = std::find_if(state_.tasks.begin(), state_.tasks.end(), is_it);
  if (found == state_.tasks.end()) return std::nullopt;
  std::optional<BackgroundTask> task = std::move(*found);
  state_.tasks.erase(found);
  return task;
}

std::optional<BackgroundTask> Assembler::end_task(std::string_view id) {
  return take_task([&](const BackgroundTask& task) { return task.id == short_id(id); });
}

std::optional<BackgroundTask> Assembler::end_task_of(std::string_view call) {
  return take_task([&](const BackgroundTask& task) { return task.made_by.call == short_id(call); });
}

// ---- Subagents and todo lists

void Assembler::start_agent(const event::AgentStarted& started, bool is_background) {
  RunningAgent agent;
  agent.call = short_id(started.call), agent.subagent = short_text(started.subagent);
  agent.agent_type = short_text(started.agent_type), agent.description = short_text(started.description);
  agent.background = is_background;
  add_agent(std::move(agent));
  emit(started);
}

void Assembler::add_agent(RunningAgent agent) {
  if (state_.agents.size() >= agents_max) {
    ++counts_.dropped;
    state_.agents.erase(state_.agents.begin());
  }
  agent.started = time_;
  state_.agents.push_back(std::move(agent));
}

void Assembler::finish_agent(const event::AgentFinished& finished) {
  const std::string_view subagent = cut_utf8(finished.subagent, text_bytes_max);
  const auto is_it = [&](const RunningAgent& one) {
    return subagent.empty() || one.subagent.empty() ? one.call == short_id(finished.call)
                                                    : one.subagent == subagent;
  };
  const auto found = std::find_if(state_.agents.begin(), state_.agents.end(), is_it);
  if (found != state_.agents.end()) state_.agents.erase(found);
  emit(finished);
}

RunningAgent* Assembler::running_agent(std::string_view call) {
  const auto found = std::find_if(state_.agents.begin(), state_.agents.end(),
                                  [&](const RunningAgent& one) { return one.call == short_id(call); });
  return found == state_.agents.end() ? nullptr : &*found;
}

std::optional<RunningAgent> Assembler::take_agent(std::string_view call) {
  RunningAgent* const found = running_agent(call);
  if (!found) return std::nullopt;
  std::optional<RunningAgent> agent = std::move(*found);
  state_.agents.erase(state_.agents.begin() + (found - state_.agents.data()));
  return agent;
}

const std::vector<Todo>& Assembler::todos() const {
  static const std::vector<Todo> none;
  if (is_own_chain_) return state_.todos;
  const auto list = todo_lists_->find(agent_);
  return list == todo_lists_->end() ? none : list->second;
}

std::size_t Assembler::count_kept(std::span<const Todo> todos) {
  std::size_t kept = 0;
  for (std::size_t bytes = 0; kept < std::min(todos.size(), todos_max); ++kept)
    if (bytes += bytes_of(todos[kept]); bytes > todo_list_bytes_max) break;
  counts_.dropped += kept < todos.size();
  return kept;
}

void Assembler::set_todos(std::vector<Todo> todos, std::string_view source) {
  const std::vector<Todo>& before = this->todos();
  for (std::size_t n = 0; n < std::min(todos.size(), todos_max); ++n) {
    Todo& one = todos[n];
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const Todo& old) { return !one.id.empty() && old.id == one.id; });
    if (known == before.end()) continue;
    if (one.active_form.empty()) one.active_form = known->active_form;
    if (one.priority.empty()) one.priority = known->priority;
  }
  todos.resize(count_kept(todos));
  if (is_own_chain_) state_.todos_time = time_;
  if (todos == before) return;
  if (is_own_chain_) {
    state_.todos = std::move(todos);
    return emit(event::TodoUpdated{state_.todos, source});
  }
  emit(event::TodoUpdated{todos, source});
  auto& lists = todo_lists_.change();
  if (const auto known = lists.find(agent_); known != lists.end()) {
    todo_lists_bytes_ -= known->first.size() + bytes_of(known->second);
    lists.erase(known);
  }
  if (todos.empty()) return;
  const std::size_t bytes = agent_.size() + bytes_of(todos);
  if (todo_lists_bytes_ + bytes > todo_lists_bytes_max) {
    ++counts_.dropped;
    return;
  }
  todo_lists_bytes_ += bytes;
  lists.emplace(agent_, std::move(todos));
}

std::uint64_t Assembler::with_time(std::uint64_t id) const {
  return XXH3_64bits_withSeed(&time_ms_, sizeof time_ms_, id);
}

/// For other transcripts, which may have a record of the same short id.
void Assembler::note_record(std::string_view id, std::uint64_t hash) {
  has_records_ = true;
  if (id.size() < short_id_bytes) ids_.insert(hash = with_time(hash));
  if (records_) records_->push_back({hash, cursor_.offset});
}

// ---- Usage

std::uint64_t Assembler::request_id(std::string_view record) const {
  if (record.empty()) return 0;
  const std::uint64_t id = hash(record, IdOf::request);
  return record.size() < short_id_bytes ? with_time(id) : id;
}

void Assembler::account(const RequestUsage& request) {
  add_usage(request);
  emit(event::UsageUpdated{request.message, request.model, request.used, state_.usage, state_.cost_usd});
}

void Assembler::account_once(const RequestUsage& request) {
  const StreamUsage::Grown grown = add_usage(request);
  if (request.is_context && is_own_chain_)
    state_.context_tokens = grown.now.input + grown.now.cache_read + grown.now.cache_write;
  if (grown.more != Usage{} || grown.more_usd > 0)
    emit(event::UsageUpdated{request.message, request.model, grown.now, state_.usage, state_.cost_usd});
}

StreamUsage::Grown Assembler::add_usage(const RequestUsage& request) {
  const StreamUsage::Grown grown =
      state_.used.add(request.id, request.counted_model, request.used, request.usd);
  state_.usage += grown.more;
  if (grown.more_usd > 0) state_.cost_usd = state_.cost_usd.value_or(0) + grown.more_usd;
  return grown;
}

// ---- State

std::string_view Assembler::preview_source(std::string_view text) const {
  return cut_utf8(text, StreamState::input_preview_bytes + (filter_ ? filter_->reach() : 0));
}

void Assembler::set_input(OpenTool& tool, const Json& input) const {
  TruncatedPaths truncated;
  const TruncatedPaths::Scope scope(truncated, "input");
  append_json(tool.input, input.json, StreamState::input_preview_bytes, filter_, truncated, input.is_utf8);
  if (tool.input.size() > StreamState::input_bytes_max) {
    std::string scratch;
    tool.input.clear();
    append_json_string(tool.input,
                       json_prefix(input.json, StreamState::input_preview_bytes, filter_, scratch));
    truncated.shrink(0);
    truncated.add({}, input.json.size());
  }
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
  const auto prepare_input = [&](OpenTool& tool) {
    if (!std::exchange(tool.is_raw, false)) return;
    const std::string raw = std::exchange(tool.input, {});
    set_input(tool, {raw});
  };
  for (OpenTool& tool : state_.tools) prepare_input(tool);
  for (BackgroundTask& task : state_.tasks) prepare_input(task.made_by);
}

std::size_t Assembler::memory_bytes() const {
  std::size_t bytes =
      sizeof *this + ids_.memory_bytes() + call_numbers_.memory_bytes() + state_.used.memory_bytes();
  bytes += todo_lists_bytes_ + open_call_bytes_;
  for (const Todo& todo : state_.todos) bytes += sizeof todo + todo.content.size() + todo.active_form.size();
  const auto bytes_of_tool = [](const OpenTool& tool) {
    return sizeof tool + tool.call.size() + tool.tool.size() + tool.agent.size() + tool.input.capacity();
  };
  for (const OpenTool& tool : state_.tools) bytes += bytes_of_tool(tool);
  for (const RunningAgent& agent : state_.agents)
    bytes += sizeof agent + agent.call.size() + agent.subagent.size() + agent.agent_type.size() +
             agent.description.size();
  for (const OpenRequest& request : state_.requests)
    bytes += sizeof request + request.id.size() + request.call.size() + request.subject.size();
  for (const BackgroundTask& task : state_.tasks) bytes += task.id.size() + bytes_of_tool(task.made_by);
  return bytes;
}

}  // namespace earshot
