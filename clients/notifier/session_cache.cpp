#include "notifier/session_cache.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "common/format.hpp"
#include "common/http.hpp"
#include "notifier/notice.hpp"

namespace earshot::notifier {
namespace {

using common::Fields;

// Members that the meta view leaves out, at any depth, unless they are numbers (token counts).
constexpr std::string_view text_members[] = {"text",  "prompt", "input",     "output", "summary",
                                             "title", "error",  "detail",    "todos",  "description",
                                             "files", "agents", "last_text", "media",  "truncated"};

bool is_text(std::string_view key, simdjson::dom::element value) {
  return !value.is_number() && contains(text_members, key);
}

void write_without_text(JsonWriter& writer, simdjson::dom::element value) {
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get(object) == simdjson::SUCCESS) {
    writer.begin_object();
    for (const auto& [key, item] : object) {
      if (!is_text(key, item)) write_without_text(writer.key(key), item);
    }
    writer.end_object();
  } else if (value.get(array) == simdjson::SUCCESS) {
    writer.begin_array();
    for (const simdjson::dom::element item : array) write_without_text(writer, item);
    writer.end_array();
  } else {
    writer.raw(simdjson::minify(value));
  }
}

// Calls that run subagents are open while the subagent asks; they are not the tool that needs permission.
constexpr std::string_view agent_tools[] = {"Agent", "Task", "task", "spawn_agent"};

void set_if_known(std::string& field, std::string_view text) {
  if (!text.empty()) field = text;
}

std::optional<double> number(const Fields& fields, std::string_view key) {
  const auto element = fields.get(key);
  double value = 0;
  if (!element || element->get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::string number_text(const Fields& fields, std::string_view key) {
  const auto value = fields.integer(key);
  return value ? std::to_string(*value) : std::string();
}

// Variables with the name of a member of the frame.
constexpr std::string_view member_variables[] = {"tool",   "outcome", "origin", "agent_type",  "model",
                                                 "prompt", "text",    "output", "description", "summary",
                                                 "error",  "state",   "reason"};
// Members that distinguish events of the same type, turn and time.
constexpr std::string_view identity_members[] = {"agent",   "call",    "task",        "subagent",
                                                 "message", "outcome", "duration_ms", "attempt"};

}  // namespace

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string EventContext::value(std::string_view name, View view) const {
  if (view == View::meta && contains(text_variables, name)) return {};
  const auto found = values.find(name);
  return found == values.end() ? std::string() : found->second;
}

std::string frame_for(std::string_view json, View view) {
  common::FrameParser parser;
  const auto frame = parser.parse(json);
  if (!frame) return "{}";
  std::string out;
  JsonWriter writer(out);
  writer.begin_object();
  for (const auto& [key, value] : frame->raw()) {
    if (view == View::full) {
      writer.raw_member(key, simdjson::minify(value));
    } else if (!is_text(key, value)) {
      write_without_text(writer.key(key), value);
    }
  }
  writer.end_object();
  return out;
}

bool SessionCache::update(const Fields& frame) {
  if (frame.text("type") == "welcome") {
    daemon_host_ = frame.text("host");
    page_ = frame.text("url").empty() ? default_page_ : std::string(frame.text("url"));
  }
  const std::string_view id = frame.text("session");
  if (id.empty()) return false;
  Session& session = sessions_[id];
  set_if_known(session.host, frame.text("host"));
  set_if_known(session.program, frame.text("program"));
  clocks_.observe(frame);
  return update_facts(frame, session);
}

std::int64_t SessionCache::adjust_time(std::string_view host, std::optional<std::int64_t> time_ms) const {
  if (!time_ms || *time_ms == 0) return 0;
  return *time_ms + clocks_.offset_ms(host);
}

bool SessionCache::update_facts(const Fields& frame, Session& session) {
  const std::string_view type = frame.text("type");
  const std::string_view stream = frame.text("stream");
  const bool main = frame.text("agent").empty();
  const bool is_session = type == "session";
  if (is_session || ((type == "session.started" || type == "session.updated") && main)) {
    if (is_session || session.project.empty()) set_if_known(session.project, frame.text("project"));
    if (session.project.empty()) set_if_known(session.project, frame.text("cwd"));
    set_if_known(session.directory, frame.text("directory"));
    set_if_known(session.branch, frame.text("git_branch"));
    set_if_known(session.model, frame.text("model"));
    set_if_known(session.title, frame.text("title"));
  }
  if (type == "status") set_if_known(session.title, frame.text("title"));
  if (is_session) {
    update_figures(frame, session);
    session.calls.clear();
    const auto add_calls = [&](const Fields& of) {
      for (const Fields& tool : of.objects("tools"))
        session.calls.push_back({std::string(tool.text("call")), std::string(tool.text("tool")), {}});
    };
    add_calls(frame);
    for (const Fields& agent : frame.objects("agents")) add_calls(agent);
  } else if (type == "tool.invoked") {
    if (session.calls.size() < open_calls_max)
      session.calls.push_back(
          {std::string(frame.text("call")), std::string(frame.text("tool")), std::string(stream)});
  } else if (type == "tool.finished") {
    std::erase_if(session.calls, [&](const Call& each) { return each.call == frame.text("call"); });
  } else if (type == "stream.renamed") {
    for (Call& each : session.calls)
      if (each.stream == frame.text("from")) each.stream = frame.text("to");
  } else if (type == "turn.started") {
    std::erase_if(session.calls, [&](const Call& each) { return each.stream == stream; });
    if (main) session.api_status.clear(), session.api_kind.clear();
  } else if (type == "usage.updated") {
    if (const auto cost = number(frame, "cost_usd")) session.set_cost(*cost, "recorded");
    if (main) update_context(frame, session);
  } else if (type == "compaction.finished" && main) {
    session.context_tokens = number(frame, "post_tokens");
  } else if (type == "api.failed" && main) {
    session.api_status = number_text(frame, "status");
    session.api_kind = frame.text("kind");
  }
  return type.starts_with("session") || type.starts_with("tool.");
}

// What the message's prompt held is the size of the context, where the transcript does not state it.
void SessionCache::update_context(const Fields& frame, Session& session) {
  const double tokens =
      number(frame, "context_tokens")
          .value_or(number(frame, "input").value_or(0) + number(frame, "cache_read").value_or(0) +
                    number(frame, "cache_write").value_or(0));
  if (tokens <= 0) return;  // a message that the program wrote itself
  session.context_tokens = tokens;
  const std::string_view model = frame.text("model");
  if (!model.empty() && model != session.context_model) {
    if (!session.context_model.empty()) session.context_window.reset();
    session.context_model = model;
  }
  if (const auto window = number(frame, "context_window")) session.context_window = window;
}

std::optional<double> SessionCache::percent_of(const Session& session) {
  if (!session.context_tokens || session.context_window.value_or(0) <= 0) return std::nullopt;
  return 100 * *session.context_tokens / *session.context_window;
}

std::optional<double> SessionCache::context_percent(std::string_view id) const {
  const Session* const session = sessions_.find(id);
  return session == nullptr ? std::nullopt : percent_of(*session);
}

void SessionCache::update_figures(const Fields& frame, Session& session) {
  const Fields usage = frame.object("usage");
  if (const auto cost = number(usage, "cost_usd")) session.set_cost(*cost, usage.text("cost_source"));
  if (const auto tokens = number(usage, "context")) session.context_tokens = tokens;
  if (const auto window = number(usage, "context_window")) {
    session.context_window = window;
    set_if_known(session.context_model, frame.text("model"));
  }
}

void SessionCache::update_figures(const Fields& frame) {
  if (const std::string_view id = frame.text("session"); !id.empty()) update_figures(frame, sessions_[id]);
}

void SessionCache::set_figures(EventContext& context) const {
  if (const Session* const session = sessions_.find(context.session)) set_figures(*session, context);
}

void SessionCache::set_figures(const Session& session, EventContext& context) {
  context.context_percent = percent_of(session);
  if (context.context_percent)
    context.values["context"] =
        std::to_string(static_cast<std::int64_t>(std::floor(*context.context_percent))) + "%";
  if (!session.cost_usd) return;
  context.cost_usd = session.cost_usd;
  context.values["cost"] = common::format_usd(*session.cost_usd, session.is_cost_estimated);
}

std::string SessionCache::waiting_tool(const Session& session) const {
  std::string tool;
  for (const Call& each : session.calls) {
    const std::string_view name = each.tool;
    if (contains(agent_tools, name.substr(name.rfind('.') + 1))) continue;  // of `namespace.spawn_agent`
    if (!tool.empty() && tool != each.tool) return {};
    tool = each.tool;
  }
  return tool;
}

void SessionCache::set_variables(const Session& session, EventContext& context) const {
  auto& values = context.values;
  const auto set = [&](const char* key, std::string_view value) {
    if (!value.empty() && !values.contains(key)) values[key] = value;
  };
  set("type", context.type);
  set("host", context.host);
  context.is_daemon_known = !daemon_host_.empty();
  if (!daemon_host_.empty() && context.host != daemon_host_) set("elsewhere", context.host);
  set("program", session.program);
  if (session.program != "claude-code") set("other_program", session.program);
  set("session", context.session);
  set("short", common::short_id(context.session));
  set("agent", context.agent);
  set("project", session.project.empty() ? session.directory : session.project);
  set("name", common::last_component(values["project"]));
  if (values["name"].empty()) values["name"] = common::short_id(context.session);
  set("branch", session.branch);
  set("model", session.model);
  set("title", session.title);
  set("link", common::session_page(page_, context.session, context.host));
  set("api_status", session.api_status);
  set("api_kind", session.api_kind);
  if (context.duration_ms)
    set("duration", format_duration(common::Ms(static_cast<std::int64_t>(*context.duration_ms))));
  set_figures(session, context);
}

void SessionCache::set_limits(const Fields& limits, const Session& session, EventContext& context,
                              std::int64_t now_ms) {
  constexpr std::int64_t minute_ms = 60'000,
                         jitter_ms = minute_ms;  // of a reset, which services compute anew
  Fields fullest;
  for (const Fields& window : limits.objects("windows")) {
    const auto used = number(window, "used_percent");
    if (!used || (context.used_percent && *context.used_percent >= *used)) continue;
    if (parse_time(window.text("resets_at")).value_or(now_ms) < now_ms) continue;
    context.used_percent = used;
    fullest = window;
  }
  if (!context.used_percent) return;
  context.values["used"] = std::to_string(static_cast<std::int64_t>(std::floor(*context.used_percent))) + "%";
  const std::int64_t minutes = fullest.integer("window_minutes").value_or(0);
  context.values["window"] = minutes > 0 ? common::period_text(minutes) : std::string(fullest.text("name"));
  const std::string name = "limits\n" + context.host + '\n' + session.program + '\n' +
                           std::string(limits.text("limit")) + '\n' + std::string(fullest.text("name"));
  std::int64_t resets = parse_time(fullest.text("resets_at")).value_or(0);
  std::int64_t& known = limit_resets_[name];
  if (std::abs(resets - known) <= jitter_ms) resets = known;
  known = resets;
  if (resets > 0) context.values["resets"] = format_local_clock(resets);
  // It is the account's: the same period of all its sessions is one event.
  const std::int64_t length_ms = minutes * minute_ms;
  const std::int64_t period = length_ms > 0 ? (resets + length_ms / 2) / length_ms : resets / jitter_ms;
  context.id = digest(name + '\n' + std::to_string(period));
}

bool SessionCache::note_limits(const Fields& limits, const Session& session, std::int64_t time_ms) {
  std::int64_t& last =
      limit_times_[session.host + '\n' + session.program + '\n' + std::string(limits.text("limit"))];
  if (time_ms <= last) return false;
  last = time_ms;
  return true;
}

std::vector<EventContext> SessionCache::limit_contexts(const Fields& frame, std::int64_t now_ms) {
  std::vector<EventContext> contexts;
  const Session& session = sessions_[frame.text("session")];
  for (const Fields& limits : frame.objects("limits")) {
    const auto time = parse_time(limits.text("time"));
    if (!time || !note_limits(limits, session, *time)) continue;
    EventContext context;
    context.type = "limits.updated";
    context.host = frame.text("host");
    context.session = frame.text("session");
    context.time_ms = adjust_time(context.host, time);
    context.values["time"] = limits.text("time");
    set_variables(session, context);
    set_limits(limits, session, context, now_ms);
    if (context.used_percent) contexts.push_back(std::move(context));
  }
  return contexts;
}

std::string_view SessionCache::offline_id(std::string_view session) const {
  const Session* const found = sessions_.find(session);
  return found == nullptr ? std::string_view() : std::string_view(found->offline_id);
}

EventContext SessionCache::event_context(const Fields& frame, std::string_view json, std::int64_t now_ms) {
  EventContext context;
  const bool is_session = frame.text("type") == "session";
  context.type = is_session ? "status" : frame.text("type");
  context.host = frame.text("host");
  context.session = frame.text("session");
  context.stream = frame.text("stream");
  context.agent = frame.text("agent");
  context.frame = json;
  Session& session = sessions_[context.session];
  if (context.type == "status") {
    apply_status(is_session ? frame.object("status") : frame, session, context, now_ms);
    return context;
  }
  const auto time = parse_time(frame.text("time"));
  std::int64_t& last = times_[context.stream];
  if (time) last = *time;
  context.time_ms = adjust_time(context.host, time.value_or(last));
  if (const auto ms = number(frame, "duration_ms")) context.duration_ms = ms;
  context.fatal = frame.flag("fatal");
  for (const std::string_view key : member_variables) {
    if (const std::string_view text = frame.text(key); !text.empty()) context.values[std::string(key)] = text;
  }
  for (const std::string_view key : {"turn", "tools"}) {
    if (frame.integer(key)) context.values[std::string(key)] = std::to_string(*frame.integer(key));
  }
  context.values["time"] = frame.text("time");
  set_variables(session, context);
  // A fork copies earlier events with their times, so the stream is not part of the identity.
  std::string identity = context.type + '\n' + context.host + '\n' + context.values["turn"] + '\n';
  identity +=
      time ? std::string(frame.text("time")) : context.stream + '\n' + std::string(frame.text("cursor"));
  for (const std::string_view key : identity_members) {
    identity += '\n';
    identity += frame.text(key);
    identity += number_text(frame, key);
  }
  context.id = digest(identity);
  if (context.type == "limits.updated") {
    if (time) note_limits(frame, session, *time);
    set_limits(frame, session, context, now_ms);
  }
  return context;
}

std::optional<EventContext> SessionCache::done_context(const Fields& frame,
                                                       const EventContext& context) const {
  const Fields done =
      frame.text("type") == "session" ? frame.object("status").object("done") : frame.object("done");
  const Session* const session = sessions_.find(context.session);
  if (!done || session == nullptr) return std::nullopt;
  EventContext result;
  result.type = "done";
  result.host = context.host, result.session = context.session;
  result.frame = context.frame;
  result.is_daemon_known = context.is_daemon_known;
  result.is_headless = done.flag("headless");
  result.duration_ms = number(done, "duration_ms");
  const auto prompted = parse_time(done.text("prompted"));
  if (prompted && result.duration_ms)
    result.time_ms = adjust_time(context.host, *prompted + static_cast<std::int64_t>(*result.duration_ms));
  result.values["outcome"] = done.text("outcome");
  result.values["turn"] = number_text(done, "turn");
  if (done.integer("turns").value_or(1) > 1) result.values["turns"] = number_text(done, "turns");
  if (const std::int64_t waited = done.integer("waited_ms").value_or(0); waited >= 1000)
    result.values["waited"] = format_duration(common::Ms(waited));
  if (result.time_ms) result.values["time"] = format_time_if_valid(result.time_ms);
  set_variables(*session, result);
  result.id = digest("done\n" + context.host + '\n' + context.session + '\n' + result.values["turn"] + '\n' +
                     std::string(done.text("prompted")));
  return result;
}

// The daemon repeats a status with more detail or from another source: it keeps its id, and the reason and
// detail that the repetition lacks. Its request shows which wait it is; of a host that names none, its time.
void SessionCache::apply_status(const Fields& status, Session& session, EventContext& context,
                                std::int64_t now_ms) {
  const std::string_view state = status.text("state"), since = status.text("since"),
                         request = status.text("request");
  session.offline_id.clear();
  if (is_host_offline(status)) {  // keep the reported status: it is valid again when the host is back
    session.offline_id = digest("away\n" + context.host + '\n' + context.session + '\n' + std::string(since));
    context.id = session.offline_id;
    context.time_ms = parse_time(since).value_or(0);  // of the hub
    context.values["state"] = state;
    context.values["reason"] = status.text("reason");
    context.values["time"] = since;
    return set_variables(session, context);
  }
  const bool is_same_request = request.empty() || session.request.empty()
                                   ? since.empty() || since == session.since
                                   : request == session.request;
  const bool same = !session.status_id.empty() && session.state == state && is_same_request;
  if (same && session.request.empty()) session.request = request;
  if (!same) {
    context.is_next_request = state == "waiting" && session.state == state;
    session.state = state;
    session.since = since;
    session.request = request;
    session.reason.clear();
    session.detail.clear();
    const std::string when = since.empty() ? std::to_string(now_ms) : std::string(since);
    session.status_id = digest("status\n" + context.host + '\n' + context.session + '\n' + session.state +
                               '\n' + when + (request.empty() ? "" : '\n' + session.request));
  }
  set_if_known(session.reason, status.text("reason"));
  set_if_known(session.detail, status.text("detail"));
  set_status(session, context);
}

void SessionCache::set_status(const Session& session, EventContext& context) const {
  context.id = session.status_id;
  context.time_ms = adjust_time(context.host, parse_time(session.since));
  context.values["state"] = session.state;
  if (!session.reason.empty()) context.values["reason"] = session.reason;
  if (!session.detail.empty()) context.values["detail"] = session.detail;
  context.values["time"] = session.since;
  if (session.reason == "permission") context.values["tool"] = waiting_tool(session);
  set_variables(session, context);
}

std::optional<EventContext> SessionCache::current_status(std::string_view id) const {
  const Session* const session = sessions_.find(id);
  if (session == nullptr || session->status_id.empty() || !session->offline_id.empty()) return std::nullopt;
  EventContext context;
  context.type = "status";
  context.host = session->host;
  context.session = id;
  set_status(*session, context);
  return context;
}

}  // namespace earshot::notifier
