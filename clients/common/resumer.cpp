#include "common/resumer.hpp"

#include <algorithm>

#include "base/json_writer.hpp"
#include "base/quantities.hpp"
#include "common/client.hpp"

namespace earshot::common {
namespace {

constexpr std::size_t session_id_bytes = 36;  // a complete id needs no wildcard

// The connection may have been dead for this long before it was noticed.
constexpr std::int64_t unnoticed_ms = (Client::silence_seconds_max + 10) * 1000LL;

bool has_wildcard(std::string_view text) { return text.find_first_of("*?") != text.npos; }

}  // namespace

std::string project_pattern(std::string_view typed) {
  const bool is_name = !has_wildcard(typed) && typed.find('/') == typed.npos;
  return (is_name ? "*/" : "") + std::string(typed);
}

std::string session_pattern(std::string_view typed) {
  if (has_wildcard(typed)) return std::string(typed);
  const std::size_t at = typed.rfind('@');
  if (at == typed.npos) return std::string(typed) + "*";  // also for a complete id: a hub appends `@host`
  const bool is_beginning = at < session_id_bytes;
  return std::string(typed.substr(0, at)) + (is_beginning ? "*" : "") + std::string(typed.substr(at));
}

std::string type_pattern(std::string_view typed) {
  const bool is_family = !has_wildcard(typed) && typed.find('.') == typed.npos;
  return std::string(typed) + (is_family ? ".*" : "");
}

std::string subscribe_request(const Filters& filters, const SubscribeOptions& options) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "subscribe").member("id", options.id).key("filter").begin_object();
  const auto add = [&](std::string_view key, const std::vector<std::string>& typed, auto&& pattern) {
    if (typed.empty()) return;
    json.key(key).array(typed, [&](const std::string& each) { json.value(pattern(each)); });
  };
  const auto as_typed = [](std::string_view typed) { return std::string(typed); };
  add("project", filters.project, project_pattern);
  add("session", filters.session, session_pattern);
  add("program", filters.program, as_typed);
  add("type", filters.type, type_pattern);
  add("host", filters.host, as_typed);
  json.end_object()
      .member("deliver", options.state ? "state" : "events")
      .member("snapshot", options.snapshot);
  if (options.all) json.member("all", true);
  if (options.catch_up) json.member("on_lag", "catch_up");
  if (!options.after.empty()) json.array_member("after", options.after);
  if (options.since_ms) json.member("since", format_time(*options.since_ms));
  json.end_object();
  return out;
}

std::string unsubscribe_request(std::string_view id) {
  std::string out;
  JsonWriter(out).begin_object().member("type", "unsubscribe").member("id", id).end_object();
  return out;
}

StreamCursor parse_stream_cursor(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

std::vector<StreamCursor> stream_cursors(const Fields& frame) {
  std::vector<StreamCursor> cursors;
  for (const std::string_view text : frame.texts("cursors")) cursors.push_back(parse_stream_cursor(text));
  return cursors;
}

void Cursors::learn(const Fields& frame, const Streams* only) {
  for (const StreamCursor& each : stream_cursors(frame)) {
    if (only == nullptr || only->contains(each.stream)) set(each.stream, each.cursor);
  }
}

std::vector<std::string> Cursors::after() const {
  std::vector<std::string> places;
  std::size_t bytes = 0;
  for (const auto& [stream, cursor] : known_) {
    bytes += stream.size() + cursor.size() + 4;  // colon, quotes and comma
    if (places.size() >= after_places_max || bytes > after_bytes_max) break;
    places.push_back(stream + ":" + cursor);
  }
  std::sort(places.begin(), places.end());
  return places;
}

std::string StreamResumer::begin() {
  phase_ = Phase::snapshot;
  resuming_ = !first_ || options_.since_ms;
  rewritten_.clear();
  if (!resuming_) {
    return subscribe_request(options_.filters,
                             {.id = options_.id, .snapshot = options_.snapshot, .catch_up = true});
  }
  if (!since_ms_) since_ms_ = options_.since_ms;
  SubscribeOptions request{.id = options_.id, .all = options_.all, .catch_up = true};
  request.after = cursors_.after();
  request.since_ms = since_ms_;
  has_streams_ = !request.after.empty();
  return subscribe_request(options_.filters, request);
}

void StreamResumer::receive(const Fields& frame) {
  const std::string_view type = frame.text("type");
  const bool ours = frame.text("id") == options_.id;
  if (type == "session" && phase_ == Phase::snapshot) has_streams_ = true;
  if (type == "ready" && ours && phase_ == Phase::snapshot) {
    first_ = false;
    phase_ = resuming_ && has_streams_ ? Phase::catching_up : Phase::live;
  }
  if (type == "bookmark" && ours && frame.flag("complete")) phase_ = Phase::live;
}

void StreamResumer::handled(const Fields& frame) {
  const std::string_view type = frame.text("type"), stream = frame.text("stream");
  if (type == "session") {
    // While events are missing, a session frame is ahead of what was handled.
    cursors_.learn(frame, resuming_ && phase_ != Phase::live ? &rewritten_ : nullptr);
  } else if (type == "bookmark") {
    cursors_.learn(frame);
  } else if (type == "reset") {
    if (frame.text("id").empty()) {
      cursors_.set(stream, {});  // a new history: its first event is the next
    } else {
      cursors_.erase(stream);
      if (frame.text("reason") != "unknown") rewritten_.emplace(stream);
    }
  } else if (type == "stream.renamed") {
    cursors_.rename(frame.text("from"), frame.text("to"));
  } else if (type == "stream.removed") {
    cursors_.erase(stream);
  } else if (const std::string_view cursor = frame.text("cursor"); !cursor.empty()) {
    cursors_.set(stream, cursor);
  }
}

void StreamResumer::end(std::int64_t now_ms) {
  if (phase_ == Phase::live) since_ms_ = now_ms - unnoticed_ms;
}

}  // namespace earshot::common
