// Spans as values, and their ids. Pure.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace earshot::otlp {

/// 128 bits, not all 0.
struct TraceId {
  std::uint64_t high = 0, low = 0;
  friend auto operator<=>(const TraceId&, const TraceId&) = default;
};
using SpanId = std::uint64_t;  // 0: none

/// What a span belongs to.
struct SpanContext {
  TraceId trace;
  SpanId span = 0;
  friend auto operator<=>(const SpanContext&, const SpanContext&) = default;
};

/// Of the same parts the same id, in every process. The parts are kept apart: ("ab", "c") is not ("a", "bc").
TraceId trace_id(std::initializer_list<std::string_view> parts);
SpanId span_id(std::initializer_list<std::string_view> parts);

std::string to_hex(const TraceId& id);  // 32 digits
std::string to_hex(SpanId id);          // 16 digits

constexpr std::size_t label_bytes_max =
    256;  // of names from transcripts, such as a tool's; longer ones are cut

struct Attribute {
  using Value = std::variant<std::string, std::int64_t, double, bool, std::vector<std::string>>;
  std::string_view key;  // a static text
  Value value;
};

class Attributes {
 public:
  /// A name, cut to label_bytes_max; nothing if it is empty.
  void label(std::string_view key, std::string_view value);
  /// A text of any length; nothing if it is empty.
  void text(std::string_view key, std::string_view value);
  void number(std::string_view key, std::int64_t value) { add({key, value}); }
  void number(std::string_view key, std::optional<std::int64_t> value) {
    if (value) number(key, *value);
  }
  void real(std::string_view key, double value) { add({key, value}); }
  void flag(std::string_view key, bool value) { add({key, value}); }
  void list(std::string_view key, std::vector<std::string> values) { add({key, std::move(values)}); }
  const std::vector<Attribute>& all() const { return all_; }
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  void add(Attribute attribute);

  std::vector<Attribute> all_;
};

struct SpanEvent {
  std::string_view name;  // a static text
  std::int64_t time_ms = 0;
  Attributes attributes;
};

struct Span {
  // Values of SpanKind and StatusCode, opentelemetry-proto 1.3, trace/v1/trace.proto.
  enum class Kind { internal = 1, client = 3 };
  enum class Status { unset = 0, error = 2 };

  SpanContext context;
  SpanId parent = 0;  // 0: the root of its trace
  std::string name;
  Kind kind = Kind::internal;
  std::int64_t start_ms = 0, end_ms = 0;  // since 1970; 0: unknown
  Attributes attributes;
  std::vector<SpanEvent> events;
  std::uint32_t dropped_events = 0;
  Status status = Status::unset;
};

/// An event as a log record.
struct LogRecord {
  std::int64_t time_ms = 0;  // 0: unknown
  bool is_error = false;
  std::string name;               // the event's type
  std::string body;               // JSON text
  std::optional<SpanContext> in;  // the span that was open
  Attributes attributes;
};

}  // namespace earshot::otlp
