#include "cli/name_resolver.hpp"

namespace earshot::cli {
namespace {

constexpr std::size_t label_id_bytes = 4;

// `-home-u-api` of claude/-home-u-api/2eaa…: stands for the project until it is known.
std::string_view directory_of_stream(std::string_view stream) {
  const std::size_t first = stream.find('/');
  if (first == stream.npos) return stream;
  const std::string_view below = stream.substr(first + 1);
  return below.substr(0, below.find('/'));
}

}  // namespace

void NameResolver::learn(const Fields& frame) {
  const std::string_view type = frame.text("type");
  if (type == "welcome") {
    host_ = frame.text("host");
  } else if (type == "session") {
    learn_session(frame, frame.text("project"));
    for (const Fields& agent : frame.objects("agents"))
      learn_agent(agent.text("agent"), agent.text("agent_type"));
  } else if (type == "session.started" && frame.text("agent").empty()) {
    learn_session(frame, frame.text("project"));
  } else if (type == "session.updated" && frame.text("agent").empty()) {
    if (project(frame.text("session")).empty()) learn_session(frame, frame.text("cwd"));
  } else if (type == "agent.started" || type == "agent.finished") {
    learn_agent(frame.text("subagent"), frame.text("agent_type"));
  }
}

void NameResolver::learn_session(const Fields& frame, std::string_view project) {
  const std::string_view session = frame.text("session");
  if (session.empty() || project.empty()) return;
  Session& known = sessions_[session];
  if (known.project == project) return;
  known.project = project;
  known.name = last_component(project);
  known.host = frame.text("host");
  sharing_.clear();
  for (const auto& [id, each] : sessions_) ++sharing_[each.place()];
}

void NameResolver::learn_agent(std::string_view id, std::string_view type) {
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
    const std::string_view stand_in =
        directory.empty() ? directory_of_stream(frame.text("stream")) : directory;
    return label + std::string(stand_in.empty() ? short_id(id) : stand_in);
  }
  label += session->name;
  const auto sharing = sharing_.find(session->place());
  if (sharing != sharing_.end() && sharing->second > 1)
    label += "·" + std::string(id.substr(0, label_id_bytes));
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

}  // namespace earshot::cli
