#include "cli/name_resolver.hpp"

#include <algorithm>

#include "cli/name_resolver.hpp"
#include "cli/style.hpp"
#include "common/format.hpp"

namespace earshot::cli {

void SessionSelector::add(const Fields& frame, std::string_view json) {
  Session session{std::string(frame.text("session")),
                  std::string(frame.text("host")),
                  {},
                  std::string(json),
                  parse_time(frame.text("last_activity")).value_or(0)};
  const std::string_view project = frame.text("project"), title = frame.text("title");
  session.about = last_component(project.empty() ? frame.text("directory") : project);
  if (!title.empty()) session.about += ": " + std::string(title);
  // A newer frame of the same session replaces the older one.
  const auto same = std::find_if(sessions_.begin(), sessions_.end(), [&](const Session& other) {
    return other.id == session.id && other.host == session.host;
  });
  if (same == sessions_.end()) {
    sessions_.push_back(std::move(session));
  } else {
    *same = std::move(session);
  }
}

Selection SessionSelector::named(std::string_view typed) const {
  std::vector<const Session*> exact, all;
  for (const Session& session : sessions_) {
    all.push_back(&session);
    if (session.id == typed) exact.push_back(&session);
  }
  if (exact.empty()) exact = std::move(all);  // the daemon sent only those that fit
  if (exact.size() == 1) return {exact.front()->json, {}, false};
  if (!exact.empty()) return ambiguous(typed, std::move(exact));
  return {{},
          "no session's id is or begins with " + safe_text(typed) + "; all are listed by:  earshot ls --all",
          false};
}

Selection SessionSelector::last() const {
  const auto newest =
      std::max_element(sessions_.begin(), sessions_.end(),
                       [](const Session& a, const Session& b) { return a.activity_ms < b.activity_ms; });
  if (newest != sessions_.end()) return {newest->json, {}, false};
  return {{}, "there is no session yet, or none fits the filters", false};
}

Selection SessionSelector::ambiguous(std::string_view typed, std::vector<const Session*> sessions) {
  std::stable_sort(sessions.begin(), sessions.end(),
                   [](const Session* a, const Session* b) { return a->activity_ms > b->activity_ms; });
  const bool hosts = sessions.front()->host != sessions.back()->host;
  std::string text =
      safe_text(typed) + " could be each of these; say more of the id" + (hosts ? ", or --host:" : ":");
  const std::int64_t now = now_ms();
  for (std::size_t i = 0; i < std::min(sessions.size(), listed_max); ++i) {
    const Session& session = *sessions[i];
    text += "\n  " + safe_text(session.id) + (hosts ? "  " + safe_text(session.host) : "");
    if (session.activity_ms > 0) text += "  " + format_age(now - session.activity_ms) + " ago";
    text += "  " + safe_text(session.about);
  }
  if (sessions.size() > listed_max)
    text += "\n  and " + std::to_string(sessions.size() - listed_max) + " more";
  return {{}, text, true};
}

}  // namespace earshot::cli
