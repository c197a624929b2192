#include "common/subscription.hpp"

#include "core/event_json.hpp"

namespace earshot::common {
namespace {

constexpr std::size_t session_id_bytes = 36;  // a whole one needs no wildcard

bool has_wildcard(std::string_view text) { return text.find_first_of("*?") != text.npos; }

void append_patterns(std::string& out, std::string_view key, const std::vector<std::string>& typed,
                     std::string (*pattern)(std::string_view)) {
  if (typed.empty()) return;
  if (out.back() != '{') out += ',';
  append_string(out, key);
  out += ":[";
  for (const std::string& each : typed) {
    if (out.back() != '[') out += ',';
    append_string(out, pattern(each));
  }
  out += ']';
}

}  // namespace

std::string project_pattern(std::string_view typed) {
  const bool is_name = !has_wildcard(typed) && typed.find('/') == typed.npos;
  return (is_name ? "*/" : "") + std::string(typed);
}

std::string session_pattern(std::string_view typed) {
  if (has_wildcard(typed)) return std::string(typed);
  const std::size_t at = typed.rfind('@');
  if (at == typed.npos) return std::string(typed) + "*";  // also of a whole id: a hub says `@host` after it
  const bool is_beginning = at < session_id_bytes;
  return std::string(typed.substr(0, at)) + (is_beginning ? "*" : "") + std::string(typed.substr(at));
}

std::string type_pattern(std::string_view typed) {
  const bool is_family = !has_wildcard(typed) && typed.find('.') == typed.npos;
  return std::string(typed) + (is_family ? ".*" : "");
}

std::string subscribe_message(const Filters& filters, const SubscribeOptions& options) {
  std::string out = R"({"type":"subscribe","id":)";
  append_string(out, options.id);
  out += R"(,"filter":{)";
  append_patterns(out, "project", filters.project, project_pattern);
  append_patterns(out, "session", filters.session, session_pattern);
  append_patterns(out, "type", filters.type, type_pattern);
  append_patterns(out, "host", filters.host, [](std::string_view typed) { return std::string(typed); });
  out += R"(},"deliver":)";
  out += options.state ? R"("state")" : R"("events")";
  out += R"(,"snapshot":)";
  out += options.snapshot ? "true" : "false";
  if (options.all) out += R"(,"all":true)";
  if (options.catch_up) out += R"(,"on_lag":"catch_up")";
  if (!options.after.empty()) {
    out += R"(,"after":[)";
    for (const std::string& place : options.after) {
      if (out.back() != '[') out += ',';
      append_string(out, place);
    }
    out += ']';
  }
  return out + "}";
}

std::string unsubscribe_message(std::string_view id) {
  std::string out = R"({"type":"unsubscribe","id":)";
  append_string(out, id);
  return out + "}";
}

}  // namespace earshot::common
