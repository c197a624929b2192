#include "otlp/stream_spans.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "agents/agent.hpp"
#include "base/json_scan.hpp"
#include "base/text.hpp"

namespace earshot::otlp {
namespace {

/// The entry with the lowest `order`.
template <class Map>
auto oldest_of(Map& map) {
  return std::min_element(map.begin(), map.end(),
                          [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
}

void add_usage(Attributes& to, std::int64_t input, std::int64_t output, std::int64_t read,
               std::int64_t write) {
  constexpr std::int64_t tokens_max = std::numeric_limits<std::int64_t>::max() / 3;  // the sum of three fits
  for (std::int64_t* const each : {&input, &output, &read, &write})
    *each = std::clamp<std::int64_t>(*each, 0, tokens_max);
  // By the convention the input includes what the cache gave and took; on the wire it does not.
  to.number("gen_ai.usage.input_tokens", input + read + write);
  to.number("gen_ai.usage.output_tokens", output);
  to.number("gen_ai.usage.cache_read.input_tokens", read);
  to.number("gen_ai.usage.cache_creation.input_tokens", write);
}

std::string_view prompt_reason(std::string_view program, std::string_view tool) {
  if (const AgentProgram* known = find_agent_program(program)) return known->requests().prompt_reason(tool);
  return {};
}

bool is_failure(std::string_view outcome) { return outcome == "failed" || outcome == "error"; }

void set_outcome(Span& span, std::string_view outcome) {
  span.attributes.label("earshot.outcome", outcome);
  if (!is_failure(outcome)) return;
  span.status = Span::Status::error;
  span.attributes.label("error.type", outcome);
}

/// Of a span that `event` begins: below `parent`, or without one the root of a trace.
SpanContext context_at(std::string_view kind, const WireFrame& event, const SpanContext& parent) {
  const std::string cursor = to_string(*event.cursor);
  return {parent.span != 0 ? parent.trace : trace_id({kind, event.host, event.stream, cursor}),
          span_id({kind, event.host, event.stream, cursor})};
}

/// A start without a time is that of the end: a span never begins in 1970.
void set_times(Span& span, std::int64_t start_ms, std::int64_t end_ms) {
  span.start_ms = start_ms > 0 ? start_ms : end_ms;
  span.end_ms = std::max(span.start_ms, end_ms);
}

std::string named(std::string_view operation, std::string_view what) {
  std::string name(operation);
  if (!what.empty()) name.append(" ").append(cut_utf8(what, label_bytes_max));
  return name;
}

}  // namespace

std::string_view provider_of(std::string_view model) {
  struct Provider {
    std::string_view prefix, name;
  };
  // Values of gen_ai.provider.name.
  constexpr std::array providers = {
      Provider{"claude", "anthropic"}, Provider{"gpt-", "openai"},       Provider{"o1", "openai"},
      Provider{"o3", "openai"},        Provider{"o4", "openai"},         Provider{"gemini", "gcp.gemini"},
      Provider{"grok", "x_ai"},        Provider{"deepseek", "deepseek"}, Provider{"mistral", "mistral_ai"},
  };
  for (const Provider& each : providers)
    if (model.starts_with(each.prefix)) return each.name;
  return {};
}

Span wait_span(const StatusWait& wait, std::int64_t end_ms) {
  const std::string since = std::to_string(wait.since_ms);
  Span span;
  span.context.trace = wait.turn ? wait.turn->trace : trace_id({"wait", wait.host, wait.session, since});
  span.context.span = span_id({"wait", wait.host, wait.session, since, wait.request});
  span.parent = wait.turn ? wait.turn->span : 0;
  span.name = named("earshot.wait", wait.reason);
  set_times(span, wait.since_ms, end_ms);
  span.attributes.label("gen_ai.conversation.id", wait.session);
  span.attributes.label("earshot.wait.reason", wait.reason);
  span.attributes.label("earshot.wait.source", wait.source);
  return span;
}

StreamSpans::Mark StreamSpans::anchor_mark() const {
  Mark earliest = turn_anchor();
  const auto consider = [&](const Mark& other) {
    if (is_after(earliest.cursor, other.cursor)) earliest = other;
  };
  for (const auto& [call, open] : calls_) consider(open.anchor);
  for (const auto& [call, agent] : agents_) consider(agent.anchor);
  return earliest;
}

std::optional<SpanContext> StreamSpans::context_of(const WireFrame& event) const {
  if (const auto call = calls_.find(event.text("call")); call != calls_.end()) return call->second.self;
  if (turn_ && turn_->open) return turn_->self;
  return std::nullopt;
}

std::int64_t& StreamSpans::step_of(std::string_view agent) {
  const auto found = steps_.find(agent);
  if (found != steps_.end()) return found->second;
  if (steps_.size() >= chats_max) steps_.clear();  // starts of chats are then the times of their events
  return steps_[std::string(agent)];
}

void StreamSpans::on_event(const WireFrame& event, const SessionNames& names, const SpanContext* parent,
                           SpanSink& sink) {
  if (event.time_ms != 0) last_ms_ = event.time_ms;
  const Now now{event, names, last_ms_, sink};
  struct Rule {
    std::string_view type;
    void (StreamSpans::*call)(const Now&);
  };
  constexpr Rule rules[] = {
      {"turn.finished", &StreamSpans::on_turn_finished},
      {"tool.invoked", &StreamSpans::on_tool_invoked},
      {"tool.finished", &StreamSpans::on_tool_finished},
      {"agent.started", &StreamSpans::on_agent_started},
      {"agent.finished", &StreamSpans::on_agent_finished},
      {"usage.updated", &StreamSpans::on_usage},
      {"compaction.started", &StreamSpans::on_compaction},
      {"compaction.finished", &StreamSpans::on_compaction},
      {"api.failed", &StreamSpans::on_api_failed},
  };
  if (event.type == "turn.started") on_turn_started(now, parent);
  for (const Rule& each : rules)
    if (each.type == event.type) (this->*each.call)(now);
  last_ = {*event.cursor, last_ms_};
}

void StreamSpans::on_turn_started(const Now& now, const SpanContext* parent) {
  close_chats(now);
  const std::string cursor = to_string(*now.event.cursor);
  Turn turn;
  turn.self.trace = parent ? parent->trace : trace_id({"turn", now.event.host, now.event.stream, cursor});
  turn.self.span = span_id({"turn", now.event.host, now.event.stream, cursor});
  if (parent) turn.parent = *parent;
  turn.anchor = last_;
  turn.agent = now.event.agent;
  turn.origin = now.event.text("origin");
  turn.prompt = now.event.text("prompt");
  turn.number = now.event.turn;
  turn.start_ms = now.time_ms;
  turn_ = std::move(turn);
  steps_.clear();
  step_of(now.event.agent) = now.time_ms;
}

void StreamSpans::on_turn_finished(const Now& now) {
  close_chats(now);
  if (!turn_ || !turn_->open) return;
  turn_->open = false;
  const WireFrame& event = now.event;
  Span span;
  span.context = turn_->self;
  span.parent = turn_->parent ? turn_->parent->span : 0;
  span.name = named("invoke_agent", now.names.program);
  set_times(span, turn_->start_ms, now.time_ms);
  Attributes& to = span.attributes;
  to.label("gen_ai.operation.name", "invoke_agent");
  to.label("gen_ai.provider.name", provider_of(turn_->model));
  to.label("gen_ai.agent.name", now.names.program);
  to.label("gen_ai.agent.id", turn_->agent);
  to.label("gen_ai.conversation.id", event.session);
  to.label("gen_ai.request.model", turn_->model);
  if (const auto usage = event.tree("usage")) {
    const auto tokens = [&](std::string_view name) { return dom::int_of(*usage, name).value_or(0); };
    add_usage(to, tokens("input"), tokens("output"), tokens("cache_read"), tokens("cache_write"));
  }
  if (const std::string_view reason = event.text("stop_reason"); !reason.empty())
    to.list("gen_ai.response.finish_reasons", {std::string(cut_utf8(reason, label_bytes_max))});
  to.label("earshot.stream", event.stream);
  to.label("earshot.project", now.names.project);
  to.number("earshot.turn", static_cast<std::int64_t>(turn_->number));
  to.label("earshot.origin", turn_->origin);
  to.number("earshot.tools", event.number("tools"));
  to.number("earshot.waited_ms", event.number("waited_ms"));
  if (event.flag("inferred")) to.flag("earshot.inferred", true);
  to.text("earshot.prompt", turn_->prompt);
  set_outcome(span, event.text("outcome"));
  span.events = std::exchange(turn_->events, {});
  for (SpanEvent& each : span.events)
    if (each.time_ms <= 0) each.time_ms = span.start_ms;
  span.dropped_events = turn_->dropped_events;
  now.sink.on_span(span);
}

/// Of an event inside a turn: the subagent of this stream that caused it, else the turn; without one an empty
/// context.
SpanContext StreamSpans::parent_of(const Now& now) const {
  const std::string_view agent = now.event.agent;
  if (!agent.empty() && !(turn_ && turn_->agent == agent)) {
    for (const auto& [call, each] : agents_)
      if (each.id == agent || call == agent) return each.self;
  }
  return turn_ ? turn_->self : SpanContext{};
}

void StreamSpans::on_tool_invoked(const Now& now) {
  const WireFrame& event = now.event;
  if (const auto chat = chats_.find(event.agent);
      chat != chats_.end() && chat->second.message == event.text("message"))
    chat->second.end_ms = std::max(chat->second.end_ms, now.time_ms);
  const SpanContext parent = parent_of(now);
  Call call;
  call.parent = parent.span;
  call.self = context_at("tool", event, parent);
  call.anchor = turn_anchor();
  call.begin = *event.cursor;
  call.tool = event.text("tool");
  call.input = event.json_text("input");
  if (input_bytes_ + call.input.size() > input_bytes_max) call.input.clear();
  call.agent = event.agent;
  call.start_ms = now.time_ms;
  call.order = ++orders_;
  if (calls_.size() >= calls_max) {
    const auto oldest = oldest_of(calls_);
    input_bytes_ -= std::min(input_bytes_, oldest->second.input.size());
    calls_.erase(oldest);
    ++dropped_;
  }
  input_bytes_ += call.input.size();
  Call& place = calls_[std::string(event.text("call"))];
  input_bytes_ -= std::min(input_bytes_, place.input.size());
  place = std::move(call);
}

void StreamSpans::on_tool_finished(const Now& now) {
  const WireFrame& event = now.event;
  step_of(event.agent) = now.time_ms;
  const std::string_view id = event.text("call");
  Call call;
  if (const auto open = calls_.find(id); open != calls_.end()) {
    call = std::move(open->second);
    calls_.erase(open);
    input_bytes_ -= std::min(input_bytes_, call.input.size());
  } else {  // the call is not in the transcript
    const SpanContext parent = parent_of(now);
    call.parent = parent.span;
    call.self = context_at("tool", event, parent);
    call.begin = *event.cursor;
    call.tool = event.text("tool");
    call.agent = event.agent;
    call.start_ms = now.time_ms;
  }
  Span span;
  span.context = call.self;
  span.parent = call.parent;
  span.name = named("execute_tool", call.tool);
  set_times(span, call.start_ms, now.time_ms);
  Attributes& to = span.attributes;
  to.label("gen_ai.operation.name", "execute_tool");
  to.label("gen_ai.tool.name", call.tool);
  to.label("gen_ai.tool.call.id", id);
  to.label("gen_ai.conversation.id", event.session);
  to.label("gen_ai.agent.id", call.agent);
  to.number("earshot.duration_ms", event.number("duration_ms"));
  to.label("earshot.background", event.text("background"));
  to.text("gen_ai.tool.call.arguments", call.input);
  to.text("gen_ai.tool.call.result", event.text("output"));
  set_outcome(span, event.text("outcome"));
  now.sink.on_span(span);
  emit_wait(now, call);
}

/// A call that asks the user is a wait from the question to the answer.
void StreamSpans::emit_wait(const Now& now, const Call& call) {
  const std::string_view reason = prompt_reason(now.names.program, call.tool);
  if (reason.empty()) return;
  Span span;
  span.context = {call.self.trace,
                  span_id({"wait", now.event.host, now.event.stream, to_string(call.begin)})};
  span.parent = call.self.span;
  span.name = named("earshot.wait", reason);
  set_times(span, call.start_ms, now.time_ms);
  span.attributes.label("gen_ai.conversation.id", now.event.session);
  span.attributes.label("earshot.wait.reason", reason);
  span.attributes.label("earshot.wait.source", "transcript");
  now.sink.on_span(span);
}

void StreamSpans::on_agent_started(const Now& now) {
  const WireFrame& event = now.event;
  const std::string_view id = event.text("call");
  const auto call = calls_.find(id);
  const SpanContext parent = call != calls_.end() ? call->second.self : parent_of(now);
  Agent agent;
  agent.parent = parent.span;
  agent.self = context_at("agent", event, parent);
  agent.anchor = turn_anchor();
  agent.id = event.text("subagent");
  agent.type = event.text("agent_type");
  agent.description = event.text("description");
  agent.background = event.flag("background");
  agent.start_ms = now.time_ms;
  agent.order = ++orders_;
  now.sink.on_subagent(id, agent.self);
  if (!agent.id.empty()) now.sink.on_subagent(agent.id, agent.self);
  if (agents_.size() >= agents_max) {
    agents_.erase(oldest_of(agents_));
    ++dropped_;
  }
  agents_.insert_or_assign(std::string(id), std::move(agent));
}

void StreamSpans::on_agent_finished(const Now& now) {
  const WireFrame& event = now.event;
  const std::string_view subagent = event.text("subagent");
  auto open = agents_.find(event.text("call"));
  if (open == agents_.end() && !subagent.empty())
    open = std::find_if(agents_.begin(), agents_.end(),
                        [&](const auto& each) { return each.second.id == subagent; });
  Agent agent;
  if (open != agents_.end()) {
    agent = std::move(open->second);
    agents_.erase(open);
  } else {  // its start is not in the transcript
    const SpanContext parent = parent_of(now);
    agent.parent = parent.span;
    agent.self = context_at("agent", event, parent);
    agent.start_ms = now.time_ms;
  }
  if (!subagent.empty()) {
    agent.id = subagent;
    now.sink.on_subagent(subagent, agent.self);
  }
  if (agent.type.empty()) agent.type = event.text("agent_type");
  if (agent.description.empty()) agent.description = event.text("description");
  Span span;
  span.context = agent.self;
  span.parent = agent.parent;
  span.name = named("invoke_agent", agent.type);
  set_times(span, agent.start_ms, now.time_ms);
  Attributes& to = span.attributes;
  to.label("gen_ai.operation.name", "invoke_agent");
  to.label("gen_ai.agent.name", agent.type);
  to.label("gen_ai.agent.id", agent.id);
  to.label("gen_ai.conversation.id", event.session);
  to.number("earshot.duration_ms", event.number("duration_ms"));
  to.number("earshot.tokens", event.number("tokens"));
  to.number("earshot.tools", event.number("tools"));
  if (agent.background || event.flag("background")) to.flag("earshot.background", true);
  to.text("gen_ai.agent.description", agent.description);
  set_outcome(span, event.text("outcome"));
  now.sink.on_span(span);
}

void StreamSpans::on_usage(const Now& now) {
  const WireFrame& event = now.event;
  const std::string_view model = event.text("model"), message = event.text("message");
  if (turn_ && !model.empty() && event.agent == turn_->agent) turn_->model = model;
  const auto input = event.number("input"), output = event.number("output");
  if (!input || !output) return;  // of the session, not of a message
  auto open = chats_.find(event.agent);
  const bool is_same = open != chats_.end() && !message.empty() && open->second.message == message;
  if (!is_same) {
    if (open != chats_.end()) close_chat(now, event.agent);
    if (!turn_ || turn_->messages.contains(message)) return;  // what a closed message grew by is not shown
    if (!message.empty() && turn_->messages.size() < messages_max) turn_->messages.emplace(message);
    const std::string cursor = to_string(*event.cursor);
    const SpanContext parent = parent_of(now);
    Chat chat;
    chat.self = {parent.trace, span_id({"chat", event.host, event.stream, cursor})};
    chat.parent = parent.span;
    chat.message = message;
    const std::int64_t step = step_of(event.agent);
    chat.start_ms = step != 0 ? std::min(step, now.time_ms) : now.time_ms;
    if (chats_.size() >= chats_max) close_chats(now);
    open = chats_.insert_or_assign(std::string(event.agent), std::move(chat)).first;
  }
  Chat& chat = open->second;
  chat.end_ms = std::max({chat.start_ms, chat.end_ms, now.time_ms});
  if (!model.empty()) chat.model = model;
  chat.input = *input;
  chat.output = *output;
  chat.cache_read = event.number("cache_read").value_or(0);
  chat.cache_write = event.number("cache_write").value_or(0);
  chat.reasoning = event.number("reasoning");
  if (message.empty()) close_chat(now, event.agent);  // each event is a request
}

void StreamSpans::close_chat(const Now& now, std::string_view agent) {
  const auto found = chats_.find(agent);
  const Chat& chat = found->second;
  Span span;
  span.context = chat.self;
  span.parent = chat.parent;
  span.name = named("chat", chat.model);
  span.kind = Span::Kind::client;
  set_times(span, chat.start_ms, chat.end_ms != 0 ? chat.end_ms : now.time_ms);
  Attributes& to = span.attributes;
  to.label("gen_ai.operation.name", "chat");
  to.label("gen_ai.provider.name", provider_of(chat.model));
  to.label("gen_ai.request.model", chat.model);
  to.label("gen_ai.response.id", chat.message);
  to.label("gen_ai.conversation.id", now.event.session);
  to.label("gen_ai.agent.id", agent);
  add_usage(to, chat.input, chat.output, chat.cache_read, chat.cache_write);
  to.number("earshot.reasoning_tokens", chat.reasoning);
  std::int64_t& step = step_of(agent);
  step = std::max(step, chat.end_ms);
  now.sink.on_span(span);
  chats_.erase(found);
}

void StreamSpans::close_chats(const Now& now) {
  while (!chats_.empty()) close_chat(now, std::string(chats_.begin()->first));
}

void StreamSpans::add_turn_event(const Now& now, SpanEvent event) {
  if (!turn_ || !turn_->open) return;
  if (turn_->events.size() >= span_events_max) {
    ++turn_->dropped_events;
    return;
  }
  event.time_ms = now.time_ms;
  turn_->events.push_back(std::move(event));
}

void StreamSpans::on_compaction(const Now& now) {
  const WireFrame& event = now.event;
  step_of(event.agent) = now.time_ms;
  const bool is_end = event.type == "compaction.finished";
  SpanEvent added{is_end ? "earshot.compaction.finished" : "earshot.compaction.started", 0, {}};
  added.attributes.label("earshot.compaction.trigger", event.text("trigger"));
  added.attributes.label("earshot.compaction.kind", event.text("kind"));
  added.attributes.number("earshot.compaction.pre_tokens", event.number("pre_tokens"));
  added.attributes.number("earshot.compaction.post_tokens", event.number("post_tokens"));
  added.attributes.number("earshot.duration_ms", event.number("duration_ms"));
  add_turn_event(now, std::move(added));
}

void StreamSpans::on_api_failed(const Now& now) {
  const WireFrame& event = now.event;
  const auto status = event.number("status");
  const std::string_view kind = event.text("kind");
  SpanEvent added{"earshot.api_failed", 0, {}};
  added.attributes.label("error.type", !kind.empty() ? std::string(kind)
                                       : status      ? std::to_string(*status)
                                                     : std::string("_OTHER"));
  added.attributes.number("http.response.status_code", status);
  added.attributes.number("earshot.attempt", event.number("attempt"));
  added.attributes.number("earshot.max_attempts", event.number("max_attempts"));
  added.attributes.number("earshot.retry_in_ms", event.number("retry_in_ms"));
  added.attributes.flag("earshot.fatal", event.flag("fatal"));
  added.attributes.text("earshot.error", event.text("error"));
  add_turn_event(now, std::move(added));
}

}  // namespace earshot::otlp
