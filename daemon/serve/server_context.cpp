#include "serve/server_context.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/json_rewrite.hpp"

namespace earshot::serve {

bool is_live(const Session& session, std::chrono::milliseconds recent) {
  if (session.process_lives()) return true;
  return !session.members.empty() && wall_now_ms() - session.modified_ms() <= recent.count();
}

bool ServerContext::may_see(const Filter& allowed, const Session& session) const {
  if (allowed.empty()) return true;
  if (session.name.empty() || (!allowed.project.empty() && session.project.empty())) return false;
  SessionKeys keys = sessions.keys_of(session);
  keys.project = session.project;
  return allowed.matches_session(keys);
}

bool ServerContext::may_see_by_name(const Filter& allowed, std::string_view session) const {
  return allowed.empty() || (!session.empty() && allowed.matches_name(host_of(session), session));
}

EncodeOptions ServerContext::encoding(Audience audience) const {
  EncodeOptions options;
  options.view = view_of(audience);
  if (audience != Audience::raw) options.filter = filter;
  return options;
}

std::string ServerContext::record_text(Audience audience, const std::string& line, bool& is_json) const {
  return redact_record(line, audience == Audience::raw ? nullptr : filter, is_json);
}

}  // namespace earshot::serve
