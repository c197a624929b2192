// Calls and their results, subagents, todo lists.
#include <algorithm>

#include "core/assembler.hpp"
#include "core/event_json.hpp"

namespace earshot {
namespace {

using Purpose = fact::Invocation::Purpose;

std::string_view agent_outcome_of(std::string_view tool_outcome) {
  if (tool_outcome == "ok") return "completed";
  return tool_outcome == "error" ? "failed" : tool_outcome;
}

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
  return call_bytes + call.size() + tool.size() + started.size() + bytes_of(todos);
}

// The newest call stays, however large it is.
void Assembler::abandon_oldest_calls() {
  const std::uint32_t chain = chain_;
  while (open_calls_.size() > 1 &&
         (open_calls_.size() > open_calls_max || open_call_bytes_ > open_call_bytes_max)) {
    ++counts_.dropped;
    Call& oldest = open_calls_.begin()->second;
    chain_ = oldest.chain;  // its events carry its own agent
    event::ToolFinished finished;
    finished.outcome = "abandoned";
    close_call(std::move(oldest), std::move(finished), nullptr);
  }
  chain_ = chain;
}

void Assembler::add_agent(RunningAgent agent) {
  if (state_.agents.size() >= agents_max) {
    ++counts_.dropped;
    state_.agents.erase(state_.agents.begin());
  }
  state_.agents.push_back(std::move(agent));
}

Assembler::Call* Assembler::open_call(std::string_view id) {
  const auto* number = call_numbers_.find(hash(short_id(id), HashKind::call));
  if (!number || *number == 0) return nullptr;
  return &open_calls_.at(*number);
}

// In a dialect without ids: the call that is the record's parent or, without a parent, the last open call of
// its chain.
Assembler::Call* Assembler::find_call_by_position() {
  if (!record_->parent.empty()) return open_call(record_->parent);
  for (auto one = open_calls_.rbegin(); one != open_calls_.rend(); ++one)
    if (one->second.chain == chain_) return &one->second;
  return nullptr;
}

void Assembler::apply(const fact::Invocation& invocation) {
  const std::string_view id = short_id(!invocation.call.empty() ? invocation.call
                                       : !record_->uuid.empty() ? record_->uuid
                                                                : record_name_);
  bool fresh = false;
  const std::uint64_t call_hash = hash(id, HashKind::call);
  call_numbers_.insert(call_hash, call_count_ + 1, fresh);
  if (!fresh && !early_results_->contains(call_hash)) return;
  if (fresh) {
    Call call;
    call.call = id, call.tool = invocation.tool, call.started = record_->time,
    call.started_ms = record_->time_ms;
    call.chain = chain_, call.purpose = invocation.purpose, call.todos = invocation.todos;
    call.asks = invocation.asks && is_own_chain();
    if (call.asks) state_.times.begin_wait(record_->time_ms);
    open_call_bytes_ += call.bytes();
    open_calls_.emplace(++call_count_, std::move(call));
    own_open_calls_ += is_own_chain();
    if (state_.tools.size() < StreamState::open_tools_max) {
      OpenTool shown;
      shown.call = id, shown.tool = invocation.tool;
      if (!is_own_chain()) shown.agent = chains_[chain_].agent;
      shown.started = record_->time, shown.started_ms = record_->time_ms;
      const std::string_view input = invocation.input.json;
      shown.is_raw = !input.empty() && input.size() <= StreamState::raw_input_bytes_max;
      if (shown.is_raw)
        shown.input = input;
      else if (!input.empty())
        set_input(shown, invocation.input);
      if (shown.is_raw) pending_previews_ |= input_preview;
      state_.tools.push_back(std::move(shown));
    }
  }
  turn_tools_ += is_own_chain();
  emit(event::ToolInvoked{id, invocation.tool, invocation.input, record_->message});
  EarlyResult result;
  if (!fresh) result = std::move(early_results_.change().extract(call_hash).mapped());
  if (invocation.purpose == Purpose::subagent) {
    add_agent({std::string(id), result.subagent, std::string(short_text(invocation.agent_type)),
               std::string(short_text(invocation.description)), std::string(short_id(record_->time)),
               result.runs_in_background});
    emit(event::AgentStarted{result.subagent, invocation.agent_type, invocation.description, id,
                             invocation.background});
  }
  abandon_oldest_calls();
  if (fresh || invocation.purpose != Purpose::subagent) return;
  if (result.runs_in_background) return finish_reported_agent(id, result.subagent);
  finish_agent(id, agent_end(result.report));
}

event::AgentFinished Assembler::agent_end(const Report& report) {
  event::AgentFinished end;
  end.outcome = report.outcome;
  end.duration_ms = report.duration_ms, end.tokens = report.tokens, end.tools = report.tools;
  return end;
}

// A background agent whose end was read before its launch.
void Assembler::finish_reported_agent(std::string_view call, const std::string& subagent) {
  const Report* report = early_reports_->find(subagent);
  if (!report) return;
  const Report end = *report;
  early_reports_.change().erase(subagent);
  finish_agent(call, agent_end(end));
}

void Assembler::apply(const fact::Result& result) {
  bool fresh = false;
  if (!result.resumed.empty())
    ++resume_counts_.change().insert(hash(result.resumed, HashKind::task), 0, fresh);
  Call* open = result.by_position ? find_call_by_position() : open_call(result.call);
  if (!open && result.by_position) {
    if (result.output) emit(event::MessageAdded{"system", "text", result.output, {}, {}, std::nullopt});
    return;
  }
  event::ToolFinished finished;
  finished.outcome = result.outcome;
  if (result.is_late_rejection && has_turn_positions_) finished.outcome = "interrupted";
  if (record_->aborted) finished.outcome = "interrupted";
  finished.output = result.output;
  finished.media = result.media;
  finished.background = result.background;
  if (open) {
    if (record_->time_ms && open->started_ms)
      finished.duration_ms = std::max<std::int64_t>(0, record_->time_ms - open->started_ms);
    return close_call(std::move(*open), std::move(finished), &result);
  }
  fresh = false;
  if (!result.call.empty()) call_numbers_.insert(hash(short_id(result.call), HashKind::call), 0, fresh);
  if (!fresh) {
    ++counts_.late_results;
    return;
  }
  if (early_results_->size() < early_results_max)
    early_results_.change()[hash(short_id(result.call), HashKind::call)] = {
        {std::string(short_text(agent_outcome_of(finished.outcome))), result.duration_ms, result.tokens,
         result.tools},
        std::string(short_text(result.subagent)),
        result.launch || !result.background.empty()};
  else
    ++counts_.dropped;
  finished.call = short_id(result.call);
  emit(std::move(finished));
}

// Emits the end of a call and of its subagent, and applies its todo changes. `result` is null without a
// result.
void Assembler::close_call(Call call, event::ToolFinished finished, const fact::Result* result) {
  open_call_bytes_ -= std::min(open_call_bytes_, call.bytes());
  std::uint32_t* number = call_numbers_.find(hash(call.call, HashKind::call));
  open_calls_.erase(*number);
  *number = 0;
  own_open_calls_ -= call.chain == own_chain;
  if (call.asks)
    state_.times.end_wait(call.started_ms, finished.outcome == "abandoned" ? 0 : record_->time_ms);
  std::erase_if(state_.tools, [&](const OpenTool& one) { return one.call == call.call; });
  finished.call = call.call;
  finished.tool = std::string_view(call.tool);
  const std::string_view outcome = finished.outcome;
  const bool runs_in_background = result && (result->launch || !result->background.empty());
  emit(std::move(finished));

  if (call.purpose == Purpose::subagent) {
    event::AgentFinished end;
    end.outcome = agent_outcome_of(outcome);
    if (result) {
      end.subagent = result->subagent;
      end.duration_ms = result->duration_ms, end.tokens = result->tokens, end.tools = result->tools;
    }
    const auto agent = std::find_if(state_.agents.begin(), state_.agents.end(),
                                    [&](const RunningAgent& one) { return one.call == call.call; });
    if (runs_in_background && agent != state_.agents.end()) {
      agent->background = true;
      if (!result->subagent.empty()) agent->subagent = short_text(result->subagent);
      finish_reported_agent(call.call, std::string(agent->subagent));
    } else if (!runs_in_background) {
      finish_agent(call.call, end);
    }
  }
  if (result && outcome == "ok") apply_todos(call, *result);
}

void Assembler::close_calls(std::string_view outcome, bool every_chain) {
  for (auto next = open_calls_.begin(); next != open_calls_.end();) {
    const auto one = next++;
    if (!every_chain && one->second.chain != chain_) continue;
    const std::uint32_t chain = chain_;
    chain_ = one->second.chain;  // its events carry its own agent
    event::ToolFinished finished;
    finished.outcome = outcome;
    if (outcome == "interrupted" && record_->time_ms && one->second.started_ms)
      finished.duration_ms = std::max<std::int64_t>(0, record_->time_ms - one->second.started_ms);
    close_call(std::move(one->second), std::move(finished), nullptr);
    chain_ = chain;
  }
}

// `finished` has what the record has; the rest comes from the running agent of this call.
void Assembler::finish_agent(std::string_view call, event::AgentFinished finished) {
  RunningAgent known;
  known.call = call;
  const auto agent = std::find_if(state_.agents.begin(), state_.agents.end(),
                                  [&](const RunningAgent& one) { return one.call == call; });
  if (agent != state_.agents.end()) {
    known = std::move(*agent);
    state_.agents.erase(agent);
  }
  if (finished.subagent.empty()) finished.subagent = known.subagent;
  finished.call = known.call;
  finished.agent_type = known.agent_type;
  finished.description = known.description;
  finished.background = known.background;
  emit(finished);
}

void Assembler::apply_todos(const Call& call, const fact::Result& result) {
  if (result.todo.refused) return;
  std::vector<Todo> todos = chains_[chain_].todos;
  const Todo reported = result.todo.item.value_or(Todo{});
  const Todo requested = call.todos.empty() ? Todo{} : call.todos.front();
  switch (call.purpose) {
    case Purpose::plain:
    case Purpose::subagent:
      return;
    case Purpose::todo_write:
      todos = result.todo.list ? *result.todo.list : call.todos;
      break;
    case Purpose::todo_list:
      if (!result.todo.list) return;
      todos = *result.todo.list;
      break;
    case Purpose::todo_create: {
      Todo created = requested;
      if (!reported.id.empty()) created.id = reported.id;
      if (!reported.content.empty()) created.content = reported.content;
      created.status = !reported.status.empty() ? reported.status : "pending";
      todos.push_back(std::move(created));
      break;
    }
    case Purpose::todo_update: {
      const std::string& id = !requested.id.empty() ? requested.id : reported.id;
      const auto found =
          std::find_if(todos.begin(), todos.end(), [&](const Todo& one) { return one.id == id; });
      if (id.empty() || found == todos.end()) return;
      const std::string& status = !reported.status.empty() ? reported.status : requested.status;
      if (!status.empty()) found->status = status;
      if (!requested.content.empty()) found->content = requested.content;
      if (!requested.active_form.empty()) found->active_form = requested.active_form;
      if (status == "deleted") todos.erase(found);
      break;
    }
  }
  set_todos(std::move(todos), call.tool);
}

void Assembler::set_todos(std::vector<Todo> todos, std::string_view source) {
  std::vector<Todo>& current = chains_[chain_].todos;
  const std::size_t items = todos.size();
  if (items > todos_max) todos.resize(todos_max);
  // A list may omit fields of an item that an earlier list had.
  for (Todo& one : todos) {
    const auto before = std::find_if(current.begin(), current.end(),
                                     [&](const Todo& old) { return !one.id.empty() && old.id == one.id; });
    if (before == current.end()) continue;
    if (one.active_form.empty()) one.active_form = before->active_form;
    if (one.priority.empty()) one.priority = before->priority;
  }
  std::size_t kept = 0;
  for (std::size_t bytes = 0; kept < todos.size(); ++kept)
    if (bytes += bytes_of(todos[kept]); bytes > todo_list_bytes_max) break;
  todos.resize(kept);
  counts_.dropped += kept < items;
  if (is_own_chain()) state_.todos_time = record_->time;
  if (todos == current) return;
  if (is_own_chain()) {
    current = std::move(todos);
    state_.todos = current;
    return emit(event::TodoUpdated{current, source});
  }
  emit(event::TodoUpdated{todos, source});
  todo_lists_bytes_ -= std::min(todo_lists_bytes_, bytes_of(current));
  if (todo_lists_bytes_ + bytes_of(todos) > todo_lists_bytes_max) {
    ++counts_.dropped;
    todos = {};
  }
  todo_lists_bytes_ += bytes_of(todos);
  current = std::move(todos);
}

}  // namespace earshot
