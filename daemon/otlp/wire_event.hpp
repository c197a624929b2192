// Frames of an in-process client, as far as the exporter uses them. Pure.
#pragma once
#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/cursor.hpp"

namespace earshot::otlp {

/// Views are valid until the parser reads the next frame.
struct WireFrame {
  std::string_view type, host, stream, session, agent;
  std::optional<Cursor> cursor;  // of an event
  std::int64_t time_ms = 0;      // 0: none
  std::uint64_t turn = 0;
  simdjson::dom::element json;

  bool is_event() const { return cursor && !stream.empty(); }
  std::string_view text(std::string_view key) const;
  std::optional<std::int64_t> number(std::string_view key) const;
  std::optional<double> real(std::string_view key) const;
  bool flag(std::string_view key) const;
  /// A member as JSON text; empty: absent.
  std::string json_text(std::string_view key) const;
};

class FrameParser {
 public:
  /// Nothing unless `text` is a JSON object with a `type`.
  std::optional<WireFrame> parse(std::string_view text);

 private:
  static constexpr std::size_t kept_bytes_max = 1 << 20;  // a parser that grew beyond is freed
  simdjson::dom::parser parser_;
};

/// True if `a` names a later position of the same transcript.
inline bool is_after(const Cursor& a, const Cursor& b) {
  return a.offset > b.offset || (a.offset == b.offset && a.index > b.index);
}

}  // namespace earshot::otlp
