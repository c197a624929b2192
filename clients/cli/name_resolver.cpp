#include "cli/name_resolver.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "cli/style.hpp"
#include "common/host_clocks.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t label_id_bytes_max = 13;  // the time in milliseconds of ids that begin with it

// `-home-u-api` of claude/-home-u-api/2eaa…, shown until the project is known.
std::string_view directory_of_stream(std::string_view stream) {
  const std::size_t first = stream.find('/');
  if (first == stream.npos) return stream;
  const std::string_view below = stream.substr(first + 1);
  return below.substr(0, below.find('/'));
}

// Its beginning, or of a long one the end: `…-5b2`.
std::string part_of_id(std::string_view id, std::size_t bytes) {
  constexpr std::size_t shown_bytes_max = 8, end_bytes = 4;
  const std::string_view beginning = cut_utf8(id, bytes);
  if (beginning.size() <= shown_bytes_max) return std::string(beginning);
  return "…" + std::string(beginning.substr(beginning.size() - end_bytes));
}

}  // namespace

void NameResolver::observe(const Fields& frame) {
  const std::string_view type = frame.text("type");
  if (type == "welcome") {
    host_ = frame.text("host");
  } else if (type == "session") {
    observe_session(frame, frame.text("project"));
    for (const Fields& agent : frame.objects("agents"))
      observe_agent(agent.text("agent"), agent.text("agent_type"));
  } else if (type == "session.started" && frame.text("agent").empty()) {
    observe_session(frame, frame.text("project"));
  } else if (type == "session.started") {
    observe_agent(frame.text("agent"), frame.text("agent_type"));
  } else if (type == "session.updated" && frame.text("agent").empty()) {
    if (project(frame.text("session")).empty()) observe_session(frame, frame.text("cwd"));
  } else if (type == "agent.started" || type == "agent.finished") {
    observe_agent(frame.text("subagent"), frame.text("agent_type"));
  }
}

void NameResolver::observe_session(const Fields& frame, std::string_view project) {
  const std::string_view session = frame.text("session");
  if (session.empty() || project.empty()) return;
  Session& known = sessions_[session];
  if (known.project == project) return;
  known.project = project;
  known.name = last_component(project);
  known.host = frame.text("host");
  sessions_by_place_.clear();
  for (const auto& [id, each] : sessions_) ++sessions_by_place_[each.place()];
  // Ids that begin with the time differ late.
  const std::string place = known.place();
  for (const auto& [id, each] : sessions_) {
    if (id == session || each.place() != place) continue;
    const auto same = std::mismatch(id.begin(), id.end(), session.begin(), session.end()).first - id.begin();
    const std::size_t needed = std::min<std::size_t>(static_cast<std::size_t>(same) + 1, label_id_bytes_max);
    if (each.label_id_bytes < needed) sessions_[id].label_id_bytes = needed;
    known.label_id_bytes = std::max(known.label_id_bytes, needed);
  }
}

void NameResolver::observe_agent(std::string_view id, std::string_view type) {
  if (!id.empty() && !type.empty()) agents_[id] = type;
}

std::string NameResolver::label(const Fields& frame) const {
  const std::string_view id = frame.text("session");
  std::string label;
  const std::string_view host = frame.text("host");
  if (!host_.empty() && !host.empty() && host != host_) label = std::string(host) + ":";
  const Session* session = sessions_.find(id);
  if (session == nullptr) {
    const std::string_view directory = frame.text("directory");
    const std::string_view substitute =
        directory.empty() ? directory_of_stream(frame.text("stream")) : directory;
    return label + std::string(substitute.empty() ? short_id(id) : substitute);
  }
  label += session->name;
  const auto shared = sessions_by_place_.find(session->place());
  if (shared != sessions_by_place_.end() && shared->second > 1)
    label += "·" + part_of_id(id, session->label_id_bytes);
  return label;
}

std::string_view NameResolver::project(std::string_view session) const {
  const Session* known = sessions_.find(session);
  return known == nullptr ? std::string_view() : std::string_view(known->project);
}

std::string NameResolver::agent(std::string_view id) const {
  const std::string* type = agents_.find(id);
  return type == nullptr ? std::string(short_id(id)) : *type;
}

void SessionSelector::add(const Fields& frame, std::string_view json) {
  Session session{
      std::string(frame.text("session")), std::string(frame.text("host")), {}, std::string(json), 0};
  if (const auto active = parse_time(frame.text("last_activity")))
    session.activity_ms = *active + clock_offset_ms(frame);
  const std::string_view project = frame.text("project"), title = frame.text("title");
  session.description = last_component(project.empty() ? frame.text("directory") : project);
  if (!title.empty()) session.description += ": " + std::string(title);
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
  if (exact.empty()) exact = std::move(all);  // the daemon sent only sessions whose ids begin with `typed`
  if (exact.size() == 1) return {exact.front()->json, {}, false};
  if (!exact.empty()) return ambiguous(typed, std::move(exact));
  return {{},
          "no session has an id that is or begins with " + safe_text(typed) +
              "\n  List all sessions:  earshot ls --all",
          false};
}

Selection SessionSelector::last() const {
  const auto newest =
      std::max_element(sessions_.begin(), sessions_.end(),
                       [](const Session& a, const Session& b) { return a.activity_ms < b.activity_ms; });
  if (newest != sessions_.end()) return {newest->json, {}, false};
  return {{}, "there are no sessions yet, or none matches the filters", false};
}

Selection SessionSelector::ambiguous(std::string_view typed, std::vector<const Session*> sessions) {
  std::stable_sort(sessions.begin(), sessions.end(),
                   [](const Session* a, const Session* b) { return a->activity_ms > b->activity_ms; });
  const bool hosts = sessions.front()->host != sessions.back()->host;
  std::string text =
      safe_text(typed) + " matches several sessions; give more of the id" + (hosts ? ", or --host:" : ":");
  const std::int64_t now = now_ms();
  for (std::size_t i = 0; i < std::min(sessions.size(), listed_max); ++i) {
    const Session& session = *sessions[i];
    text += "\n  " + safe_text(session.id) + (hosts ? "  " + safe_text(session.host) : "");
    if (session.activity_ms > 0) text += "  " + format_age(Ms(now - session.activity_ms)) + " ago";
    constexpr std::size_t description_columns_max = 60;
    text += "  " + cut_to_width(safe_text(session.description), description_columns_max,
                                glyph(Glyph::ellipsis, charset_of_locale()));
  }
  if (sessions.size() > listed_max)
    text += "\n  and " + std::to_string(sessions.size() - listed_max) + " more";
  return {{}, text, true};
}

std::string SessionSelector::suggest(std::string_view typed) const {
  std::vector<std::string_view> beginnings;
  for (const Session& session : sessions_)
    beginnings.push_back(std::string_view(session.id).substr(0, std::max<std::size_t>(typed.size(), 4)));
  return std::string(suggest_word(typed, beginnings));
}

}  // namespace earshot::cli
