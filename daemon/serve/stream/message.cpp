#include "serve/stream/message.hpp"

#include <simdjson.h>

#include "core/event_json.hpp"

namespace earshot::serve::message {
namespace {

namespace dom = simdjson::dom;

Invalid bad(std::string_view id, std::string text) {
  return {std::string(id), "bad_message", std::move(text)};
}

/// True when the field is there and of this type; a field of another type is told in `wrong`.
template <class T>
bool read(const dom::object& object, std::string_view key, T& to, std::string& wrong) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return false;
  if (element.get(to) == simdjson::SUCCESS) return true;
  if (wrong.empty()) wrong = "`" + std::string(key) + "` has the wrong type";
  return false;
}

struct Key {
  std::string_view name;
  std::vector<std::string> Filter::*list;
};
constexpr Key keys[] = {{"project", &Filter::project},
                        {"session", &Filter::session},
                        {"host", &Filter::host},
                        {"type", &Filter::type}};

/// Empty: the filter is read. Otherwise what is wrong with it.
std::string read_filter(const dom::object& object, Filter& filter) {
  for (const auto& [name, value] : object) {
    const Key* key = nullptr;
    for (const Key& candidate : keys) {
      if (candidate.name == name) key = &candidate;
    }
    if (!key) return "a filter has the keys project, session, host and type";
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return "a filter's key has a list of patterns";
    if (list.size() > Filter::patterns_max) return "more than 64 patterns in a key";
    auto& patterns = filter.*(key->list);
    patterns.clear();  // of two equal keys the last one wins
    for (dom::element item : list) {
      std::string_view pattern;
      if (item.get(pattern) != simdjson::SUCCESS) return "a pattern is a string";
      if (pattern.size() > Filter::pattern_bytes_max) return "a pattern is longer than 256 bytes";
      patterns.emplace_back(pattern);
    }
  }
  return {};
}

Message read_hello(const dom::object& object, std::string_view id) {
  std::string_view token, client;
  std::string wrong;
  read(object, "token", token, wrong);
  read(object, "client", client, wrong);
  std::string_view view = "full";
  read(object, "view", view, wrong);
  if (!wrong.empty()) return bad(id, std::move(wrong));
  if (view != "full" && view != "meta") return bad(id, "`view` is `full` or `meta`");
  return Hello{std::string(token), std::string(client), view == "meta"};
}

Message read_subscribe(const dom::object& object, std::string_view id) {
  Subscribe subscribe;
  subscribe.id = id;
  std::string wrong;
  std::string_view deliver = "events";
  read(object, "deliver", deliver, wrong);
  read(object, "snapshot", subscribe.snapshot, wrong);
  read(object, "all", subscribe.all, wrong);
  std::string_view on_lag = "snapshot";
  read(object, "on_lag", on_lag, wrong);
  dom::array after;
  if (read(object, "after", after, wrong)) {
    subscribe.after.emplace();
    for (const dom::element item : after) {
      std::string_view place;
      if (item.get(place) != simdjson::SUCCESS) return bad(id, "`after` is a list of strings");
      subscribe.after->emplace_back(place);
    }
  }
  if (!wrong.empty()) return bad(id, std::move(wrong));
  if (deliver != "events" && deliver != "state") return bad(id, "`deliver` is `events` or `state`");
  subscribe.state = deliver == "state";
  if (on_lag != "snapshot" && on_lag != "catch_up") return bad(id, "`on_lag` is `snapshot` or `catch_up`");
  subscribe.catch_up = on_lag == "catch_up";
  if (subscribe.state && subscribe.after) return bad(id, "`after` goes with `deliver` `events`");
  dom::object filter;
  if (read(object, "filter", filter, wrong)) wrong = read_filter(filter, subscribe.filter);
  if (!wrong.empty()) return Invalid{std::string(id), "bad_filter", std::move(wrong)};
  return subscribe;
}

Message read_unsubscribe(const dom::object&, std::string_view id) { return Unsubscribe{std::string(id)}; }
Message read_read(const dom::object& object, std::string_view id) {
  std::string_view stream, cursor;
  std::string wrong;
  if (!read(object, "stream", stream, wrong) || !read(object, "cursor", cursor, wrong))
    return bad(id, wrong.empty() ? "`read` needs `stream` and `cursor`" : std::move(wrong));
  const auto parsed = parse_cursor(cursor);
  if (!parsed)
    return Invalid{std::string(id), "bad_cursor", "`cursor` is not one that this daemon gives out"};
  return Read{std::string(id), std::string(stream), *parsed};
}

struct Rule {
  std::string_view type;
  bool needs_id;
  Message (*read)(const dom::object&, std::string_view id);
};
constexpr Rule rules[] = {
    {"hello", false, read_hello},
    {"subscribe", true, read_subscribe},
    {"unsubscribe", true, read_unsubscribe},
    {"read", true, read_read},
};

}  // namespace

std::optional<StreamCursor> parse_stream_cursor(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return {};
  const std::string_view cursor = text.substr(colon + 1);
  if (cursor.empty()) return StreamCursor{std::string(text.substr(0, colon)), begin_cursor};
  const auto parsed = parse_cursor(cursor);
  if (!parsed) return {};
  return StreamCursor{std::string(text.substr(0, colon)), *parsed};
}

Message parse(std::string_view text) {
  if (text.empty()) return bad({}, "not a JSON object");
  dom::parser parser;  // owns no more than this message needs, and only as long
  dom::object object;
  if (parser.parse(text.data(), text.size(), true).get(object) != simdjson::SUCCESS) {
    return bad({}, "not a JSON object");
  }
  std::string_view id, type;
  std::string wrong;
  const bool has_id = read(object, "id", id, wrong);
  if (!wrong.empty()) return bad({}, std::move(wrong));
  if (id.size() > id_bytes_max) return bad({}, "`id` is longer than 256 bytes");
  if (!read(object, "type", type, wrong)) return bad(id, "`type` is missing or no string");
  for (const Rule& rule : rules) {
    if (rule.type != type) continue;
    if (rule.needs_id && !has_id) return bad({}, "`id` is missing");
    return rule.read(object, id);
  }
  return bad(id, "unknown type");
}

std::string error(std::string_view id, std::string_view code, std::string_view text, bool retry) {
  std::string out = R"({"type":"error")";
  if (!id.empty()) {
    out += R"(,"id":)";
    append_string(out, id);
  }
  out += R"(,"code":)";
  append_string(out, code);
  out += R"(,"message":)";
  append_string(out, text);
  out += retry ? R"(,"retry":true})" : R"(,"retry":false})";
  return out;
}

}  // namespace earshot::serve::message
