// Remembers facts of sessions from earlier frames (project, open tool calls, cost), for the variables of
// rules.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/containers.hpp"
#include "common/frame.hpp"
#include "notifier/event_context.hpp"

namespace earshot::notifier {

class SessionCache {
 public:
  static constexpr std::size_t sessions_max = 8192;  // the oldest is evicted
  static constexpr std::size_t open_calls_max = 64;  // per session; further calls are ignored

  void update(const common::Fields& frame);

  /// The input for rules of an event or a `status` frame.
  EventContext event_context(const common::Fields& frame, std::string_view json, std::int64_t now_ms);
  /// The input for rules of the status in a session frame.
  EventContext status_context(const common::Fields& session_frame, std::string_view json,
                              std::int64_t now_ms);

  /// The id of the `host_offline` status while a hub reports the session's host as offline; otherwise empty.
  std::string_view offline_id(std::string_view session) const;

 private:
  struct Call {
    std::string call, tool, stream;
  };
  struct Session {
    std::string host, project, directory, title, model, branch;
    std::vector<Call> calls;
    std::optional<double> cost_usd;
    std::string api_status, api_error;
    std::string state, since, source, status_id;  // latest status that the host reported
    std::string offline_id;
  };
  void update_facts(const common::Fields& frame, Session& session);
  void apply_status(const common::Fields& status, Session& session, EventContext& context,
                    std::int64_t now_ms);
  void set_variables(const Session& session, EventContext& context) const;
  std::string waiting_tool(const Session& session) const;

  std::string daemon_host_;
  BoundedMap<Session, sessions_max> sessions_;
  BoundedMap<std::int64_t, sessions_max> times_;  // stream → time of its latest event with a time
};

}  // namespace earshot::notifier
