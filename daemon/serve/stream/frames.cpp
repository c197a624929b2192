#include "serve/stream/frames.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "base/text_filter.hpp"
#include "core/event_json.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t cursors_per_frame = 1000;
constexpr std::size_t text_bytes_max = 512;  // longer titles, prompts and other texts are cut
// Further ones are omitted, so that no session is too large for a frame.
constexpr std::size_t agents_max = 256;
constexpr std::size_t tools_json_bytes_max = 1 << 20;   // of the session, and of each agent
constexpr std::size_t agents_json_bytes_max = 4 << 20;  // with their tools

/// Writes members of one frame. Absent values are omitted; texts are redacted, and left out of the meta view.
class FrameWriter {
 public:
  FrameWriter(std::string& out, const EncodeOptions& options) : json(out), out_(out), options_(options) {}

  /// A name or an id of the protocol.
  void plain(std::string_view name, std::string_view value) { json.member_if_any(name, value); }
  /// A name from the transcript, in both views.
  void name(std::string_view name, std::string_view value) {
    if (!value.empty()) redacted(name, value);
  }
  void redacted(std::string_view name, std::string_view value) {
    append_redacted(json.key(name).next(), value, options_.filter);
  }
  /// A text from the transcript: cut, and only in the full view.
  void text(std::string_view name, std::string_view value) {
    if (value.empty() || !is_full()) return;
    append_text(json.key(name).next(), value, text_bytes_max, options_.filter, truncated, name);
  }
  /// A text of which the state has only the beginning; `bytes`: size of the complete text, 0 if this is it.
  void preview(std::string_view name, std::string_view value, std::uint64_t bytes) {
    if (value.empty() || !is_full()) return;
    if (bytes > 0) truncated.add(name, bytes);
    text(name, value);
  }
  bool is_full() const { return options_.view == View::full; }
  const EncodeOptions& options() const { return options_; }
  std::size_t bytes() const { return out_.size(); }

  JsonWriter json;
  TruncatedPaths truncated;

 private:
  const std::string& out_;
  const EncodeOptions options_;
};

void append_cursors(JsonWriter& json, const Session& session) {
  json.key("cursors").begin_array();
  for (const Member& member : session.members) {
    if (member.stream->transcript())
      json.value(stream_cursor(*member.stream, member.stream->transcript()->end()));
  }
  json.end_array();
}

}  // namespace

void append_done(JsonWriter& json, const status::Done& done) {
  json.begin_object().member_if_any("outcome", done.outcome);
  json.member("turn", done.turn).member("turns", done.turns).member_if_any("prompted", done.prompted);
  json.member("duration_ms", done.duration_ms).member("waited_ms", done.waited_ms);
  if (done.is_headless) json.member("headless", true);
  json.end_object();
}

namespace {

void append_status(FrameWriter& frame, const Session& session) {
  static const status::Status unknown = [] {
    status::Status status;
    status.source = "transcript";
    return status;
  }();
  const status::Status& status = session.status ? *session.status : unknown;
  frame.json.key("status").begin_object();
  frame.plain("state", status.state);
  frame.name("reason", status.reason);
  if (frame.is_full()) frame.name("detail", status.detail);
  frame.plain("source", status.source.empty() ? "transcript" : status.source);
  frame.plain("since", status.since);
  frame.plain("request", status.request);
  frame.plain("agent", status.agent);
  if (status.done) append_done(frame.json.key("done"), *status.done);
  frame.json.end_object();
}

void append_turn(FrameWriter& frame, const StreamState& state) {
  const TruncatedPaths::Scope scope(frame.truncated, "turn");
  frame.json.key("turn").begin_object().member("number", state.turn).member("open", state.turn_open);
  frame.plain("started", state.turn_started);
  frame.preview("prompt", state.turn_prompt, state.turn_prompt_truncated);
  if (!state.turn_open) {
    frame.plain("outcome", state.last_outcome);
    frame.plain("finished", state.last_finished);
  }
  frame.json.end_object();
}

void append_tools(FrameWriter& frame, const std::vector<OpenTool>& tools) {
  const TruncatedPaths::Scope list_scope(frame.truncated, "tools");
  frame.json.key("tools").begin_array();
  const std::size_t end = frame.bytes() + tools_json_bytes_max;
  for (std::size_t index = 0; index < tools.size() && frame.bytes() < end; ++index) {
    const TruncatedPaths::Scope scope(frame.truncated, index);
    const OpenTool& tool = tools[index];
    frame.json.begin_object();
    frame.plain("call", tool.call);
    frame.redacted("tool", tool.tool);
    if (!tool.input.empty() && frame.is_full()) {
      frame.json.raw_member("input", tool.input);
      for (const TruncatedPath& each : tool.truncated) frame.truncated.add(each.path, each.bytes);
    }
    frame.plain("started", tool.started);
    frame.plain("agent", tool.agent);
    frame.json.end_object();
  }
  frame.json.end_array();
}

struct AgentEntry {
  const RunningAgent* running = nullptr;  // in the parent's stream; null: only its own stream is known
  const tail::Stream* stream = nullptr;   // its own; null: none (yet)
};

const tail::Stream* stream_of(const Session& session, const RunningAgent& agent) {
  for (const Member& member : session.members) {
    const tail::Stream& stream = *member.stream;
    if (stream.agent().empty()) continue;
    if (!agent.call.empty() && stream.meta().call == agent.call) return &stream;
    if (!agent.subagent.empty() && stream.agent() == agent.subagent) return &stream;
  }
  return nullptr;
}

/// Agents that a parent waits for, and agents with an open turn while the session is working.
std::vector<AgentEntry> agents_of(const Session& session, bool is_working) {
  std::vector<AgentEntry> agents;
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state) continue;
    for (const RunningAgent& running : state->agents)
      agents.push_back({&running, stream_of(session, running)});
  }
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (member.stream->agent().empty() || !state || !state->turn_open || !is_working) continue;
    const bool is_listed = std::any_of(
        agents.begin(), agents.end(), [&](const AgentEntry& agent) { return agent.stream == member.stream; });
    if (!is_listed) agents.push_back({nullptr, member.stream});
  }
  if (agents.size() > agents_max) agents.resize(agents_max);
  return agents;
}

void append_agents(FrameWriter& frame, const std::vector<AgentEntry>& agents) {
  const auto first_of = [](const std::string* a, const std::string* b) {
    if (a && !a->empty()) return std::string_view(*a);
    return b ? std::string_view(*b) : std::string_view();
  };
  const TruncatedPaths::Scope list_scope(frame.truncated, "agents");
  frame.json.key("agents").begin_array();
  const std::size_t end = frame.bytes() + agents_json_bytes_max;
  for (std::size_t index = 0; index < agents.size() && frame.bytes() < end; ++index) {
    const TruncatedPaths::Scope scope(frame.truncated, index);
    const RunningAgent* running = agents[index].running;
    const tail::Stream* stream = agents[index].stream;
    const auto* meta = stream ? &stream->meta() : nullptr;
    const StreamState* state = state_of(stream);
    frame.json.begin_object();
    frame.plain("agent",
                first_of(stream ? &stream->agent() : nullptr, running ? &running->subagent : nullptr));
    const std::string* stated_type = meta && !meta->agent_type.empty() ? &meta->agent_type
                                     : state                           ? &state->agent_type
                                                                       : nullptr;
    frame.name("agent_type", first_of(running ? &running->agent_type : nullptr, stated_type));
    frame.text("description",
               first_of(running ? &running->description : nullptr, meta ? &meta->description : nullptr));
    frame.plain("call", first_of(running ? &running->call : nullptr, meta ? &meta->call : nullptr));
    if (running && running->background) frame.json.member("background", true);
    frame.plain("started",
                first_of(running ? &running->started : nullptr, state ? &state->turn_started : nullptr));
    append_tools(frame, state ? state->tools : std::vector<OpenTool>{});
    frame.json.end_object();
  }
  frame.json.end_array();
}

}  // namespace

std::vector<const LimitState*> limits_of(const Session& session) {
  std::vector<const LimitState*> limits;
  const auto add = [&](const LimitState& each) {
    const auto known = std::find_if(limits.begin(), limits.end(),
                                    [&](const LimitState* other) { return other->limit == each.limit; });
    if (known == limits.end())
      limits.push_back(&each);
    else if ((*known)->time < each.time)
      *known = &each;
  };
  for (const Member& member : session.members)
    if (const StreamState* state = state_of(member.stream))
      for (const LimitState& each : state->limits) add(each);
  if (session.account) add(*session.account);
  for (const LimitState& each : session.reported->limits) add(each);
  return limits;
}

namespace {

void append_limits(FrameWriter& frame, const Session& session) {
  const std::vector<const LimitState*> limits = limits_of(session);
  if (limits.empty()) return;
  frame.json.key("limits").begin_array();
  for (const LimitState* each : limits) {
    frame.json.begin_object();
    frame.plain("time", each->time);
    frame.name("limit", each->limit);
    frame.name("plan", each->plan);
    frame.name("reached", each->reached);
    append_windows(frame.json.key("windows").next(), each->windows, frame.options().filter);
    frame.json.end_object();
  }
  frame.json.end_array();
}

/// The list that was set last, by the transcript or a file. Both times are RFC 3339 in UTC, so text order is
/// time order.
const std::vector<Todo>& todos_of(const Session& session, const StreamState& main) {
  if (session.todos && (main.todos_time.empty() || session.todos->time > main.todos_time))
    return session.todos->todos;
  return main.todos;
}

std::string_view last_activity(const Session& session) {
  std::int64_t newest_ms = -1;
  std::string_view newest;
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state || state->last_activity.empty() || state->last_activity_ms <= newest_ms) continue;
    newest_ms = state->last_activity_ms;
    newest = state->last_activity;
  }
  return newest;
}

}  // namespace

std::string session_payload(const Session& session, std::string_view host, const EncodeOptions& options,
                            const ModelTable& models) {
  static const StreamState empty;
  const StreamState* state = state_of(session.main());
  const StreamState& main = state ? *state : empty;
  const bool is_working = main.turn_open || (session.status && session.status->state == "working");
  std::string out;
  out.reserve(1024);
  FrameWriter frame(out, options);
  frame.json.begin_object();
  frame.plain("type", "session");
  frame.plain("host", host);
  frame.plain("session", session.name);
  frame.plain("program", session.program);
  append_cursors(frame.json, session);
  frame.name("project", session.project);
  frame.redacted("directory", session.directory);
  frame.text("title", main.title.empty() && session.status ? session.status->title : main.title);
  frame.name("model", main.model);
  frame.name("version", main.version);
  frame.name("git_branch", main.git_branch);
  frame.name("mode", main.mode);
  frame.name("permission_mode", main.permission_mode);
  frame.name("sandbox", main.sandbox);
  frame.name("source", main.source);
  frame.name("originator", main.originator);
  frame.plain("dialect", main.dialect);
  append_status(frame, session);
  append_turn(frame, main);
  append_tools(frame, main.tools);
  append_todos(frame.json.key("todos").next(), todos_of(session, main), text_bytes_max, options.filter,
               options.view, frame.truncated);
  append_agents(frame, agents_of(session, is_working));
  append_usage_member(frame.json, session, models);
  append_day_member(frame.json, session, models);
  append_limits(frame, session);
  append_times_member(frame.json, session);
  if (session.is_unseen()) frame.json.member("unseen", true);
  if (session.clock_offset_ms != 0) frame.json.member("clock_offset_ms", session.clock_offset_ms);
  frame.plain("last_activity", last_activity(session));
  frame.preview("last_text", main.last_text, main.last_text_truncated);
  frame.truncated.append_member(out);
  frame.json.end_object();
  return out;
}

ReportedNumbers numbers_of(const Session& session, const ModelTable& models, const TextFilter* filter) {
  ReportedNumbers numbers;
  numbers.context_window = context_window_of(session, models);
  if (const auto cost = cost_of(session, models)) {
    numbers.cost_usd = cost->usd;
    numbers.cost_source = cost->source;
  }
  numbers.times = times_of(session);
  for (const LimitState* each : limits_of(session)) numbers.limits.push_back(*each);
  const auto redact = [&](std::string& name) {
    std::string scratch;
    if (filter) name = std::string(filter->clean(name, scratch));
  };
  for (LimitState& limit : numbers.limits) {
    for (std::string* name : {&limit.limit, &limit.plan, &limit.reached}) redact(*name);
    for (LimitWindow& window : limit.windows) redact(window.name);
  }
  return numbers;
}

namespace {

bool is_open(const StreamState& state, const std::string& call) {
  return std::any_of(state.tools.begin(), state.tools.end(),
                     [&](const OpenTool& tool) { return tool.call == call; });
}

}  // namespace

namespace {

using status::BackgroundWork;

std::int64_t time_of(const std::string& time) { return parse_time(time).value_or(0); }

/// The state of the subagent's own stream; null: it has none, or is not known.
const StreamState* state_of_agent(const Session& session, const std::string& agent) {
  if (agent.empty()) return nullptr;
  const auto found = std::find_if(session.members.begin(), session.members.end(),
                                  [&](const Member& each) { return each.stream->agent() == agent; });
  return found == session.members.end() ? nullptr : state_of(found->stream);
}

/// Adds the agents and tasks that a stream started and that outlive their calls.
void add_background(const Session& session, const StreamState& state, std::vector<BackgroundWork>& all) {
  const auto add = [&](BackgroundWork::Kind kind, std::uint64_t count, std::int64_t time_ms) {
    if (count) all.push_back({kind, count, time_ms, true});
  };
  add(BackgroundWork::Kind::agent, state.pending.agents, state.pending.time_ms);
  add(BackgroundWork::Kind::workflow, state.pending.workflows, state.pending.time_ms);
  std::uint64_t counted = state.pending.agents;
  for (const RunningAgent& agent : state.agents) {
    if (!agent.background || is_open(state, agent.call)) continue;
    if (counted > 0) {  // the program's count has it
      --counted;
      continue;
    }
    const StreamState* const own = state_of_agent(session, agent.subagent);
    all.push_back(
        {BackgroundWork::Kind::agent, 1, std::max(time_of(agent.started), own ? own->last_activity_ms : 0)});
  }
  for (const BackgroundTask& task : state.tasks)
    all.push_back(
        {BackgroundWork::Kind::task, 1, task.started_ms, false, task.made_by.tool, task.made_by.input});
  for (const Schedule& schedule : state.schedules)
    all.push_back({BackgroundWork::Kind::schedule, 1, schedule.time_ms, false, {}, {}, schedule.due_ms});
}

}  // namespace

status::TranscriptSummary transcript_summary(const Session& session) {
  status::TranscriptSummary summary;
  const StreamState* main = state_of(session.main());
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state) continue;
    summary.known = true;
    const std::string& own_agent = member.stream->agent();
    for (const OpenTool& tool : state->tools) {
      const std::string& agent = tool.agent.empty() ? own_agent : tool.agent;
      summary.calls.push_back({tool.call, tool.tool, tool.input, agent, tool.started, tool.started_ms,
                               member.stream->modified_ms()});
    }
    for (const OpenRequest& request : state->requests) {
      if (request.kind == "auth" && state != main) continue;  // no later turn of a subagent's would end it
      OpenRequest& asked = summary.requests.emplace_back(request);
      if (asked.agent.empty()) asked.agent = own_agent;
      // The order is that of the records that ask: it does not change when a call begins to run.
      asked.started_ms = parse_time(asked.started).value_or(asked.started_ms);
    }
    add_background(session, *state, summary.background);
  }
  const auto is_older = [](const auto& one, const auto& other) { return one.started_ms < other.started_ms; };
  std::stable_sort(summary.requests.begin(), summary.requests.end(), is_older);
  std::stable_sort(summary.calls.begin(), summary.calls.end(), is_older);
  if (main) {
    summary.turn_open = main->turn_open || main->is_announced;
    summary.turn_started = main->is_announced && !main->turn_open ? main->last_activity : main->turn_started;
    summary.permission_mode = main->permission_mode;
    summary.is_compacting = main->is_compacting;
    summary.is_closed = main->is_closed;
    summary.turn_finished = main->last_finished;
    summary.turn_grown_ms = main->last_activity_ms;
    summary.outcome = main->last_outcome;
    summary.turn = main->turn;
    summary.prompted = main->prompted;
    summary.expects_turn = main->expects_turn;
    summary.continued_in = main->continued_in;
    summary.waited_ms = std::max<std::int64_t>(0, main->times.until(0).waited - main->prompted.waited_ms);
    summary.is_headless = main->is_headless;
    summary.answered = format_time_if_valid(main->times.answered());
    summary.version = main->version;
    summary.path = session.main()->path();
    for (const std::string& directory : {main->project, main->cwd})
      if (!directory.empty()) summary.directories.push_back(directory);
  }
  summary.is_blank = summary.known && !session.has_events();
  summary.program = session.program;
  summary.last_growth_ms = session.modified_ms();
  summary.last_activity = last_activity(session);
  return summary;
}

// --- Subscriptions and connections ---

namespace {

/// Members without a value are omitted.
std::string text_frame(std::initializer_list<std::pair<std::string_view, std::string_view>> members) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  for (const auto& [name, value] : members) json.member_if_any(name, value);
  json.end_object();
  return out;
}

}  // namespace

std::string control_frame(std::string_view type, std::string_view id) {
  std::string out;
  JsonWriter(out).begin_object().member("type", type).member("id", id).end_object();
  return out;
}

std::string error_frame(std::string_view id, std::string_view code, std::string_view text, bool retry) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "error").member_if_any("id", id).member("code", code);
  json.member("message", text).member("retry", retry).end_object();
  return out;
}

std::string heartbeat_frame(std::int64_t time_ms) {
  return text_frame({{"type", "heartbeat"}, {"time", format_time(time_ms)}});
}

std::string stream_cursor(const tail::Stream& stream, const Cursor& cursor) {
  return stream.name() + ":" + to_string(cursor);
}

std::vector<std::string> bookmark_frames(std::string_view id, const std::vector<std::string>& cursors,
                                         bool complete) {
  std::vector<std::string> frames;
  for (std::size_t at = 0; at < cursors.size() || (frames.empty() && complete);) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("type", "bookmark").member_if_any("id", id).key("cursors").begin_array();
    for (std::size_t count = 0; at < cursors.size() && count < cursors_per_frame; ++at, ++count)
      json.value(cursors[at]);
    json.end_array();
    if (complete && at == cursors.size()) json.member("complete", true);
    json.end_object();
    frames.push_back(std::move(out));
  }
  return frames;
}

std::string reset_frame(std::string_view id, std::string_view host, std::string_view session,
                        std::string_view stream, std::string_view reason) {
  return text_frame({{"type", "reset"},
                     {"id", id},
                     {"host", host},
                     {"session", session},
                     {"stream", stream},
                     {"reason", reason}});
}

std::string renamed_frame(std::string_view host, std::string_view session, std::string_view from,
                          std::string_view to) {
  return text_frame(
      {{"type", "stream.renamed"}, {"host", host}, {"session", session}, {"from", from}, {"to", to}});
}

std::string removed_frame(std::string_view host, std::string_view stream) {
  return text_frame({{"type", "stream.removed"}, {"host", host}, {"stream", stream}});
}

}  // namespace earshot::serve
