#include "otlp/positions.hpp"

#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/hex.hpp"
#include "base/json_scan.hpp"
#include "base/json_writer.hpp"
#include "otlp/wire_event.hpp"

namespace earshot::otlp {
namespace {

constexpr std::int64_t version = 1;
constexpr std::size_t digits = 16;  // of 64 bits

/// 48 digits: the trace and the span.
std::optional<SpanContext> parse_context(std::string_view text) {
  if (text.size() != 3 * digits) return std::nullopt;
  const auto high = parse_hex(text.substr(0, digits)), low = parse_hex(text.substr(digits, digits)),
             span = parse_hex(text.substr(2 * digits));
  if (!high || !low || !span) return std::nullopt;
  return SpanContext{{*high, *low}, *span};
}

std::optional<Cursor> cursor_of(const simdjson::dom::element& json, std::string_view key) {
  const std::string_view text = dom::text_of(json, key);
  return text.empty() ? begin_cursor : parse_cursor(text);
}

}  // namespace

bool is_rewritten(const Cursor& exported, const Cursor& last, const Cursor& next) {
  const auto is_same_line = [&](const Cursor& cursor) {
    return cursor.offset == exported.offset && cursor.prefix_hash == exported.prefix_hash;
  };
  return is_after(exported, last) && next.offset >= exported.offset && !is_same_line(last) &&
         !is_same_line(next);
}

std::optional<Positions> Positions::parse(std::string_view text) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  simdjson::dom::object streams;
  if (parser.parse(text.data(), text.size()).get(json)) return std::nullopt;
  const auto list = dom::member(json, "streams");
  if (dom::int_of(json, "version") != version || !list || list->get_object().get(streams))
    return std::nullopt;
  Positions positions;
  for (const auto each : streams) {
    const auto exported = cursor_of(each.value, "exported"), anchor = cursor_of(each.value, "anchor");
    if (!exported || !anchor) return std::nullopt;
    positions.all_[std::string(each.key)] = {*exported, *anchor,
                                             dom::int_of(each.value, "newest").value_or(0),
                                             parse_context(dom::text_of(each.value, "parent")),
                                             dom::int_of(each.value, "anchor_time").value_or(0)};
  }
  return positions;
}

std::string Positions::text() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("version", version).key("streams").begin_object();
  constexpr std::size_t stream_bytes_max = 16 << 10;  // of its name, escaped, and its position
  for (const auto& [stream, position] : all_) {
    if (out.size() + stream_bytes_max > text_bytes_max) break;
    json.key(stream).begin_object();
    const auto add = [&](std::string_view name, const Cursor& cursor) {
      if (cursor != begin_cursor) json.member(name, to_string(cursor));
    };
    add("exported", position.exported);
    add("anchor", position.anchor);
    json.member("newest", position.newest_ms);
    if (position.anchor_ms != 0) json.member("anchor_time", position.anchor_ms);
    if (position.parent)
      json.member("parent", to_hex(position.parent->trace) + to_hex(position.parent->span));
    json.end_object();
  }
  json.end_object().end_object();
  out += '\n';
  return out;
}

const Position* Positions::find(std::string_view stream) const {
  const auto found = all_.find(stream);
  return found == all_.end() ? nullptr : &found->second;
}

void Positions::set(const std::string& stream, Position position) {
  all_[stream] = std::move(position);
  if (all_.size() <= streams_max) return;
  all_.erase(std::min_element(all_.begin(), all_.end(), [](const auto& a, const auto& b) {
    return a.second.newest_ms < b.second.newest_ms;
  }));
}

void Positions::drop_before(std::int64_t ms) {
  std::erase_if(all_, [&](const auto& each) { return each.second.newest_ms < ms; });
}

}  // namespace earshot::otlp
