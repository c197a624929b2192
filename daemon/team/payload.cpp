#include "team/payload.hpp"

#include <simdjson.h>

#include <algorithm>

#include "base/hex.hpp"
#include "base/json_scan.hpp"
#include "base/json_rewrite.hpp"
#include "base/json_writer.hpp"
#include "base/text_filter.hpp"
#include "base/text.hpp"
#include "core/cursor.hpp"

namespace earshot::team {
namespace {

using dom::element;

status::Status status_of(const element& json) {
  const auto text = [&](std::string_view key) { return std::string(dom::text_of(json, key)); };
  return {text("state"), text("reason"), text("detail"), text("source"), text("since")};
}

void append_member(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  out += out.empty() ? "{" : ",";
  append_json_string(out, key);
  out += ':';
  append_json_string(out, value);
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

std::string reset_payload(const Frame& frame, std::string_view last) {
  std::string out;
  append_member(out, "type", "reset");
  append_member(out, "host", frame.host);
  append_member(out, "stream", frame.stream);
  append_member(out, "session", frame.session);
  append_member(out, "reason", frame.reason.empty() ? "rewritten" : frame.reason);
  append_member(out, "last", last);
  return out + '}';
}

std::string removed_payload(const Frame& frame, std::string_view session) {
  std::string out;
  append_member(out, "type", "stream.removed");
  append_member(out, "host", frame.host);
  append_member(out, "stream", frame.stream);
  append_member(out, "session", session);
  return out + '}';
}

std::string status_payload(std::string_view host, std::string_view session, const status::Status& status) {
  std::string out;
  append_member(out, "type", "status");
  append_member(out, "host", host);
  append_member(out, "session", session);
  append_member(out, "state", status.state);
  append_member(out, "reason", status.reason);
  append_member(out, "detail", status.detail);
  append_member(out, "source", status.source);
  append_member(out, "since", status.since);
  return out + '}';
}

std::string heartbeat_payload(const Heartbeat& heartbeat) {
  std::string out;
  append_member(out, "type", "host");
  append_member(out, "host", heartbeat.host);
  append_member(out, "owner", heartbeat.owner);
  append_member(out, "instance", heartbeat.instance);
  return out + R"(,"beat_ms":)" + std::to_string(heartbeat_ms) + '}';
}

std::string owner_id(std::uint64_t hash_key) {
  PrefixHash hash(hash_key);
  hash.add_line(std::string_view("who publishes\n"));  // constant: it is part of published ids
  std::string id;
  append_hex(id, hash.value());
  return id;
}

}  // namespace earshot::team
