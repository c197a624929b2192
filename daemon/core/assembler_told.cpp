// Events of another daemon's: passed on as they are; what a snapshot shows is read off them.
#include <algorithm>

#include "core/assembler.hpp"
#include "core/event_json.hpp"

namespace earshot {

/// What the state becomes by an event that somebody else concluded.
struct Assembler::RelayedStateUpdate {
  static constexpr std::size_t todos_max = 1024;  // more are not shown

  StreamState& state;
  const Assembler& by;
  const RelayedEvent& relayed;
  std::string_view time;
  std::int64_t time_ms;

  bool own() const { return relayed.agent == by.own_agent_; }
  static void set(std::string& place, std::string_view value) {
    if (!value.empty()) place = value;
  }
  static void set(std::string& place, const event::OptionalText& value) {
    if (value) place = *value;
  }
  void close_call(std::string_view call) {
    std::erase_if(state.tools, [&](const OpenTool& one) { return one.call == call; });
  }

  void operator()(const event::SessionStarted& e) {
    state.started = true;
    set(state.dialect, e.dialect), set(state.version, e.version), set(state.cwd, e.cwd);
    set(state.git_branch, e.git_branch), set(state.project, e.project), set(state.title, e.title);
    set(state.continues, e.continues), set(state.mode, e.mode), set(state.permission_mode, e.permission_mode);
  }
  void operator()(const event::SessionUpdated& e) {
    set(state.title, e.title), set(state.cwd, e.cwd), set(state.git_branch, e.git_branch);
    set(state.model, e.model), set(state.version, e.version), set(state.mode, e.mode);
    set(state.permission_mode, e.permission_mode);
    if (state.project.empty()) state.project = state.cwd;
  }
  void operator()(const event::TurnStarted& e) {
    state.turn_open = true;
    state.turn_started = time;
    state.turn_started_ms = time_ms;
    state.turn_prompt = by.beginning(e.prompt.value_or(""));
    state.tools.clear();
  }
  void operator()(const event::TurnFinished& e) {
    state.turn_open = false;
    state.last_outcome = e.outcome;
    state.last_finished = time;
  }
  void operator()(const event::MessageAdded& e) {
    if (e.role == "assistant" && e.kind == "text" && own())
      state.last_text = by.beginning(e.text.value_or(""));
  }
  void operator()(const event::ToolInvoked& e) {
    if (state.tools.size() >= StreamState::open_tools_max) return;
    OpenTool open;
    open.call = e.call, open.tool = e.tool, open.started = time, open.started_ms = time_ms;
    if (!own()) open.agent = relayed.agent;
    if (!e.input.json.empty())
      append_json(open.input, e.input.json, StreamState::input_preview_bytes, by.filter_);
    state.tools.push_back(std::move(open));
  }
  void operator()(const event::ToolFinished& e) { close_call(e.call); }
  void operator()(const event::TodoUpdated& e) {
    if (!own()) return;
    state.todos.assign(e.todos.begin(), e.todos.begin() + std::min(e.todos.size(), todos_max));
    state.todos_time = time;
  }
  void operator()(const event::AgentStarted& e) {
    if (state.agents.size() >= agents_max) state.agents.erase(state.agents.begin());
    RunningAgent agent;
    agent.call = e.call, agent.subagent = e.subagent, agent.agent_type = e.agent_type;
    agent.description = by.beginning(e.description), agent.started = time, agent.background = e.background;
    state.agents.push_back(std::move(agent));
  }
  void operator()(const event::AgentFinished& e) {
    std::erase_if(state.agents, [&](const RunningAgent& one) { return one.call == e.call; });
  }
  void operator()(const event::UsageUpdated& e) {
    state.usage = e.total;
    if (e.cost_usd) state.cost_usd = e.cost_usd;
    if (e.of_message && own())
      state.context_tokens = e.of_message->input + e.of_message->cache_read + e.of_message->cache_write;
  }
  void operator()(const event::CompactionStarted&) {}
  void operator()(const event::CompactionFinished&) {}
  void operator()(const event::TaskFinished&) {}
  void operator()(const event::QueueChanged&) {}
  void operator()(const event::ApiFailed&) {}
  void operator()(const event::FilesSnapshotted&) {}
  void operator()(const event::LineSkipped&) {}
};

void Assembler::apply_relayed(const RelayedEvent& relayed) {
  state_.turn = relayed.turn;
  EventBody body = relayed.body;
  if (auto* list = std::get_if<event::TodoUpdated>(&body)) list->todos = relayed.todos;
  std::visit(RelayedStateUpdate{state_, *this, relayed, record_->time, record_->time_ms}, body);
  // Of its texts only the beginning is kept, and that is made what is shown.
  state_due_ |= prompt_due | text_due;
  cursor_.index = ++index_;
  last_event_ = cursor_;
  ++counts_.events;
  sink_->on_event({cursor_, record_->time, record_->time_ms, relayed.turn, relayed.agent, std::move(body),
                   relayed.members});
}

}  // namespace earshot
