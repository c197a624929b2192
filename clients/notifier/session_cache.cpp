#include "notifier/session_cache.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "common/format.hpp"
#include "notifier/notice.hpp"

namespace earshot::notifier {
namespace {

using common::Fields;

// Calls that run subagents are open while the subagent asks; they are not the tool that needs permission.
constexpr std::array<std::string_view, 2> agent_tools{"Agent", "Task"};

void learn_text(std::string& known, std::string_view said) {
  if (!said.empty()) known = said;
}

std::optional<double> number(const Fields& fields, std::string_view key) {
  const auto element = fields.get(key);
  double value = 0;
  if (!element || element->get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

// A hub reports this status for the sessions of an offline host.
bool says_away(const Fields& status) {
  return status.text("state") == "unknown" && status.text("reason") == "host_offline";
}

std::string said_number(const Fields& fields, std::string_view key) {
  const auto value = fields.integer(key);
  return value ? std::to_string(*value) : std::string();
}

// Variables with the name of a member of the frame.
constexpr std::array<std::string_view, 13> plain{"tool",   "outcome", "origin", "agent_type",  "model",
                                                 "prompt", "text",    "output", "description", "summary",
                                                 "error",  "state",   "reason"};
// Members that distinguish events of the same type, turn and time.
constexpr std::array<std::string_view, 8> telling{"agent",   "call",    "task",        "subagent",
                                                  "message", "outcome", "duration_ms", "attempt"};

}  // namespace

void SessionCache::update(const Fields& frame) {
  if (frame.text("type") == "welcome") daemon_host_ = frame.text("host");
  const std::string_view id = frame.text("session");
  if (id.empty()) return;
  Session& session = sessions_[id];
  learn_text(session.host, frame.text("host"));
  update_details(frame, session);
}

void SessionCache::update_details(const Fields& frame, Session& session) {
  const std::string_view type = frame.text("type");
  const std::string_view stream = frame.text("stream");
  const bool main = frame.text("agent").empty();
  if (type == "session") {
    learn_text(session.project, frame.text("project"));
    learn_text(session.directory, frame.text("directory"));
    learn_text(session.branch, frame.text("git_branch"));
    learn_text(session.model, frame.text("model"));
    learn_text(session.title, frame.text("title"));
    if (const auto cost = number(frame.object("usage"), "cost_usd")) session.cost_usd = cost;
    session.calls.clear();
    for (const Fields& tool : frame.objects("tools"))
      session.calls.push_back({std::string(tool.text("call")), std::string(tool.text("tool")), {}});
    for (const Fields& agent : frame.objects("agents")) {
      for (const Fields& tool : agent.objects("tools"))
        session.calls.push_back({std::string(tool.text("call")), std::string(tool.text("tool")), {}});
    }
  } else if ((type == "session.started" || type == "session.updated") && main) {
    if (session.project.empty()) {
      learn_text(session.project, frame.text("project"));
      if (session.project.empty()) learn_text(session.project, frame.text("cwd"));
    }
    learn_text(session.branch, frame.text("git_branch"));
    learn_text(session.model, frame.text("model"));
    learn_text(session.title, frame.text("title"));
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
    session.api_status = said_number(frame, "status");
  }
}

std::string SessionCache::waiting_tool(const Session& session) const {
  std::string tool;
  for (const Call& each : session.calls) {
    if (std::find(agent_tools.begin(), agent_tools.end(), each.tool) != agent_tools.end()) continue;
    if (!tool.empty() && tool != each.tool) return {};
    tool = each.tool;
  }
  return tool;
}

void SessionCache::name(const Session& session, EventContext& subject) const {
  auto& words = subject.words;
  const auto set = [&](const char* key, std::string_view value) {
    if (!value.empty() && !words.contains(key)) words[key] = value;
  };
  set("type", subject.type);
  set("host", subject.host);
  if (!daemon_host_.empty() && subject.host != daemon_host_) set("elsewhere", subject.host);
  set("session", subject.session);
  set("short", common::short_id(subject.session));
  set("agent", subject.agent);
  set("project", session.project.empty() ? session.directory : session.project);
  set("name", common::last_component(words["project"]));
  if (words["name"].empty()) words["name"] = common::short_id(subject.session);
  set("branch", session.branch);
  set("model", session.model);
  set("title", session.title);
  set("api_status", session.api_status);
  if (subject.duration_ms)
    set("duration", format_duration(common::Ms(static_cast<std::int64_t>(*subject.duration_ms))));
  if (session.cost_usd) {
    char text[32];
    std::snprintf(text, sizeof text, "$%.2f", *session.cost_usd);
    subject.cost_usd = session.cost_usd;
    set("cost", text);
  }
}

std::string_view SessionCache::away_id(std::string_view session) const {
  const Session* const known = sessions_.find(session);
  return known == nullptr ? std::string_view() : std::string_view(known->away_id);
}

EventContext SessionCache::subject(const Fields& frame, std::string_view json, std::int64_t now_ms) {
  EventContext subject;
  subject.type = frame.text("type");
  subject.host = frame.text("host");
  subject.session = frame.text("session");
  subject.stream = frame.text("stream");
  subject.agent = frame.text("agent");
  subject.frame = json;
  Session& session = sessions_[subject.session];
  if (subject.type == "status") {
    take_status(frame, session, subject, now_ms);
    return subject;
  }
  const auto time = parse_time(frame.text("time"));
  std::int64_t& last = times_[subject.stream];
  if (time) last = *time;
  subject.time_ms = time.value_or(last);
  if (const auto ms = number(frame, "duration_ms")) subject.duration_ms = ms;
  subject.fatal = frame.flag("fatal");
  for (const std::string_view key : plain) {
    if (const std::string_view text = frame.text(key); !text.empty()) subject.words[std::string(key)] = text;
  }
  for (const std::string_view key : {"turn", "tools"}) {
    if (frame.integer(key)) subject.words[std::string(key)] = std::to_string(*frame.integer(key));
  }
  subject.words["time"] = frame.text("time");
  name(session, subject);
  // A fork copies earlier events with their times, so the stream is not part of the identity.
  std::string told = subject.type + '\n' + subject.host + '\n' + subject.words["turn"] + '\n';
  told += time ? std::string(frame.text("time")) : subject.stream + '\n' + std::string(frame.text("cursor"));
  for (const std::string_view key : telling) {
    told += '\n';
    told += frame.text(key);
    told += said_number(frame, key);
  }
  subject.id = digest(told);
  return subject;
}

EventContext SessionCache::status_of(const Fields& frame, std::string_view json, std::int64_t now_ms) {
  EventContext subject;
  subject.type = "status";
  subject.host = frame.text("host");
  subject.session = frame.text("session");
  subject.frame = json;
  take_status(frame.object("status"), sessions_[subject.session], subject, now_ms);
  return subject;
}

// The daemon repeats a status with more detail or from another source: it keeps its id.
void SessionCache::take_status(const Fields& status, Session& session, EventContext& subject,
                               std::int64_t now_ms) {
  const std::string_view state = status.text("state"), since = status.text("since"),
                         source = status.text("source");
  session.away_id.clear();
  if (says_away(status)) {  // keep the reported status: it is valid again when the host is back
    session.away_id = digest("away\n" + subject.host + '\n' + subject.session + '\n' + std::string(since));
    subject.id = session.away_id;
    subject.time_ms = parse_time(since).value_or(0);
    subject.words["state"] = state;
    subject.words["reason"] = status.text("reason");
    subject.words["time"] = since;
    return name(session, subject);
  }
  const bool same = !session.status_id.empty() && session.state == state &&
                    (since.empty() || since == session.since || source != session.source);
  if (!same) {
    session.state = state;
    session.since = since;
    const std::string when = since.empty() ? std::to_string(now_ms) : std::string(since);
    session.status_id =
        digest("status\n" + subject.host + '\n' + subject.session + '\n' + session.state + '\n' + when);
  }
  session.source = source;
  subject.id = session.status_id;
  subject.time_ms = parse_time(session.since).value_or(0);
  subject.words["state"] = state;
  for (const char* key : {"reason", "detail"}) {
    if (const std::string_view text = status.text(key); !text.empty()) subject.words[key] = text;
  }
  subject.words["time"] = session.since;
  if (status.text("reason") == "permission") subject.words["tool"] = waiting_tool(session);
  name(session, subject);
}

}  // namespace earshot::notifier
