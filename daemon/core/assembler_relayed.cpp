// Events of other daemons: emitted unchanged; the state follows them.
#include <algorithm>

#include "core/assembler.hpp"
#include "core/event_json.hpp"

namespace earshot {

// Applies a relayed event to the state.
struct Assembler::RelayedStateUpdate {
  StreamState& state;
  Assembler& assembler;
  const RelayedEvent& relayed;
  std::string_view time;
  std::int64_t time_ms;

  bool is_own_stream() const { return relayed.agent == assembler.recorded_agent(); }
  // Of an event that belongs to the stream's own chain.
  void take_agent() { assembler.recorded_agent_ = relayed.agent; }
  static void set(std::string& field, std::string_view value) {
    if (!value.empty()) field = value;
  }
  static void set(std::string& field, const OptionalText& value) {
    if (value) field = *value;
  }
  // The size of a text before the other daemon cut it.
  std::uint64_t bytes_of(std::string_view path, const OptionalText& text) const {
    for (const TruncatedPath& each : relayed.truncated)
      if (each.path == path) return each.bytes;
    return text ? text->size() : 0;
  }
  // A cost that grew covers what the event adds; one without a message is a total.
  void add_by_model(const event::UsageUpdated& e) {
    const std::string_view model = e.model.empty() ? std::string_view(state.model) : e.model;
    const bool has_cost = e.cost_usd && e.cost_usd != state.cost_usd;
    Usage more, earlier;  // before the first event that is known here
    bool fell = false;
    for (const auto count : {&Usage::input, &Usage::output, &Usage::cache_read, &Usage::cache_write}) {
      fell |= e.total.*count < state.usage.*count;
      more.*count = std::max(e.total.*count, state.usage.*count) - state.usage.*count;
      if (!e.of_message || state.usage != Usage{}) continue;
      earlier.*count = more.*count - std::min(more.*count, (*e.of_message).*count);
      more.*count -= earlier.*count;
    }
    if (fell && e.of_message) more = *e.of_message;  // the program's total began anew
    UsageByModel& by_model = state.usage_by_model;
    if (earlier != Usage{}) by_model.add_earlier(model, earlier, has_cost);
    if (more != Usage{} && !e.of_message) by_model.mark_sum();
    if (more != Usage{}) by_model.add(model, more, has_cost);
    if (!has_cost) return;
    if (e.of_message)
      return by_model.add_cost(model, std::max(0.0, *e.cost_usd - state.cost_usd.value_or(0)));
    by_model.cover_all();
    state.cost_total_ms = time_ms ? time_ms : state.last_activity_ms;
  }
  void close_call(std::string_view call) {
    std::erase_if(state.tools, [&](const OpenTool& one) { return one.call == short_id(call); });
  }

  void operator()(const event::SessionStarted& e) {
    take_agent();
    state.started = true;
    set(state.program, e.program), set(state.dialect, e.dialect), set(state.version, e.version),
        set(state.cwd, e.cwd);
    set(state.git_branch, e.git_branch), set(state.project, e.project), set(state.title, e.title);
    set(state.continues, e.continues), set(state.mode, e.mode), set(state.permission_mode, e.permission_mode);
    set(state.sandbox, e.sandbox), set(state.source, e.source), set(state.originator, e.originator);
    set(state.parent, e.parent), set(state.agent_type, e.agent_type);
  }
  void operator()(const event::SessionUpdated& e) {
    set(state.title, e.title), set(state.cwd, e.cwd), set(state.git_branch, e.git_branch);
    set(state.model, e.model), set(state.version, e.version), set(state.mode, e.mode);
    set(state.permission_mode, e.permission_mode), set(state.sandbox, e.sandbox);
    if (state.project.empty()) state.project = state.cwd;
  }
  void operator()(const event::TurnStarted& e) {
    take_agent();
    state.turn_open = true;
    state.turn_started = time;
    state.turn_started_ms = time_ms;
    state.times.start_turn(time_ms);
    state.turn_prompt = assembler.preview_source(e.prompt.value_or(""));
    state.turn_prompt_truncated = bytes_of("prompt", e.prompt);
    state.tools.clear();
  }
  void operator()(const event::TurnFinished& e) {
    state.turn_open = false;
    state.last_outcome = e.outcome;
    state.last_finished = time;
    state.times.set_turn_waited(e.waited_ms);
    state.times.finish_turn(time_ms);
  }
  void operator()(const event::MessageAdded& e) {
    if (e.role != "assistant" || e.kind != "text" || !is_own_stream()) return;
    state.last_text = assembler.preview_source(e.text.value_or(""));
    state.last_text_truncated = bytes_of("text", e.text);
  }
  void operator()(const event::ToolInvoked& e) {
    if (state.tools.size() >= StreamState::open_tools_max) return;
    OpenTool open;
    open.call = short_id(e.call), open.tool = assembler.short_text(e.tool), open.started = time,
    open.started_ms = time_ms;
    if (!is_own_stream()) open.agent = short_id(relayed.agent);
    if (!e.input.json.empty()) assembler.set_input(open, e.input);
    state.tools.push_back(std::move(open));
  }
  void operator()(const event::ToolFinished& e) {
    close_call(e.call);
    name_agent(state, short_id(e.call), short_id(e.background));
  }
  void operator()(const event::TodoUpdated& e) {
    if (!is_own_stream()) return;
    state.todos.assign(e.todos.begin(), e.todos.begin() + std::min(e.todos.size(), todos_max));
    assembler.counts_.dropped += e.todos.size() > todos_max;
    state.todos_time = time;
  }
  void operator()(const event::AgentStarted& e) {
    RunningAgent agent;
    agent.call = short_id(e.call), agent.subagent = assembler.short_text(e.subagent);
    agent.agent_type = assembler.short_text(e.agent_type);
    agent.description = assembler.preview_source(e.description), agent.started = time,
    agent.background = e.background;
    assembler.add_agent(std::move(agent));
  }
  void operator()(const event::AgentFinished& e) {
    std::erase_if(state.agents, [&](const RunningAgent& one) { return one.call == short_id(e.call); });
  }
  void operator()(const event::UsageUpdated& e) {
    add_by_model(e);
    state.usage = e.total;
    if (e.cost_usd) state.cost_usd = e.cost_usd;
    if (!is_own_stream()) return;
    if (e.context_window) state.context_window = e.context_window;
    if (e.context_tokens)
      state.context_tokens = *e.context_tokens;
    else if (e.of_message)
      state.context_tokens = e.of_message->input + e.of_message->cache_read + e.of_message->cache_write;
  }
  void operator()(const event::CompactionStarted&) {}
  void operator()(const event::CompactionFinished&) {}
  void operator()(const event::TaskFinished&) {}
  void operator()(const event::QueueChanged&) {}
  void operator()(const event::ApiFailed&) {}
  void operator()(const event::LimitsUpdated& e) { state.set_limits(e, time); }
  void operator()(const event::FilesSnapshotted&) {}
  void operator()(const event::LineSkipped&) {}
};

void Assembler::apply_relayed(const RelayedEvent& relayed) {
  state_.turn = relayed.turn;
  EventBody body = relayed.body;
  if (auto* list = std::get_if<event::TodoUpdated>(&body)) list->todos = relayed.todos;
  if (auto* limits = std::get_if<event::LimitsUpdated>(&body)) limits->windows = relayed.windows;
  std::visit(RelayedStateUpdate{state_, *this, relayed, record_->time, record_->time_ms}, body);
  pending_previews_ |= prompt_preview | text_preview;
  cursor_.index = ++index_;
  last_event_ = cursor_;
  ++counts_.events;
  Event event(cursor_, record_->time, record_->time_ms, relayed.turn, relayed.agent, std::move(body));
  event.relayed = &relayed;
  sink_->on_event(event);
}

}  // namespace earshot
