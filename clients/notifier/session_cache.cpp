#include "notifier/session_cache.hpp"

#include <algorithm>
#include <cstdio>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "common/format.hpp"
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
constexpr std::string_view agent_tools[] = {"Agent", "Task"};

void set_if_known(std::string& field, std::string_view text) {
  if (!text.empty()) field = text;
}

std::optional<double> number(const Fields& fields, std::string_view key) {
  const auto element = fields.get(key);
  double value = 0;
  if (!element || element->get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

// A hub reports this status for the sessions of an offline host.
bool is_host_offline(const Fields& status) {
  return status.text("state") == "unknown" && status.text("reason") == "host_offline";
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
  if (frame.text("type") == "welcome") daemon_host_ = frame.text("host");
  const std::string_view id = frame.text("session");
  if (id.empty()) return false;
  Session& session = sessions_[id];
  set_if_known(session.host, frame.text("host"));
  return update_facts(frame, session);
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
  if (is_session) {
    if (const auto cost = number(frame.object("usage"), "cost_usd")) session.cost_usd = cost;
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
  } else if (type == "turn.started") {
    std::erase_if(session.calls, [&](const Call& each) { return each.stream == stream; });
    if (main) session.api_status.clear();
  } else if (type == "usage.updated") {
    if (const auto cost = number(frame, "cost_usd")) session.cost_usd = cost;
  } else if (type == "api.failed" && main) {
    session.api_status = number_text(frame, "status");
  }
  return type.starts_with("session") || type.starts_with("tool.");
}

std::string SessionCache::waiting_tool(const Session& session) const {
  std::string tool;
  for (const Call& each : session.calls) {
    if (contains(agent_tools, each.tool)) continue;
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
  if (!daemon_host_.empty() && context.host != daemon_host_) set("elsewhere", context.host);
  set("session", context.session);
  set("short", common::short_id(context.session));
  set("agent", context.agent);
  set("project", session.project.empty() ? session.directory : session.project);
  set("name", common::last_component(values["project"]));
  if (values["name"].empty()) values["name"] = common::short_id(context.session);
  set("branch", session.branch);
  set("model", session.model);
  set("title", session.title);
  set("api_status", session.api_status);
  if (context.duration_ms)
    set("duration", format_duration(common::Ms(static_cast<std::int64_t>(*context.duration_ms))));
  if (session.cost_usd) {
    char text[32];
    std::snprintf(text, sizeof text, "$%.2f", *session.cost_usd);
    context.cost_usd = session.cost_usd;
    set("cost", text);
  }
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
  context.time_ms = time.value_or(last);
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
  return context;
}

// The daemon repeats a status with more detail or from another source: it keeps its id, and the reason and
// detail that the repetition lacks.
void SessionCache::apply_status(const Fields& status, Session& session, EventContext& context,
                                std::int64_t now_ms) {
  const std::string_view state = status.text("state"), since = status.text("since"),
                         source = status.text("source");
  session.offline_id.clear();
  if (is_host_offline(status)) {  // keep the reported status: it is valid again when the host is back
    session.offline_id = digest("away\n" + context.host + '\n' + context.session + '\n' + std::string(since));
    context.id = session.offline_id;
    context.time_ms = parse_time(since).value_or(0);
    context.values["state"] = state;
    context.values["reason"] = status.text("reason");
    context.values["time"] = since;
    return set_variables(session, context);
  }
  const bool same = !session.status_id.empty() && session.state == state &&
                    (since.empty() || since == session.since || source != session.source);
  if (!same) {
    session.state = state;
    session.since = since;
    session.reason.clear();
    session.detail.clear();
    const std::string when = since.empty() ? std::to_string(now_ms) : std::string(since);
    session.status_id =
        digest("status\n" + context.host + '\n' + context.session + '\n' + session.state + '\n' + when);
  }
  session.source = source;
  set_if_known(session.reason, status.text("reason"));
  set_if_known(session.detail, status.text("detail"));
  set_status(session, context);
}

void SessionCache::set_status(const Session& session, EventContext& context) const {
  context.id = session.status_id;
  context.time_ms = parse_time(session.since).value_or(0);
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
