#include "serve/stream/control_frames.hpp"

#include "base/json_writer.hpp"
#include "base/quantities.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t cursors_per_frame = 1000;

}  // namespace

std::string control_frame(std::string_view type, std::string_view id) {
  std::string out;
  JsonWriter(out).begin_object().member("type", type).member("id", id).end_object();
  return out;
}

std::string error_frame(std::string_view id, std::string_view code, std::string_view text, bool retry) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("type", "error")
      .member_if_any("id", id)
      .member("code", code)
      .member("message", text)
      .member("retry", retry)
      .end_object();
  return out;
}

std::string heartbeat_frame(std::int64_t time_ms) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("type", "heartbeat")
      .member("time", format_time(time_ms))
      .end_object();
  return out;
}

std::string stream_cursor(const tail::Stream& stream, const Cursor& cursor) {
  return stream.name() + ":" + to_string(cursor);
}

std::vector<std::string> bookmark_frames(std::string_view id, const std::vector<std::string>& cursors,
                                         bool complete) {
  std::vector<std::string> frames;
  for (std::size_t at = 0; at < cursors.size() || (frames.empty() && complete);) {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("type", "bookmark").member_if_any("id", id).key("cursors").begin_array();
    for (std::size_t count = 0; at < cursors.size() && count < cursors_per_frame; ++at, ++count)
      json.value(cursors[at]);
    json.end_array();
    if (complete && at == cursors.size()) json.member("complete", true);
    json.end_object();
    frames.push_back(std::move(out));
  }
  return frames;
}

std::string reset_frame(std::string_view id, std::string_view host, std::string_view session,
                        std::string_view stream, std::string_view reason) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("type", "reset")
      .member_if_any("id", id)
      .member_if_any("host", host)
      .member_if_any("session", session)
      .member_if_any("stream", stream)
      .member_if_any("reason", reason)
      .end_object();
  return out;
}

std::string removed_frame(std::string_view host, std::string_view stream) {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("type", "stream.removed")
      .member_if_any("host", host)
      .member_if_any("stream", stream)
      .end_object();
  return out;
}

}  // namespace earshot::serve
