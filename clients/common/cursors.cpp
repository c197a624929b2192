#include "common/cursors.hpp"

#include <algorithm>

#include "common/format.hpp"

namespace earshot::common {
namespace {

std::vector<std::string_view> places_of(const Fields& frame) {
  std::vector<std::string_view> places;
  const auto element = frame.get("cursors");
  simdjson::dom::array array;
  if (!element || element->get(array) != simdjson::SUCCESS) return places;
  for (const simdjson::dom::element item : array) {
    std::string_view text;
    if (item.get(text) == simdjson::SUCCESS) places.push_back(text);
  }
  return places;
}

}  // namespace

StreamPlace parse_place(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return {text, {}};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

void append_seen(const Fields& session_frame, std::vector<SeenStream>& seen) {
  const std::int64_t activity_ms = parse_time(session_frame.text("last_activity")).value_or(0);
  for (const std::string_view text : places_of(session_frame)) {
    const StreamPlace place = parse_place(text);
    seen.push_back({std::string(place.stream), std::string(place.cursor), activity_ms});
  }
}

void Cursors::learn(const Fields& frame, const Streams* only) {
  for (const std::string_view text : places_of(frame)) {
    const StreamPlace place = parse_place(text);
    if (only == nullptr || only->contains(place.stream)) handled(place.stream, place.cursor);
  }
}

After Cursors::after(std::vector<SeenStream> seen, std::int64_t cut_ms) const {
  std::stable_sort(seen.begin(), seen.end(),
                   [](const SeenStream& a, const SeenStream& b) { return a.activity_ms > b.activity_ms; });
  After after;
  std::set<std::string, std::less<>> named;
  std::size_t bytes = 0;
  const auto add = [&](const std::string& stream, const std::string& cursor) {
    if (!named.insert(stream).second) return false;
    const std::string place = stream + ":" + cursor;
    bytes += place.size() + 3;  // quotes and comma
    if (after.places.size() >= after_places_max || bytes > after_bytes_max) {
      ++after.left_out;
      return false;
    }
    after.places.push_back(place);
    return true;
  };
  for (const SeenStream& each : seen) {
    const std::string* const cursor = known_.find(each.name);
    const bool is_new = cursor == nullptr && (each.activity_ms == 0 || each.activity_ms >= cut_ms);
    if (!add(each.name, cursor != nullptr ? *cursor : is_new ? std::string() : each.cursor)) continue;
    if (is_new) after.from_the_beginning.insert(each.name);
  }
  for (const auto& [stream, cursor] : known_) add(stream, cursor);  // no longer live, but it may have grown
  return after;
}

}  // namespace earshot::common
