#include "serve/server_context.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/json_rewrite.hpp"

namespace earshot::serve {

bool is_live(const Session& session, std::chrono::milliseconds recent) {
  if (session.process_lives()) return true;
  return !session.members.empty() && watch::wall_now_ms() - session.modified_ms() <= recent.count();
}

Position ServerContext::first() const {
  Position first = head();
  for (const AudienceLog& each : logs) first = std::min(first, each.log.first());
  return first;
}

std::size_t ServerContext::event_connections() const {
  std::size_t sum = 0;
  for (const AudienceLog& each : logs) sum += each.readers;
  return sum;
}

bool ServerContext::may_see(const Filter& allowed, const Session& session) const {
  if (allowed.empty()) return true;
  if (session.name.empty() || (!allowed.project.empty() && session.project.empty())) return false;
  return allowed.matches_session(host_of(session.name), session.name, session.project);
}

bool ServerContext::may_see_by_name(const Filter& allowed, std::string_view session) const {
  if (allowed.empty()) return true;
  Filter by_name = allowed;
  by_name.project.clear();
  return !session.empty() && by_name.matches_session(host_of(session), session, {});
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
