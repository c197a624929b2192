// What a session's frame says, and what the status board is told: both read off the states of its streams.
#include <algorithm>
#include <charconv>
#include <string>

#include "core/event_json.hpp"
#include "serve/stream/session_store.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t text_bytes_max = 512;  // longer titles, prompts and texts are cut, as append_text does
constexpr std::size_t todo_bytes_max = 512;
constexpr std::size_t agents_max = 256;  // more are not shown

/// Fields of one JSON object, the absent ones left out.
class Fields {
 public:
  Fields(std::string& out, const EncodeOptions& shown, TruncatedPaths& truncated)
      : out_(out), shown_(shown), truncated_(truncated) {
    out_ += '{';
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;
  ~Fields() { out_ += '}'; }

  std::string& key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void plain(std::string_view name, std::string_view value) {  // our own words and the protocol's ids
    if (!value.empty()) append_string(key(name), value);
  }
  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) append_redacted(key(name), value, shown_.filter);
  }
  void cut(std::string_view name, std::string_view value) {  // what was said: only the full view shows it
    if (!value.empty() && shown_.view == View::full)
      append_text(key(name), value, text_bytes_max, shown_.filter, truncated_, name);
  }
  /// A text of which the state has only the beginning; `bytes`: of the complete text, 0 if this is it.
  void preview(std::string_view name, std::string_view value, std::uint64_t bytes) {
    if (value.empty() || shown_.view != View::full) return;
    if (bytes > 0) truncated_.add(name, bytes);
    cut(name, value);
  }
  void number(std::string_view name, std::uint64_t value) { key(name) += std::to_string(value); }
  void flag(std::string_view name, bool value) { key(name) += value ? "true" : "false"; }

 private:
  std::string& out_;
  const EncodeOptions shown_;
  TruncatedPaths& truncated_;
  bool first_ = true;
};

const StreamState* state_of(const tail::Stream* stream) {
  return stream && stream->transcript() ? &stream->transcript()->state() : nullptr;
}

void append_cursors(std::string& out, const Session& session) {
  out += '[';
  bool first = true;
  for (const Member& member : session.members) {
    if (!member.stream->transcript()) continue;
    if (!first) out += ',';
    first = false;
    append_string(out, member.stream->name() + ":" + to_string(member.stream->transcript()->end()));
  }
  out += ']';
}

void append_status(std::string& out, const Session& session, const EncodeOptions& shown,
                   TruncatedPaths& truncated) {
  static const status::Status not_known = [] {
    status::Status status;
    status.source = "transcript";
    return status;
  }();
  const status::Status& status = session.status ? *session.status : not_known;
  Fields fields(out, shown, truncated);
  fields.plain("state", status.state);
  fields.text("reason", status.reason);
  if (shown.view == View::full) fields.text("detail", status.detail);
  fields.plain("source", status.source.empty() ? "transcript" : status.source);
  fields.plain("since", status.since);
}

void append_turn(std::string& out, const StreamState& state, const EncodeOptions& shown,
                 TruncatedPaths& truncated) {
  const TruncatedPaths::Scope scope(truncated, "turn");
  Fields fields(out, shown, truncated);
  fields.number("number", state.turn);
  fields.flag("open", state.turn_open);
  fields.plain("started", state.turn_started);
  fields.preview("prompt", state.turn_prompt, state.turn_prompt_truncated);
  if (!state.turn_open) {
    fields.plain("outcome", state.last_outcome);
    fields.plain("finished", state.last_finished);
  }
}

void append_tools(std::string& out, const std::vector<OpenTool>& tools, const EncodeOptions& shown,
                  TruncatedPaths& truncated) {
  const TruncatedPaths::Scope list_scope(truncated, "tools");
  out += '[';
  for (const OpenTool& tool : tools) {
    const TruncatedPaths::Scope scope(truncated, static_cast<std::size_t>(&tool - tools.data()));
    if (&tool != &tools.front()) out += ',';
    Fields fields(out, shown, truncated);
    fields.plain("call", tool.call);
    append_redacted(fields.key("tool"), tool.tool, shown.filter);
    if (!tool.input.empty() && shown.view == View::full) {
      fields.key("input") += tool.input;
      for (const TruncatedPath& each : tool.truncated) truncated.add(each.path, each.bytes);
    }
    fields.plain("started", tool.started);
    fields.plain("agent", tool.agent);
  }
  out += ']';
}

struct ShownAgent {
  const RunningAgent* running = nullptr;  // as the parent's stream has it; null: only its own stream is known
  const tail::Stream* stream = nullptr;   // its own; null: it has none (or none yet)
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

/// Those that a parent waits for, and those whose own stream has an open turn while the session is at work.
std::vector<ShownAgent> agents_of(const Session& session, bool session_at_work) {
  std::vector<ShownAgent> agents;
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state) continue;
    for (const RunningAgent& running : state->agents)
      agents.push_back({&running, stream_of(session, running)});
  }
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (member.stream->agent().empty() || !state || !state->turn_open || !session_at_work) continue;
    const bool shown = std::any_of(agents.begin(), agents.end(),
                                   [&](const ShownAgent& agent) { return agent.stream == member.stream; });
    if (!shown) agents.push_back({nullptr, member.stream});
  }
  if (agents.size() > agents_max) agents.resize(agents_max);
  return agents;
}

void append_agents(std::string& out, const std::vector<ShownAgent>& agents, const EncodeOptions& shown,
                   TruncatedPaths& truncated) {
  const TruncatedPaths::Scope list_scope(truncated, "agents");
  const auto first_of = [](const std::string* a, const std::string* b) {
    if (a && !a->empty()) return std::string_view(*a);
    return b ? std::string_view(*b) : std::string_view();
  };
  out += '[';
  for (const ShownAgent& agent : agents) {
    const TruncatedPaths::Scope scope(truncated, static_cast<std::size_t>(&agent - agents.data()));
    if (&agent != &agents.front()) out += ',';
    const RunningAgent* running = agent.running;
    const tail::AgentMeta* meta = agent.stream ? &agent.stream->meta() : nullptr;
    const StreamState* state = state_of(agent.stream);
    Fields fields(out, shown, truncated);
    fields.plain("agent", first_of(agent.stream ? &agent.stream->agent() : nullptr,
                                   running ? &running->subagent : nullptr));
    fields.text("agent_type",
                first_of(running ? &running->agent_type : nullptr, meta ? &meta->agent_type : nullptr));
    fields.cut("description",
               first_of(running ? &running->description : nullptr, meta ? &meta->description : nullptr));
    fields.plain("call", first_of(running ? &running->call : nullptr, meta ? &meta->call : nullptr));
    if (running && running->background) fields.flag("background", true);
    fields.plain("started",
                 first_of(running ? &running->started : nullptr, state ? &state->turn_started : nullptr));
    append_tools(fields.key("tools"), state ? state->tools : std::vector<OpenTool>{}, shown, truncated);
  }
  out += ']';
}

void append_usage_of(std::string& out, const Session& session, const StreamState& main) {
  Usage sum;
  double cost_usd = 0;
  bool cost_known = false;
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state) continue;
    sum.input += state->usage.input;
    sum.output += state->usage.output;
    sum.cache_read += state->usage.cache_read;
    sum.cache_write += state->usage.cache_write;
    if (state->cost_usd) {
      cost_usd += *state->cost_usd;
      cost_known = true;
    }
  }
  Fields fields(out);
  fields.number("input", sum.input);
  fields.number("output", sum.output);
  fields.number("cache_read", sum.cache_read);
  fields.number("cache_write", sum.cache_write);
  if (main.context_tokens > 0) fields.number("context", main.context_tokens);
  if (cost_known && cost_usd >= 0) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, cost_usd).ptr;
    fields.key("cost_usd").append(digits, end);
  }
}

/// The list that was set last: the transcript's or the files'. Both times are RFC 3339 in UTC, so text order
/// is time order.
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

std::string session_payload(const Session& session, std::string_view host, const EncodeOptions& shown) {
  static const StreamState nothing;
  const StreamState* state = state_of(session.main());
  const StreamState& main = state ? *state : nothing;
  const bool at_work = main.turn_open || (session.status && session.status->state == "working");
  std::string out;
  out.reserve(1024);
  TruncatedPaths truncated;
  {
    Fields fields(out, shown, truncated);
    fields.plain("type", "session");
    fields.plain("host", host);
    fields.plain("session", session.name);
    fields.plain("program", main.program);
    append_cursors(fields.key("cursors"), session);
    fields.text("project", session.project);
    append_redacted(fields.key("directory"), session.directory, shown.filter);
    fields.cut("title", main.title);
    fields.text("model", main.model);
    fields.text("version", main.version);
    fields.text("git_branch", main.git_branch);
    fields.text("mode", main.mode);
    fields.text("permission_mode", main.permission_mode);
    fields.plain("dialect", main.dialect);
    append_status(fields.key("status"), session, shown, truncated);
    append_turn(fields.key("turn"), main, shown, truncated);
    append_tools(fields.key("tools"), main.tools, shown, truncated);
    append_todos(fields.key("todos"), todos_of(session, main), todo_bytes_max, shown.filter, shown.view,
                 truncated);
    append_agents(fields.key("agents"), agents_of(session, at_work), shown, truncated);
    append_usage_of(fields.key("usage"), session, main);
    fields.plain("last_activity", last_activity(session));
    fields.preview("last_text", main.last_text, main.last_text_truncated);
    truncated.append_member(out);
  }
  return out;
}

status::TranscriptSummary transcript_summary(const Session& session) {
  status::TranscriptSummary said;
  const StreamState* main = state_of(session.main());
  struct Call {
    std::int64_t started_ms;
    status::OpenCall call;
  };
  std::vector<Call> calls;
  for (const Member& member : session.members) {
    const StreamState* state = state_of(member.stream);
    if (!state) continue;
    said.known = true;
    const std::string& own_agent = member.stream->agent();
    for (const OpenTool& tool : state->tools) {
      calls.push_back(
          {tool.started_ms, {tool.call, tool.tool, tool.input, tool.agent.empty() ? own_agent : tool.agent}});
    }
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& a, const Call& b) { return a.started_ms < b.started_ms; });
  for (Call& call : calls) said.calls.push_back(std::move(call.call));
  if (main) {
    said.turn_open = main->turn_open;
    said.turn_started = main->turn_started;
    said.turn_finished = main->last_finished;
  }
  said.last_growth_ms = session.modified_ms();
  said.last_activity = last_activity(session);
  return said;
}

}  // namespace earshot::serve
