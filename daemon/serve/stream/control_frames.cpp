#include "serve/stream/control_frames.hpp"

#include "core/event_json.hpp"

namespace earshot::serve {
namespace {

constexpr std::size_t places_a_frame = 1000;  // more are told in several bookmarks

void field(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += ",\"";
  out += name;
  out += "\":";
  append_string(out, value);
}

}  // namespace

std::string control_frame(std::string_view type, std::string_view id) {
  std::string out = R"({"type":)";
  append_string(out, type);
  out += R"(,"id":)";
  append_string(out, id);
  out += '}';
  return out;
}

std::vector<std::string> bookmark_frames(std::string_view id, const std::vector<std::string>& places,
                                         bool complete) {
  std::vector<std::string> frames;
  for (std::size_t at = 0; at < places.size() || (frames.empty() && complete);) {
    std::string out = R"({"type":"bookmark")";
    field(out, "id", id);
    out += R"(,"cursors":[)";
    std::size_t count = 0;
    for (; at < places.size() && count < places_a_frame; ++at, ++count) {
      if (count > 0) out += ',';
      append_string(out, places[at]);
    }
    out += ']';
    if (complete && at == places.size()) out += R"(,"complete":true)";
    out += '}';
    frames.push_back(std::move(out));
  }
  return frames;
}

std::string reset_frame(std::string_view id, std::string_view host, std::string_view session,
                        std::string_view stream, std::string_view reason) {
  std::string out = R"({"type":"reset")";
  field(out, "id", id);
  field(out, "host", host);
  field(out, "session", session);
  field(out, "stream", stream);
  field(out, "reason", reason);
  out += '}';
  return out;
}

std::string removed_frame(std::string_view host, std::string_view stream) {
  std::string out = R"({"type":"stream.removed")";
  field(out, "host", host);
  field(out, "stream", stream);
  out += '}';
  return out;
}

}  // namespace earshot::serve
