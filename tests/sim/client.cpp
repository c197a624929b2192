#include "client.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "core/event_json.hpp"

namespace earshot::sim {
namespace {

/// Removes and returns the payloads of complete text frames.
std::vector<std::string> unframed(std::string& bytes) {
  std::vector<std::string> payloads;
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i]));
  };
  while (bytes.size() - at >= 2) {
    if (byte(at) != 0x81) throw std::runtime_error("received bytes are not a complete text frame");
    std::uint64_t size = byte(at + 1);
    std::size_t head = 2;
    const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
    if (bytes.size() - at < head + more) break;
    if (more > 0) size = 0;
    for (std::size_t i = 0; i < more; ++i) size = size << 8 | byte(at + head + i);
    head += more;
    if (bytes.size() - at - head < size) break;
    payloads.push_back(bytes.substr(at + head, size));
    at += head + size;
  }
  bytes.erase(0, at);
  return payloads;
}

using Place = std::pair<std::uint64_t, std::uint64_t>;

Place place_of(const std::string& cursor) {
  Place place{0, 0};
  if (cursor.empty()) return place;
  const char* end = cursor.data() + cursor.size();
  const auto dot = std::from_chars(cursor.data(), end, place.first);
  std::from_chars(dot.ptr + 1, end, place.second);
  return place;
}

bool is_beginning(const std::string& cursor) { return place_of(cursor) == Place{0, 0}; }

bool same_place(const std::string& a, const std::string& b) {
  return a == b || (is_beginning(a) && is_beginning(b));
}

std::string text_at(simdjson::dom::element frame, const char* key) {
  std::string_view text;
  return frame[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

std::vector<std::string> list_at(simdjson::dom::element frame, const char* key) {
  std::vector<std::string> all;
  simdjson::dom::array list;
  if (frame[key].get(list) != simdjson::SUCCESS) return all;
  for (const auto each : list) {
    std::string_view text;
    if (each.get(text) == simdjson::SUCCESS) all.emplace_back(text);
  }
  return all;
}

void append_list(std::string& out, std::string_view key, const std::vector<std::string>& values) {
  out += "\"" + std::string(key) + "\":[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    append_json_string(out, values[i]);
  }
  out += ']';
}

}  // namespace

std::pair<std::string, std::string> split_position(const std::string& place) {
  const auto colon = place.rfind(':');
  return {place.substr(0, colon), place.substr(colon + 1)};
}

bool Client::wants(std::string_view type) const {
  if (options_.types.empty()) return true;
  return std::any_of(options_.types.begin(), options_.types.end(), [&](const std::string& pattern) {
    return type.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));  // `turn.*`
  });
}

void Client::connect(std::shared_ptr<Connection> line, const std::set<std::string>& streams) {
  connection_ = std::move(line);
  partial_.clear();
  sessions_.clear();
  frames_ = 0;
  welcomed_ = ready_ = second_pending_ = false;
  if (options_.whole)
    for (const std::string& stream : streams) held_.try_emplace(stream);
  std::vector<std::string> after;
  for (auto& [stream, held] : held_) {
    held.unsure = held.restarted = false;
    held.violation.clear();
    held.catching_up = true;
    after.push_back(stream + ':' + (is_beginning(held.place()) ? "" : held.place()));
  }
  resumed_ = after.empty();
  subscribe("a", after);
}

void Client::subscribe(const std::string& id, const std::vector<std::string>& after) {
  std::string message = R"({"type":"subscribe","id":")" + id + "\",";
  if (id != "a") message += R"("snapshot":false,)";
  if (options_.catch_up) message += R"("on_lag":"catch_up",)";
  if (!options_.types.empty()) {
    append_list(message += R"("filter":{)", "type", options_.types);
    message += "},";
  }
  append_list(message, "after", after);
  if (trace) trace(options_.name + " says " + message);
  connection_->incoming.push_back(message + '}');
  if (connection_->moved) connection_->moved();
}

void Client::leave() {
  if (!connection_) return;
  connection_->left = true;
  if (connection_->moved) connection_->moved();
  connection_ = nullptr;
}

void Client::fail(const std::string& what, const std::string& frame) const {
  throw std::runtime_error(options_.name + ": " + what + "\n  frame: " + frame.substr(0, 600));
}

/// The file may have been replaced, and events of the new one may arrive before the last events of the old
/// one: then a reset follows.
void Client::note_violation(const std::string& stream, const std::string& what, const std::string& frame) {
  std::string& why = held_[stream].violation;
  if (why.empty()) why = what + "\n  frame: " + frame.substr(0, 400);
}

void Client::process_received() {
  if (!connection_) return;
  if (!connection_->http.empty()) fail("the upgrade was refused", connection_->http);
  partial_ += std::exchange(connection_->outgoing, {});
  for (const std::string& each : unframed(partial_)) {
    frame(each);
    if (++frames_ != options_.second_after) continue;
    std::vector<std::string> after;
    for (const auto& [stream, held] : held_)
      if (!held.restarted) after.push_back(stream + ':' + (is_beginning(held.place()) ? "" : held.place()));
    second_pending_ = true;
    subscribe("b", after);
  }
}

void Client::frame(const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::element frame;
  if (parser.parse(text).get(frame) != simdjson::SUCCESS) fail("not JSON", text);
  const std::string type = text_at(frame, "type"), stream = text_at(frame, "stream"),
                    id = text_at(frame, "id");
  if (trace) {
    std::string line =
        options_.name + " receives " + type + ' ' + stream + ' ' + text_at(frame, "cursor") + ' ' + id;
    for (const std::string& place : list_at(frame, "cursors")) line += ' ' + place;
    trace(line + (type == "reset" ? text_at(frame, "reason") : "") + text_at(frame, "from") + ' ' +
          text_at(frame, "to"));
  }
  if ((type == "welcome") == welcomed_) fail("`welcome` must be the first frame and only that", text);
  welcomed_ = true;
  if (type == "welcome" || type == "status") return;
  if (type == "session") return session(text, list_at(frame, "cursors"));
  if (type == "ready") {
    ready_ = true;
  } else if (type == "bookmark") {
    for (const std::string& place : list_at(frame, "cursors")) {
      const auto [name, cursor] = split_position(place);
      ReceivedStream& held = held_[name];
      if (held.restarted && second_pending_) continue;
      if (place_of(cursor) < place_of(held.place())) {
        // The other subscription received more than this one missed.
        if (id.empty() || options_.second_after == 0) note_violation(name, "a bookmark that goes back", text);
        continue;
      }
      held.advance(cursor);
    }
    bool complete = false;
    if (!id.empty() && frame["complete"].get(complete) == simdjson::SUCCESS && complete) {
      resumed_ = true;
      if (id == "b") second_pending_ = false;
      for (auto& [name, held] : held_) held.catching_up = false;
    }
  } else if (type == "reset") {
    if (text_at(frame, "reason") == "unknown") {
      held_.erase(stream);
      return;
    }
    ReceivedStream& held = held_[stream] = {};
    held.restarted = !id.empty();
  } else if (type == "stream.renamed") {
    const std::string from = text_at(frame, "from"), to = text_at(frame, "to");
    auto moved = held_.extract(from);
    if (!moved) return;
    moved.key() = to;
    const std::string was = "\"stream\":\"" + from + '"';
    for (Received& event : moved.mapped().events)
      if (const std::size_t at = event.text.find(was); at != std::string::npos)
        event.text.replace(at, was.size(), "\"stream\":\"" + to + '"');
    held_.insert(std::move(moved));  // unless events of the new name came before
  } else if (type == "stream.removed") {
    held_.erase(stream);
  } else if (type == "lagged") {
    if (options_.catch_up) fail("`lagged` in spite of on_lag: catch_up", text);
    for (auto& [name, held] : held_) held.unsure = true;
  } else if (type == "error") {
    fail("an error", text);
  } else if (type != "heartbeat") {
    const std::string cursor = text_at(frame, "cursor");
    if (cursor.empty()) fail("an unknown frame without a cursor", text);
    if (!wants(type)) fail("an event of a type that was not subscribed", text);
    ReceivedStream& held = held_[stream];
    // Perhaps requested by the second subscription before the reset of the first one was received: then a
    // session frame, which is still to come, includes it.
    if (held.restarted && second_pending_) {
      if (place_of(cursor) > place_of(held.place())) held.events.push_back({cursor, text});
      return;
    }
    if (held.replaced && options_.second_after > 0 && place_of(cursor) <= place_of(held.base)) return;
    held.unsure = held.restarted = false;  // no session frame: nothing was missed
    if (place_of(cursor) <= place_of(held.place()))
      note_violation(stream, "I had that: I am at " + held.place(), text);
    held.events.push_back({cursor, text});
  }
}

void Client::session(const std::string& text, const std::vector<std::string>& cursors) {
  sessions_.push_back(text);
  for (const std::string& place : cursors) {
    const auto [stream, cursor] = split_position(place);
    const auto [at, is_new] = held_.try_emplace(stream);
    ReceivedStream& held = at->second;
    if (!is_new && !held.unsure && !held.restarted) {
      const auto event = std::find_if(held.events.rbegin(), held.events.rend(),
                                      [](const Received& received) { return !received.text.empty(); });
      const std::string& last = event == held.events.rend() ? held.base : event->cursor;
      if (held.catching_up) continue;
      if (place_of(cursor) < place_of(last))
        note_violation(stream, "the session frame says " + cursor + ", and I am at " + held.place(), text);
      if (place_of(cursor) > place_of(held.place())) held.advance(cursor);
      continue;
    }
    const bool replaced = held.restarted || held.replaced;
    if (is_new || held.restarted || !same_place(held.place(), cursor))
      held = {is_beginning(cursor) ? "" : cursor, {}, false, false};
    held.unsure = held.restarted = false;
    held.replaced = replaced;
  }
}

}  // namespace earshot::sim
