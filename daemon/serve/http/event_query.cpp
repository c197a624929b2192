#include "serve/http/event_query.hpp"

#include "core/event_json.hpp"
#include "serve/http/query.hpp"

namespace earshot::serve {
namespace {

constexpr std::string_view filter_keys[] = {"project", "session", "host", "type"};
constexpr std::string_view words[] = {"deliver", "on_lag"};
constexpr std::string_view known[] = {"project", "session", "host", "type",     "after",
                                      "deliver", "on_lag",  "all",  "snapshot", "view"};

void append_list(std::string& out, std::string_view key, const std::vector<std::string_view>& values) {
  append_string(out, key);
  out += ":[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_string(out, values[i]);
  }
  out += ']';
}

std::string subscribe_text(Query& query) {
  std::string out = R"({"type":"subscribe","id":"events","filter":{)";
  bool first = true;
  for (const std::string_view key : filter_keys) {
    const auto values = query.all(key);
    if (values.empty()) continue;
    if (!first) out += ',';
    first = false;
    append_list(out, key, values);
  }
  out += '}';
  for (const std::string_view key : words) {
    if (!query.has(key)) continue;
    append_string(out += ',', key);
    append_string(out += ':', query.one(key));
  }
  if (const auto after = query.all("after"); !after.empty()) append_list(out += ',', "after", after);
  out += query.flag("snapshot", true) ? R"(,"snapshot":true)" : R"(,"snapshot":false)";
  out += query.flag("all", false) ? R"(,"all":true})" : R"(,"all":false})";
  return out;
}

}  // namespace

HttpResponse events_answer(std::string_view text) {
  Query query = parse_query(text);
  query.only(known);
  const std::string_view view = query.one("view", "full");
  if (query.error.empty() && view != "full" && view != "meta") query.error = "`view` is full or meta";
  HttpResponse answer;
  answer.kind = HttpResponse::Kind::events;
  answer.content_type = "application/x-ndjson";
  answer.meta = view == "meta";
  answer.subscription = subscribe_text(query);
  return query.error.empty() ? answer : text_response(400, query.error);
}

}  // namespace earshot::serve
