#include "otlp/wire_event.hpp"

#include "base/json_scan.hpp"
#include "base/quantities.hpp"

namespace earshot::otlp {

std::string_view WireFrame::text(std::string_view key) const { return dom::text_of(json, key); }
std::optional<std::int64_t> WireFrame::number(std::string_view key) const { return dom::int_of(json, key); }
bool WireFrame::flag(std::string_view key) const { return dom::bool_of(json, key); }

std::optional<double> WireFrame::real(std::string_view key) const {
  const auto found = dom::member(json, key);
  return found ? dom::as_double(*found) : std::nullopt;
}

std::string WireFrame::json_text(std::string_view key) const {
  const auto found = dom::member(json, key);
  return found ? simdjson::minify(*found) : std::string();
}

std::optional<WireFrame> FrameParser::parse(std::string_view text) {
  if (parser_.capacity() > kept_bytes_max) parser_ = simdjson::dom::parser();
  WireFrame frame;
  simdjson::dom::object object;
  if (parser_.parse(text.data(), text.size()).get(frame.json) || frame.json.get_object().get(object))
    return std::nullopt;
  for (const auto field : object) {  // the common members come first
    if (field.key == "type") {
      frame.type = dom::as_text(field.value);
    } else if (field.key == "host") {
      frame.host = dom::as_text(field.value);
    } else if (field.key == "stream") {
      frame.stream = dom::as_text(field.value);
    } else if (field.key == "session") {
      frame.session = dom::as_text(field.value);
    } else if (field.key == "agent") {
      frame.agent = dom::as_text(field.value);
    } else if (field.key == "cursor") {
      frame.cursor = parse_cursor(dom::as_text(field.value));
    } else if (field.key == "time") {
      frame.time_ms = parse_time(dom::as_text(field.value)).value_or(0);
    } else if (field.key == "turn") {
      frame.turn = dom::as_count(field.value).value_or(0);
      if (frame.cursor) break;  // the last common member of an event
    }
  }
  if (frame.type.empty()) return std::nullopt;
  return frame;
}

}  // namespace earshot::otlp
