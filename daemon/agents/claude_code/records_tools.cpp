// Calls and their results, subagents, todo lists.
#include <algorithm>

#include "agents/claude_code/records.hpp"

namespace earshot::claude_code {
namespace {

using IdOf = Assembler::IdOf;

std::string_view agent_outcome_of(std::string_view tool_outcome) {
  if (tool_outcome == "ok") return "completed";
  return tool_outcome == "error" ? "failed" : tool_outcome;
}

}  // namespace

void Records::apply(const fact::Invocation& invocation, Assembler& to) {
  const std::string_view id = Assembler::short_id(!invocation.call.empty() ? invocation.call
                                                  : !record_->uuid.empty() ? record_->uuid
                                                                           : record_name_);
  EarlyResult result;
  Assembler::Call call;
  call.call = id, call.tool = invocation.tool, call.todos = invocation.todos, call.asks = invocation.asks;
  call.purpose = static_cast<std::uint8_t>(invocation.purpose);
  const bool is_new = to.invoke(std::move(call), invocation.input, record_->message);
  if (!is_new) {
    const std::uint64_t number = to.hash(id, IdOf::call);
    if (!early_results_->contains(number)) return;
    result = std::move(early_results_.change().extract(number).mapped());
    to.invoke_finished(id, invocation.tool, invocation.input, record_->message);
  }
  if (invocation.purpose == Purpose::subagent)
    to.start_agent(
        {result.subagent, invocation.agent_type, invocation.description, id, invocation.background},
        result.runs_in_background);
  to.abandon_oldest_calls([&](const Assembler::Call& one) { end_call(one, "abandoned", nullptr, to); });
  if (is_new || invocation.purpose != Purpose::subagent) return;
  if (result.runs_in_background) return finish_reported_agent(id, result.subagent, to);
  finish_agent(id, agent_end(result.report), to);
}

event::AgentFinished Records::agent_end(const Report& report) {
  event::AgentFinished end;
  end.outcome = report.outcome;
  end.duration_ms = report.duration_ms, end.tokens = report.tokens, end.tools = report.tools;
  return end;
}

// A background agent: its end was read before its launch.
void Records::finish_reported_agent(std::string_view call, std::string_view subagent, Assembler& to) {
  const Report* report = early_reports_->find(subagent);
  if (!report) return;
  const Report end = *report;
  early_reports_.change().erase(subagent);
  finish_agent(call, agent_end(end), to);
}

// In a dialect without ids: the call that is the record's parent or, without a parent, the last open call of
// its chain.
const Assembler::Call* Records::find_call(const fact::Result& result, const Assembler& to) const {
  if (!result.by_position) return to.open_call(result.call);
  if (!record_->parent.empty()) return to.open_call(record_->parent);
  return to.last_open_call(chain_ == own_chain ? to.own_agent() : chains_[chain_].agent);
}

// The agent was told finished, and works again.
void Records::resume_agent(const fact::Result& result, Assembler& to) {
  bool fresh = false;
  ++resume_counts_.change().insert(to.hash(result.resumed, IdOf::task), 0, fresh);
  RunningAgent agent;
  agent.call = Assembler::short_id(result.call), agent.subagent = to.short_text(result.resumed);
  agent.background = agent.is_resumed = true;
  const std::vector<RunningAgent>& running = to.raw_state().agents;
  if (std::none_of(running.begin(), running.end(),
                   [&](const RunningAgent& one) { return one.subagent == agent.subagent; }))
    to.add_agent(std::move(agent));
}

void Records::set_schedule(const fact::Result& result, StreamState& state) const {
  const std::string id(Assembler::short_id(result.schedule));
  std::erase_if(state.schedules, [&](const Schedule& each) { return each.id == id; });
  if (state.schedules.size() >= StreamState::schedules_max) state.schedules.erase(state.schedules.begin());
  state.schedules.push_back({id, *result.due_ms, record_->time_ms, result.is_recurring});
}

void Records::apply(const fact::Result& result, Assembler& to) {
  if (!result.resumed.empty()) resume_agent(result, to);
  const Assembler::Call* open = find_call(result, to);
  if (!open && result.by_position) {
    if (result.output) to.add_message("system", "text", result.output);
    return;
  }
  event::ToolFinished finished;
  finished.outcome = result.outcome;
  if (result.is_late_rejection && has_turn_positions_) finished.outcome = "interrupted";
  if (record_->aborted) finished.outcome = "interrupted";
  finished.output = result.output;
  finished.media = result.media;
  finished.background = result.background;
  const std::string_view outcome = finished.outcome;
  if (!result.launch && result.subagent.empty())
    to.start_task(result.background, open ? std::string_view(open->call) : result.call);
  if (outcome == "ok") to.start_task(result.monitor, open ? std::string_view(open->call) : result.call);
  if (outcome == "ok" && result.due_ms) set_schedule(result, to.mutable_state());
  std::optional<BackgroundTask> stopped;
  if (outcome == "ok") stopped = to.end_task(result.stopped);
  const auto tell_stop = [&] {
    if (stopped && !result.is_stop_told && is_first_end(stopped->id, "killed", to))
      to.emit(event::TaskFinished{stopped->id, stopped->made_by.call, "killed", std::nullopt});
  };
  if (open) {
    end_call(*to.finish_call(open->call, std::move(finished)), outcome, &result, to);
    return tell_stop();
  }
  if (!to.finish_unknown_call(result.call, std::move(finished))) return;
  tell_stop();
  if (early_results_->size() < early_results_max)
    early_results_.change()[to.hash(Assembler::short_id(result.call), IdOf::call)] = {
        {std::string(to.short_text(agent_outcome_of(outcome))), result.duration_ms, result.tokens,
         result.tools},
        std::string(to.short_text(result.subagent)),
        result.launch || !result.background.empty()};
  else
    ++to.counts().dropped;
}

// The end of a call's subagent, and its todo changes. `result` is null without a result.
void Records::end_call(const Assembler::Call& call, std::string_view outcome, const fact::Result* result,
                       Assembler& to) {
  if (static_cast<Purpose>(call.purpose) == Purpose::subagent) {
    RunningAgent* const agent = to.running_agent(call.call);
    const bool runs_in_background = result && (result->launch || !result->background.empty());
    if (runs_in_background && agent) {
      agent->background = true;
      if (!result->subagent.empty()) agent->subagent = to.short_text(result->subagent);
      finish_reported_agent(call.call, std::string(agent->subagent), to);
    } else if (!runs_in_background) {
      event::AgentFinished end;
      end.outcome = agent_outcome_of(outcome);
      if (result) {
        end.subagent = result->subagent;
        end.duration_ms = result->duration_ms, end.tokens = result->tokens, end.tools = result->tools;
      }
      finish_agent(call.call, end, to);
    }
  }
  if (result && outcome == "ok") apply_todos(call, *result, to);
}

void Records::close_calls(std::string_view outcome, bool every_chain, Assembler& to) {
  if (to.open_calls() == 0) return;
  std::optional<std::string_view> agent;
  if (!every_chain) agent = chain_ == own_chain ? to.own_agent() : chains_[chain_].agent;
  to.close_calls(
      outcome, [&](const Assembler::Call& call) { end_call(call, outcome, nullptr, to); }, agent);
}

// `finished` has what the record has; the rest comes from the running agent of this call.
void Records::finish_agent(std::string_view call, event::AgentFinished finished, Assembler& to) {
  const RunningAgent known = to.take_agent(call).value_or(RunningAgent{});
  if (known.is_resumed) return;
  if (finished.subagent.empty()) finished.subagent = known.subagent;
  finished.call = call;
  finished.agent_type = known.agent_type;
  finished.description = known.description;
  finished.background = known.background;
  to.emit(finished);
}

void Records::apply_todos(const Assembler::Call& call, const fact::Result& result, Assembler& to) {
  if (result.todo.refused) return;
  std::vector<Todo> todos = to.todos();
  const Todo reported = result.todo.item.value_or(Todo{});
  const Todo requested = call.todos.empty() ? Todo{} : call.todos.front();
  switch (static_cast<Purpose>(call.purpose)) {
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
  to.set_todos(std::move(todos), call.tool);
}

}  // namespace earshot::claude_code
