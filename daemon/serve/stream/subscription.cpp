#include "serve/stream/subscription.hpp"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/quantities.hpp"
#include "base/text.hpp"

namespace earshot::serve {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view text) {
  text = cut_utf8(text, Filter::text_bytes_max);
  return patterns.empty() ||
         std::any_of(patterns.begin(), patterns.end(),
                     [text](const std::string& pattern) { return matches_glob(pattern, text); });
}

}  // namespace

const std::array<std::string_view, event_types>& event_type_names() {
  static const auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, event_types>{type_name(EventBody{std::in_place_index<I>})...};
  }
  (std::make_index_sequence<event_types>{});
  return names;
}

bool Filter::matches_session(const SessionKeys& keys) const {
  if (!program.empty() && keys.program.empty()) return false;
  return matches_any(host, keys.host) && matches_any(session, keys.session) &&
         matches_any(project, keys.project) && matches_any(program, keys.program);
}

bool Filter::matches_name(std::string_view host_name, std::string_view session_name) const {
  return matches_any(host, host_name) && matches_any(session, session_name);
}

bool Filter::matches_type(std::string_view type_name) const { return matches_any(type, type_name); }

bool Filter::is_within(std::size_t patterns, std::size_t pattern_bytes) const {
  return std::all_of(std::begin(filter_keys), std::end(filter_keys), [&](const FilterKey& key) {
    const auto& list = this->*key.list;
    return list.size() <= patterns && std::all_of(list.begin(), list.end(), [&](const std::string& pattern) {
             return pattern.size() <= pattern_bytes;
           });
  });
}

namespace message {
namespace {

namespace dom = simdjson::dom;

Invalid bad_message(std::string_view id, std::string text) {
  return {std::string(id), "bad_message", std::move(text)};
}

/// True when the field is present with the type of `to`. Another type sets `error`.
template <class T>
bool read(const dom::object& object, std::string_view key, T& to, std::string& error) {
  dom::element element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return false;
  if (element.get(to) == simdjson::SUCCESS) return true;
  if (error.empty()) error = "`" + std::string(key) + "` has the wrong type";
  return false;
}

/// Reads a field with two possible values; true for the second one.
bool read_choice(const dom::object& object, std::string_view key, std::string_view first,
                 std::string_view second, std::string& error) {
  std::string_view value = first;
  read(object, key, value, error);
  if (error.empty() && value != first && value != second)
    error.append("`").append(key).append("` is `").append(first).append("` or `").append(second).append("`");
  return value == second;
}

/// Returns an error of the filter, or empty.
std::string read_filter(const dom::object& object, Filter& filter) {
  std::size_t searched = 0;
  for (const auto& [name, value] : object) {
    const auto key = std::find_if(std::begin(filter_keys), std::end(filter_keys),
                                  [name = name](const FilterKey& known) { return known.name == name; });
    if (key == std::end(filter_keys)) return "a filter has the keys project, session, program, host and type";
    dom::array list;
    if (value.get(list) != simdjson::SUCCESS) return "the value of a filter key is a list of patterns";
    if (list.size() > Filter::patterns_max) return "more than 64 patterns in a key";
    auto& patterns = filter.*(key->list);
    patterns.clear();  // of duplicate keys the last one applies
    for (dom::element item : list) {
      std::string_view pattern;
      if (item.get(pattern) != simdjson::SUCCESS) return "a pattern is a string";
      if (pattern.size() > Filter::pattern_bytes_max) return "a pattern is longer than 256 bytes";
      patterns.emplace_back(pattern);
      if (pattern.find('*') != pattern.npos && pattern.find('?') != pattern.npos) searched += pattern.size();
      if (searched > Filter::searched_bytes_max)
        return "the patterns with both `*` and `?` have more than 1024 bytes together";
    }
  }
  return {};
}

Message read_hello(const dom::object& object, std::string_view id) {
  std::string_view token, client;
  std::string error;
  read(object, "token", token, error);
  read(object, "client", client, error);
  const bool meta = read_choice(object, "view", "full", "meta", error);
  std::optional<SignIn> sign_in;
  dom::object given;
  if (read(object, "sign_in", given, error)) {
    std::string_view browser, nonce, signature;
    read(given, "browser", browser, error);
    read(given, "nonce", nonce, error);
    read(given, "signature", signature, error);
    sign_in = SignIn{std::string(browser), std::string(nonce), std::string(signature)};
  }
  if (!error.empty()) return bad_message(id, std::move(error));
  return Hello{std::string(token), std::string(client), std::move(sign_in), meta};
}

Message read_subscribe(const dom::object& object, std::string_view id) {
  Subscribe subscribe;
  subscribe.id = id;
  std::string error;
  read(object, "snapshot", subscribe.snapshot, error);
  read(object, "all", subscribe.all, error);
  dom::array after;
  if (read(object, "after", after, error)) {
    subscribe.after.emplace();
    for (const dom::element item : after) {
      std::string_view entry;
      if (item.get(entry) != simdjson::SUCCESS) return bad_message(id, "`after` is a list of strings");
      subscribe.after->emplace_back(entry);
    }
  }
  if (std::string_view since; read(object, "since", since, error)) {
    subscribe.since_ms = parse_time(since);
    if (!subscribe.since_ms) error = "`since` is a time such as 2026-03-14T09:00:00Z (RFC 3339)";
  }
  subscribe.state = read_choice(object, "deliver", "events", "state", error);
  subscribe.catch_up = read_choice(object, "on_lag", "snapshot", "catch_up", error);
  subscribe.from_beginning = read_choice(object, "new_streams", "snapshot", "beginning", error);
  if (!error.empty()) return bad_message(id, std::move(error));
  if (subscribe.state && (subscribe.after || subscribe.since_ms || subscribe.from_beginning))
    return bad_message(id, "`after`, `since` and `new_streams` require `deliver` `events`");
  if (object.at_key("page").error() == simdjson::SUCCESS) {
    std::uint64_t page = 0;
    read(object, "page", page, error);
    if (!error.empty() || page == 0 || page > Subscribe::page_max)
      return bad_message(id, "`page` is a number from 1 to " + std::to_string(Subscribe::page_max));
    if (!subscribe.state || !subscribe.snapshot)
      return bad_message(id, "`page` requires `deliver` `state` and `snapshot`");
    subscribe.page = static_cast<std::size_t>(page);
  }
  dom::object filter;
  if (read(object, "filter", filter, error)) error = read_filter(filter, subscribe.filter);
  if (!error.empty()) return Invalid{std::string(id), "bad_filter", std::move(error)};
  return subscribe;
}

Message read_unsubscribe(const dom::object&, std::string_view id) { return Unsubscribe{std::string(id)}; }

Message read_next_page(const dom::object& object, std::string_view id) {
  std::string_view next;
  std::string error;
  if (!read(object, "next", next, error))
    return bad_message(id, error.empty() ? "`next_page` requires `next`" : std::move(error));
  return NextPage{std::string(id), std::string(next)};
}

Message read_read(const dom::object& object, std::string_view id) {
  std::string_view stream, cursor;
  std::string error;
  if (!read(object, "stream", stream, error) || !read(object, "cursor", cursor, error))
    return bad_message(id, error.empty() ? "`read` requires `stream` and `cursor`" : std::move(error));
  const auto parsed = parse_cursor(cursor);
  if (!parsed) return Invalid{std::string(id), "bad_cursor", "`cursor` is not a cursor of this daemon"};
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
    {"next_page", true, read_next_page},
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
  if (text.empty()) return bad_message({}, "not a JSON object");
  dom::parser parser;  // one per message: an idle connection holds no parser memory
  dom::object object;
  if (parser.parse(text.data(), text.size(), true).get(object) != simdjson::SUCCESS)
    return bad_message({}, "not a JSON object");
  std::string_view id, type;
  std::string error;
  const bool has_id = read(object, "id", id, error);
  if (!error.empty()) return bad_message({}, std::move(error));
  if (id.size() > id_bytes_max) return bad_message({}, "`id` is longer than 256 bytes");
  if (!read(object, "type", type, error)) return bad_message(id, "`type` is missing or not a string");
  for (const Rule& rule : rules) {
    if (rule.type != type) continue;
    if (rule.needs_id && !has_id) return bad_message({}, "`id` is missing");
    return rule.read(object, id);
  }
  return bad_message(id, "unknown type");
}

}  // namespace message
}  // namespace earshot::serve
