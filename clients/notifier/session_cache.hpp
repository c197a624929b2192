// One frame as input for rules: its type, its origin, and the variables of templates and conditions. Facts of
// sessions (project, open tool calls, cost) are remembered from earlier frames.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/containers.hpp"
#include "base/text_filter.hpp"
#include "common/frame.hpp"
#include "common/host_clocks.hpp"

namespace earshot::notifier {

/// The variables of templates.
constexpr std::string_view meta_variables[] = {
    "type",     "name",   "project", "host",  "elsewhere",  "program",    "other_program", "session",
    "short",    "branch", "model",   "turn",  "state",      "reason",     "tool",          "outcome",
    "duration", "cost",   "tools",   "agent", "agent_type", "api_status", "api_kind",      "used",
    "window",   "resets", "origin",  "time",  "link",       "context",    "turns",         "waited"};
/// Session text: only in the full view.
constexpr std::string_view text_variables[] = {"title", "prompt", "text",        "detail",
                                               "error", "output", "description", "summary"};
bool contains(std::span<const std::string_view> names, std::string_view name);

struct EventContext {
  std::string type;  // of the event, or `status`
  std::string host, session, stream, agent;
  std::string id;            // equal for repeats and copies of the same event
  std::int64_t time_ms = 0;  // 0: unknown
  std::optional<double> duration_ms, cost_usd, used_percent, context_percent;
  bool fatal = false;
  bool is_headless = false;      // of `done`: no person is at a terminal
  bool is_next_request = false;  // of `status`: the session waited for another request until now
  bool is_restated = false;      // it was evaluated before, with other figures
  bool is_daemon_known = false;  // `elsewhere` is only empty on the daemon's own host
  std::map<std::string, std::string, std::less<>> values;
  std::string frame;  // the JSON as received

  /// The value of a variable; empty: unknown, or not part of this view.
  std::string value(std::string_view name, View view) const;
};

/// The frame, without session text in the meta view; `{}` if it is not a JSON object.
std::string frame_for(std::string_view frame, View view);

class SessionCache {
 public:
  static constexpr std::size_t sessions_max = 8192;  // the oldest is evicted
  static constexpr std::size_t open_calls_max = 64;  // per session; further calls are ignored

  /// The address of the page of a daemon that does not state it; empty: unknown.
  void set_page(std::string url) { page_ = default_page_ = std::move(url); }

  /// Returns whether variables of the session's status may have changed.
  bool update(const common::Fields& frame);

  /// The input for rules of an event, a `status` frame, or the status in a `session` frame.
  EventContext event_context(const common::Fields& frame, std::string_view json, std::int64_t now_ms);
  /// What a `status` or `session` frame states as done; absent: nothing. `context`: event_context() of the
  /// frame.
  std::optional<EventContext> done_context(const common::Fields& frame, const EventContext& context) const;
  /// What a `session` frame states of the account's limits and no earlier frame did, as limits.updated
  /// without a frame: the status line of a program causes no events.
  std::vector<EventContext> limit_contexts(const common::Fields& frame, std::int64_t now_ms);
  /// The latest status again, with what became known since, without a frame. Nothing while the host is
  /// offline.
  std::optional<EventContext> current_status(std::string_view session) const;

  /// The id of the `host_offline` status while a hub reports the session's host as offline; otherwise empty.
  std::string_view offline_id(std::string_view session) const;

  /// How full the context of the main stream is; absent: unknown.
  std::optional<double> context_percent(std::string_view session) const;
  /// The cost and the context that a `session` frame states.
  void update_figures(const common::Fields& frame);
  /// The present ones of the event's session.
  void set_figures(EventContext& context) const;

 private:
  struct Call {
    std::string call, tool, stream;
  };
  struct Session {
    std::string host, program, project, directory, title, model, branch;
    std::vector<Call> calls;
    std::optional<double> cost_usd;
    bool is_cost_estimated = false;                        // as a whole or in part
    std::optional<double> context_tokens, context_window;  // of the main stream
    std::string context_model;                             // to which the window belongs
    std::string api_status, api_kind;
    std::string state, reason, detail, since, request,
        status_id;  // latest status that the host reported
    std::string offline_id;
    void set_cost(double usd, std::string_view source) {
      cost_usd = usd;
      is_cost_estimated = source == "estimated" || source == "mixed";
    }
  };
  bool update_facts(const common::Fields& frame, Session& session);
  void apply_status(const common::Fields& status, Session& session, EventContext& context,
                    std::int64_t now_ms);
  void set_status(const Session& session, EventContext& context) const;
  void set_variables(const Session& session, EventContext& context) const;
  static void set_figures(const Session& session, EventContext& context);
  static void update_figures(const common::Fields& frame, Session& session);
  /// The variables of a limits.updated, from the window of which most is used.
  /// None of a period that is over.
  void set_limits(const common::Fields& limits, const Session& session, EventContext& context,
                  std::int64_t now_ms);
  /// Whether these limits are newer than those of earlier frames.
  bool note_limits(const common::Fields& limits, const Session& session, std::int64_t time_ms);
  static std::optional<double> percent_of(const Session& session);
  static void update_context(const common::Fields& frame, Session& session);
  std::string waiting_tool(const Session& session) const;
  /// A time of the host, by this machine's clock; 0: unknown.
  std::int64_t adjust_time(std::string_view host, std::optional<std::int64_t> time_ms) const;

  std::string daemon_host_;
  std::string page_, default_page_;
  BoundedMap<Session, sessions_max> sessions_;
  common::HostClocks clocks_;
  BoundedMap<std::int64_t, sessions_max> limit_resets_;  // by name of the window: as first stated
  BoundedMap<std::int64_t, sessions_max> limit_times_;   // host, program and limit → their latest time
  BoundedMap<std::int64_t, sessions_max> times_;         // stream → time of its latest event with a time
};

}  // namespace earshot::notifier
