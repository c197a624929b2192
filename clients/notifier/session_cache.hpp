// What is known of the sessions that frames tell of, so that a rule may name the project, the tool, the cost.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lru_set.hpp"
#include "common/frame.hpp"
#include "notifier/event_context.hpp"

namespace earshot::notifier {

class SessionCache {
 public:
  static constexpr std::size_t sessions_max = 8192;  // the longest known is forgotten
  static constexpr std::size_t open_calls_max = 64;  // of a session; more are not followed

  void update(const common::Fields& frame);

  /// An event, or a `status` frame, as rules see it.
  EventContext subject(const common::Fields& frame, std::string_view json, std::int64_t now_ms);
  /// The status that a session frame holds.
  EventContext status_of(const common::Fields& session_frame, std::string_view json, std::int64_t now_ms);

  /// Empty, unless a hub does not hear the session's host: then the id of the subject that said so.
  std::string_view away_id(std::string_view session) const;

 private:
  struct Call {
    std::string call, tool, stream;
  };
  struct Session {
    std::string host, project, directory, title, model, branch;
    std::vector<Call> calls;
    std::optional<double> cost_usd;
    std::string api_status, api_error;
    std::string state, since, source, status_id;  // the last one that its host told
    std::string away_id;
  };
  void update_details(const common::Fields& frame, Session& session);
  void take_status(const common::Fields& status, Session& session, EventContext& subject,
                   std::int64_t now_ms);
  void name(const Session& session, EventContext& subject) const;
  std::string waiting_tool(const Session& session) const;

  std::string daemon_host_;  // the daemon's
  common::Recent<Session, sessions_max> sessions_;
  common::Recent<std::int64_t, sessions_max> times_;  // stream → of its last event that said one
};

}  // namespace earshot::notifier
