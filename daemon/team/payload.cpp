#include "team/payload.hpp"

#include <simdjson.h>

#include <algorithm>

#include "agents/stream_name.hpp"
#include "base/hex.hpp"
#include "base/json_rewrite.hpp"
#include "base/json_scan.hpp"
#include "base/text.hpp"
#include "base/text_filter.hpp"

namespace earshot::team {
namespace {

using dom::element;

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

status::Status status_of(const element& json) {
  const auto text = [&](std::string_view key) { return std::string(dom::text_of(json, key)); };
  return {text("state"), text("reason"), text("detail"), text("source"), text("since")};
}

/// Appends the first elements of a list that fit.
void append_list_prefix(std::string& out, const simdjson::dom::array& list, std::size_t bytes_max) {
  const std::size_t begin = out.size();
  out += '[';
  for (const element each : list) {
    const std::string text = simdjson::minify(each);
    if (out.size() - begin + text.size() + 2 > bytes_max) break;
    if (out.back() != '[') out += ',';
    out += text;
  }
  out += ']';
}

// Adds what the event's own `truncated` has for the member `name`, and, if `nested`, for texts in it.
void add_truncated(TruncatedPaths& truncated, const element& event, std::string_view name, bool nested) {
  simdjson::dom::object paths;
  const auto member = dom::member(event, "truncated");
  if (!member || member->get_object().get(paths)) return;
  std::string path;
  append_path_name(path, name);
  for (const auto each : paths) {
    const bool below =
        each.key.size() > path.size() && each.key.starts_with(path) && each.key[path.size()] == '/';
    if (each.key != path && !(nested && below)) continue;
    if (const auto bytes = dom::as_count(each.value))
      truncated.add(nested ? each.key : std::string_view{}, *bytes);
  }
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

// --- Payloads ---

bool is_common_member(std::string_view key) {
  constexpr std::string_view common_members[] = {"type",  "host",   "stream", "session",
                                                 "agent", "cursor", "time",   "turn"};
  return std::find(std::begin(common_members), std::end(common_members), key) != std::end(common_members);
}

std::optional<Frame> read_frame(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  element json;
  if (parser.parse(text.data(), text.size(), true).get(json) || !json.is_object()) return {};
  Frame frame;
  struct Field {
    std::string_view key;
    std::string Frame::*member;
  };
  constexpr Field fields[] = {
      {"type", &Frame::type},       {"host", &Frame::host},        {"stream", &Frame::stream},
      {"session", &Frame::session}, {"time", &Frame::time},        {"id", &Frame::id},
      {"reason", &Frame::reason},   {"code", &Frame::code},        {"message", &Frame::message},
      {"owner", &Frame::owner},     {"instance", &Frame::instance}};
  for (const Field& each : fields) frame.*each.member = dom::text_of(json, each.key);
  if (frame.type.empty()) return {};
  if (const std::string_view cursor = dom::text_of(json, "cursor"); !cursor.empty())
    frame.cursor = parse_cursor(cursor);
  simdjson::dom::array list;
  if (const auto cursors = dom::member(json, "cursors"); cursors && !cursors->get_array().get(list))
    for (const element each : list) frame.cursors.emplace_back(dom::as_text(each));
  if (frame.type == "status") frame.status = status_of(json);
  if (const auto status = dom::member(json, "status"); frame.type == "session" && status)
    frame.status = status_of(*status);
  return frame;
}

bool is_last_part(std::string_view payload) {
  simdjson::dom::parser parser;
  element json;
  if (parser.parse(payload.data(), payload.size(), true).get(json)) return true;
  return dom::count_of(json, "part") == dom::count_of(json, "parts");
}

std::string shorten_event(std::string_view payload, std::size_t bytes_max) {
  if (payload.size() <= bytes_max) return std::string(payload);
  simdjson::dom::parser parser;
  element json;
  simdjson::dom::object object;
  if (parser.parse(payload.data(), payload.size(), true).get(json) || json.get_object().get(object))
    return {};
  // The longest members shrink until the event fits, by half each round; in the last round only the common
  // ones remain.
  constexpr std::size_t member_bytes_min = 64;
  constexpr std::size_t shown_bytes = 4096;
  for (std::size_t member_bytes_max = 64 << 10;; member_bytes_max /= 2) {
    const bool common_only = member_bytes_max < member_bytes_min;
    TruncatedPaths truncated;
    std::string out = "{";
    for (const auto field : object) {
      if (field.key == "truncated" || (common_only && !is_common_member(field.key))) continue;
      if (out.size() > 1) out += ',';
      append_json_string(out, field.key);
      out += ':';
      const std::string value = simdjson::minify(field.value);
      simdjson::dom::array list;
      if (common_only || value.size() <= member_bytes_max) {
        add_truncated(truncated, json, field.key, true);
        out += value;
      } else if (!field.value.get_array().get(list)) {
        add_truncated(truncated, json, field.key, true);
        append_list_prefix(out, list, member_bytes_max);
      } else {
        const std::size_t text_bytes_max = std::min(shown_bytes, member_bytes_max);
        const TruncatedPaths::Scope scope(truncated, field.key);
        const bool is_text = field.value.is_string();
        append_json_string(out, cut_utf8(is_text ? dom::as_text(field.value) : value, text_bytes_max));
        add_truncated(truncated, json, field.key, false);
        truncated.add({}, is_text ? dom::as_text(field.value).size() : value.size());
      }
    }
    truncated.append_member(out);
    out += '}';
    if (out.size() <= bytes_max || common_only) return out;
  }
}

std::string json_object(std::initializer_list<JsonMember> members) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  for (const JsonMember& each : members)
    if (each.json != R"("")") json.raw_member(each.key, each.json);
  json.end_object();
  return out;
}

std::string reset_payload(const Frame& frame, std::string_view last) {
  return json_object({{"type", "reset"},
                      {"host", frame.host},
                      {"stream", frame.stream},
                      {"session", frame.session},
                      {"reason", frame.reason.empty() ? "rewritten" : frame.reason},
                      {"last", last}});
}

std::string removed_payload(const Frame& frame, std::string_view session) {
  return json_object(
      {{"type", "stream.removed"}, {"host", frame.host}, {"stream", frame.stream}, {"session", session}});
}

std::string status_payload(std::string_view host, std::string_view session, const status::Status& status) {
  return json_object({{"type", "status"},
                      {"host", host},
                      {"session", session},
                      {"state", status.state},
                      {"reason", status.reason},
                      {"detail", status.detail},
                      {"source", status.source},
                      {"since", status.since}});
}

std::string heartbeat_payload(const Heartbeat& heartbeat) {
  return json_object({{"type", "host"},
                      {"host", heartbeat.host},
                      {"owner", heartbeat.owner},
                      {"instance", heartbeat.instance},
                      {"beat_ms", heartbeat_ms}});
}

std::string owner_id(std::uint64_t hash_key) {
  PrefixHash hash(hash_key);
  hash.add_line(std::string_view("who publishes\n"));  // constant: it is part of published ids
  std::string id;
  append_hex(id, hash.value());
  return id;
}

}  // namespace earshot::team
