#include "team/subjects.hpp"

#include <algorithm>

#include "agents/stream_name.hpp"

namespace earshot::team {
namespace {

constexpr std::string_view events = "earshot.v1.", statuses = "earshot.status.v1.",
                           reads = "earshot.read.v1.";

/// The prefix `<root>/[conversations/]<directory>` of a longer name; empty if it has none.
std::string_view project_of(std::string_view stream) {
  std::size_t end = 0;
  const auto component = [&] {
    const std::size_t begin = end == 0 ? 0 : end + 1;
    end = stream.find('/', begin);
    return end == stream.npos ? std::string_view() : stream.substr(begin, end - begin);
  };
  component();  // the root
  if (end == stream.npos) return {};
  const std::string_view first = component();
  if (end != stream.npos && is_directory_prefix(first)) component();
  return end == stream.npos ? std::string_view() : stream.substr(0, end);
}

}  // namespace

bool is_host(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= host_bytes_max && std::all_of(name.begin(), name.end(), fits);
}

std::string main_subject(std::string_view host, std::string_view stream) {
  const std::string_view project = project_of(stream);
  const std::string_view rest = project.empty() ? project : stream.substr(project.size() + 1);
  if (rest.empty() || rest.find('/') != rest.npos) return {};
  return std::string(events) + escape_token(host) + '.' + escape_token(project) + '.' + escape_token(rest);
}
std::string event_subject(std::string_view host, std::string_view session, std::string_view stream) {
  const std::string main = main_subject(host, stream);
  if (!main.empty() && stream.substr(stream.rfind('/') + 1) == session) return main;
  return std::string(events) + escape_token(host) + '.' + escape_token(project_of(stream)) + '.' +
         escape_token(session) + '.' + escape_token(stream);
}
bool is_subject_of(std::string_view subject, std::string_view host, std::string_view stream) {
  if (!subject.empty() && subject == main_subject(host, stream)) return true;
  const auto tokens = tokens_of(subject);
  return tokens && tokens->host == escape_token(host) && tokens->stream == escape_token(stream);
}
std::string all_events() { return std::string(events) + '>'; }
std::string events_of(std::string_view host) { return std::string(events) + escape_token(host) + ".>"; }
std::string status_subject(std::string_view host, std::string_view session) {
  return std::string(statuses) + escape_token(host) + '.' + escape_token(session);
}
std::string heartbeat_subject(std::string_view host) { return std::string(statuses) + escape_token(host); }
std::string all_statuses() { return std::string(statuses) + '>'; }
std::string read_subject(std::string_view host) { return std::string(reads) + escape_token(host); }

std::optional<SubjectTokens> tokens_of(std::string_view subject) {
  if (!subject.starts_with(events)) return {};
  subject.remove_prefix(events.size());
  std::string_view tokens[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const auto dot = subject.find('.');
    tokens[i] = subject.substr(0, dot);
    if (tokens[i].empty() || (dot == subject.npos) != (i == 3)) return {};
    if (dot != subject.npos) subject.remove_prefix(dot + 1);
  }
  return SubjectTokens{tokens[0], tokens[3]};
}

std::string message_id(std::string_view host, std::string_view stream, std::string_view cursor,
                       std::string_view history) {
  std::string id(host);
  id += '/';
  id += stream;
  id += '/';
  id += cursor;
  if (!history.empty()) id.append(1, '#').append(history);
  return id;
}

std::optional<IdParts> parts_of_id(std::string_view host, std::string_view id) {
  if (!id.starts_with(host) || id.size() <= host.size() || id[host.size()] != '/') return {};
  id.remove_prefix(host.size() + 1);
  const auto slash = id.rfind('/');
  if (slash == id.npos) return {};
  const std::string_view cursor = id.substr(slash + 1);
  const auto hash = cursor.find('#');
  return IdParts{id.substr(0, slash), cursor.substr(0, hash),
                 hash == cursor.npos ? std::string_view() : cursor.substr(hash + 1)};
}

}  // namespace earshot::team
