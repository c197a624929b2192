#include "relay/names.hpp"

#include <algorithm>

#include "tail/told_names.hpp"

namespace earshot::relay {
namespace {

constexpr std::string_view events = "earshot.v1.", statuses = "earshot.status.v1.",
                           reads = "earshot.read.v1.";

/// `<root>/[conversations/]<directory>/…`: the directory; empty: there is none.
std::string_view directory_of(std::string_view stream) {
  const auto component = [&] {
    const auto slash = stream.find('/');
    const std::string_view first = stream.substr(0, slash);
    stream = slash == stream.npos ? std::string_view{} : stream.substr(slash + 1);
    return first;
  };
  component();  // the root
  std::string_view first = component();
  if (first == tail::directory_of(tail::Hall::conversations)) first = component();
  return stream.empty() ? std::string_view{} : first;
}

}  // namespace

bool is_host(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  };
  return !name.empty() && name.size() <= host_bytes_max && std::all_of(name.begin(), name.end(), fits);
}

std::string event_subject(std::string_view host, std::string_view session, std::string_view stream) {
  return std::string(events) + tail::word(host) + '.' + tail::word(directory_of(stream)) + '.' +
         tail::word(session) + '.' + tail::word(stream);
}
std::string all_events() { return std::string(events) + '>'; }
std::string events_of(std::string_view host) { return std::string(events) + tail::word(host) + ".>"; }
std::string status_subject(std::string_view host, std::string_view session) {
  return std::string(statuses) + tail::word(host) + '.' + tail::word(session);
}
std::string beat_subject(std::string_view host) { return std::string(statuses) + tail::word(host); }
std::string all_statuses() { return std::string(statuses) + '>'; }
std::string read_subject(std::string_view host) { return std::string(reads) + tail::word(host); }

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

}  // namespace earshot::relay
