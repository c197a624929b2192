#include "serve/stream/seen_marks.hpp"

#include <simdjson.h>

#include <algorithm>

#include "base/json_writer.hpp"

namespace earshot::serve {
namespace {

constexpr std::int64_t mark_time_max = json_integer_max;

std::optional<std::int64_t> time_of(const simdjson::dom::element& value) {
  std::int64_t ms = 0;
  if (value.get(ms) || ms < 0 || ms > mark_time_max) return std::nullopt;
  return ms;
}

}  // namespace

std::optional<SeenMarks> SeenMarks::parse(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element json, begin_member;
  simdjson::dom::object sessions;
  std::int64_t version = 0;
  if (parser.parse(text.data(), text.size()).get(json) || !json.is_object()) return std::nullopt;
  if (json["seen"].get(version) || version != 1 || json["begin"].get(begin_member) ||
      json["sessions"].get(sessions))
    return std::nullopt;
  const auto begin = time_of(begin_member);
  if (!begin) return std::nullopt;
  SeenMarks marks(*begin);
  for (const auto each : sessions) {
    const auto until = time_of(each.value);
    if (!until) return std::nullopt;
    marks.mark(each.key, *until);
  }
  return marks;
}

std::string SeenMarks::text() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("seen", 1).member("begin", begin_ms_).key("sessions").begin_object();
  for (const auto& [session, until] : marks_) json.member(session, until);
  json.end_object().end_object();
  return out + "\n";
}

std::int64_t SeenMarks::seen_until(std::string_view session) const {
  const auto mark = marks_.find(session);
  return mark == marks_.end() ? begin_ms_ : std::max(begin_ms_, mark->second);
}

bool SeenMarks::mark(std::string_view session, std::int64_t until_ms) {
  if (until_ms <= seen_until(session) || until_ms > mark_time_max || session.size() > session_bytes_max)
    return false;
  const auto [mark, is_new] = marks_.try_emplace(std::string(session), until_ms);
  if (!is_new) by_time_.erase(std::pair(std::exchange(mark->second, until_ms), mark->first));
  by_time_.emplace(until_ms, mark->first);
  if (marks_.size() <= sessions_max) return true;
  const auto earliest = by_time_.begin();
  begin_ms_ = std::max(begin_ms_, earliest->first);  // or what was seen would become unseen again
  marks_.erase(earliest->second);
  by_time_.erase(earliest);
  return true;
}

}  // namespace earshot::serve
