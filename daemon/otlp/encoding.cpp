#include "otlp/encoding.hpp"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/json_scan.hpp"
#include "otlp/writers.hpp"

namespace earshot::otlp {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
constexpr std::string_view scope_name = "earshot";
constexpr std::string_view schema_url = "https://opentelemetry.io/schemas/1.40.0";

/// Times that no clock shows are cut.
std::uint64_t to_ns(std::int64_t ms) {
  constexpr std::int64_t ms_max = std::numeric_limits<std::int64_t>::max() / ns_per_ms;
  return static_cast<std::uint64_t>(std::clamp<std::int64_t>(ms, 0, ms_max) * ns_per_ms);
}

// Field numbers: opentelemetry-proto 1.5.0, opentelemetry/proto/<package>/v1/<file>.proto.
namespace common {  // common/v1/common.proto
constexpr Field any_string{1, "stringValue"}, any_bool{2, "boolValue"}, any_int{3, "intValue"},
    any_double{4, "doubleValue"}, any_array{5, "arrayValue"};
constexpr Field array_values{1, "values"};
constexpr Field key{1, "key"}, value{2, "value"};
constexpr Field scope{1, "name"}, scope_version{2, "version"};
}  // namespace common
namespace resource_fields {  // resource/v1/resource.proto
constexpr Field attributes{1, "attributes"};
}
namespace trace {  // trace/v1/trace.proto
constexpr Field trace_id{1, "traceId"}, span_id{2, "spanId"}, parent_span_id{4, "parentSpanId"},
    name{5, "name"}, kind{6, "kind"}, start{7, "startTimeUnixNano"}, end{8, "endTimeUnixNano"},
    attributes{9, "attributes"}, events{11, "events"}, dropped_events{12, "droppedEventsCount"},
    status{15, "status"};
constexpr Field event_time{1, "timeUnixNano"}, event_name{2, "name"}, event_attributes{3, "attributes"};
constexpr Field status_code{3, "code"};
}  // namespace trace
namespace logs {  // logs/v1/logs.proto
constexpr Field time{1, "timeUnixNano"}, severity{2, "severityNumber"}, severity_text{3, "severityText"},
    body{5, "body"}, attributes{6, "attributes"}, trace_id{9, "traceId"}, span_id{10, "spanId"},
    observed{11, "observedTimeUnixNano"}, event_name{12, "eventName"};
constexpr int info = 9, error = 17;  // SeverityNumber
}  // namespace logs
namespace metrics {  // metrics/v1/metrics.proto
constexpr Field name{1, "name"}, description{2, "description"}, unit{3, "unit"}, gauge{5, "gauge"},
    sum{7, "sum"}, histogram{9, "histogram"};
constexpr Field points{1, "dataPoints"}, temporality{2, "aggregationTemporality"},
    monotonic{3, "isMonotonic"};
constexpr int cumulative = 2;  // AggregationTemporality
constexpr Field start{2, "startTimeUnixNano"}, time{3, "timeUnixNano"};
constexpr Field number_value{4, "asDouble"}, number_attributes{7, "attributes"};
constexpr Field count{4, "count"}, total{5, "sum"}, bucket_counts{6, "bucketCounts"},
    bounds{7, "explicitBounds"}, histogram_attributes{9, "attributes"};
}  // namespace metrics
namespace answer {  // Export…ServiceResponse and Export…PartialSuccess of the collector/*/v1 files
constexpr std::uint32_t partial_success = 1, rejected = 1, message = 2;
}

/// A string in the encoding, filled by `write(writer)`.
template <class Write>
std::string encode(Encoding encoding, Write write) {
  constexpr std::size_t usual_bytes = 512;  // of a span
  std::string out;
  out.reserve(usual_bytes);
  if (encoding == Encoding::protobuf) {
    ProtobufWriter writer(out);
    write(writer);
  } else {
    ProtobufJsonWriter writer(out);
    write(writer);
    writer.end();
  }
  return out;
}

template <class Writer>
void write_value(Writer& to, const Attribute::Value& value) {
  std::visit(
      [&](const auto& each) {
        using Type = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Type, std::string>) to.bytes(common::any_string, each);
        if constexpr (std::is_same_v<Type, std::int64_t>) to.int64(common::any_int, each);
        if constexpr (std::is_same_v<Type, double>) to.real(common::any_double, each);
        if constexpr (std::is_same_v<Type, bool>) to.flag(common::any_bool, each);
        if constexpr (std::is_same_v<Type, std::vector<std::string>>)
          to.message(common::any_array, [&](Writer& array) {
            array.messages(common::array_values, each, [](Writer& item, const std::string& text) {
              item.bytes(common::any_string, text);
            });
          });
      },
      value);
}

template <class Writer>
void write_attribute(Writer& to, std::string_view key, const Attribute::Value& value) {
  to.text(common::key, key);
  to.message(common::value, [&](Writer& inner) { write_value(inner, value); });
}

template <class Writer>
void write_attributes(Writer& to, const Field& field, const Attributes& attributes) {
  to.messages(field, attributes.all(),
              [](Writer& item, const Attribute& each) { write_attribute(item, each.key, each.value); });
}

template <class Writer>
void write_resource(Writer& to, const Resource& resource) {
  std::vector<std::pair<std::string, std::string>> all = {{"service.name", resource.service_name},
                                                          {"service.version", resource.service_version}};
  if (!resource.host.empty()) all.emplace_back("host.name", resource.host);
  for (const auto& [key, value] : resource.more) {
    const bool is_ours =
        std::any_of(all.begin(), all.end(), [&](const auto& ours) { return ours.first == key; });
    if (!is_ours) all.emplace_back(key, value);
  }
  to.messages(resource_fields::attributes, all, [](Writer& item, const auto& each) {
    write_attribute(item, each.first, Attribute::Value(each.second));
  });
}

template <class Writer>
void write_scope(Writer& to, const Resource& resource) {
  to.text(common::scope, scope_name);
  to.text(common::scope_version, resource.service_version);
}

/// Export<Signal>ServiceRequest, Resource<Signal> and Scope<Signal>: of the same shape for each signal
/// (collector/*/v1/*_service.proto and */v1/*.proto), only the names differ.
struct Envelope {
  std::string_view list_name, scopes_name, items_name;
  Field list() const { return {1, list_name}; }
  Field scopes() const { return {2, scopes_name}; }
  Field items() const { return {2, items_name}; }
};
constexpr Field envelope_resource{1, "resource"}, envelope_scope{1, "scope"}, envelope_schema{3, "schemaUrl"};
constexpr Envelope trace_envelope{"resourceSpans", "scopeSpans", "spans"};
constexpr Envelope logs_envelope{"resourceLogs", "scopeLogs", "logRecords"};
constexpr Envelope metrics_envelope{"resourceMetrics", "scopeMetrics", "metrics"};

std::string request(const Envelope& envelope, const EncodedByHost& by_host, Resource resource,
                    Encoding encoding) {
  return encode(encoding, [&](auto& to) {
    using Writer = std::decay_t<decltype(to)>;
    to.messages(envelope.list(), by_host, [&](Writer& each, const auto& entry) {
      resource.host = entry.first;
      each.message(envelope_resource, [&](Writer& inner) { write_resource(inner, resource); });
      each.messages(envelope.scopes(), std::vector{0}, [&](Writer& scoped, int) {
        scoped.message(envelope_scope, [&](Writer& inner) { write_scope(inner, resource); });
        scoped.encoded(envelope.items(), entry.second);
        scoped.text(envelope_schema, schema_url);
      });
      each.text(envelope_schema, schema_url);
    });
  });
}

template <class Writer>
void write_point(Writer& to, const Metric& metric, const Point& point) {
  if (metric.kind != Metric::Kind::gauge) to.fixed64(metrics::start, to_ns(metric.start_ms));
  to.fixed64(metrics::time, to_ns(metric.time_ms));
  if (!point.histogram) {
    to.real(metrics::number_value, point.value);
    write_attributes(to, metrics::number_attributes, point.attributes);
    return;
  }
  to.fixed64(metrics::count, point.histogram->count);
  to.real(metrics::total, point.histogram->sum);
  to.packed_fixed64(metrics::bucket_counts, point.histogram->counts);
  to.packed_real(metrics::bounds, *point.histogram->bounds);
  write_attributes(to, metrics::histogram_attributes, point.attributes);
}

template <class Writer>
void write_metric(Writer& to, const Metric& metric) {
  to.text(metrics::name, metric.name);
  to.text(metrics::description, metric.description);
  to.text(metrics::unit, metric.unit);
  const Field& kind = metric.kind == Metric::Kind::gauge ? metrics::gauge
                      : metric.kind == Metric::Kind::sum ? metrics::sum
                                                         : metrics::histogram;
  to.message(kind, [&](Writer& data) {
    data.messages(metrics::points, metric.points,
                  [&](Writer& item, const Point& point) { write_point(item, metric, point); });
    if (metric.kind != Metric::Kind::gauge) data.enumeration(metrics::temporality, metrics::cumulative);
    if (metric.kind == Metric::Kind::sum) data.flag(metrics::monotonic, true);
  });
}

/// Reads the fields of one protobuf message: varints and byte strings; others are skipped.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : left_(bytes) {}
  struct Read {
    std::uint32_t field = 0;
    std::uint64_t number = 0;
    std::string_view bytes;
  };
  /// Nothing at the end, or if the bytes are not a message.
  std::optional<Read> next() {
    const auto tag = varint();
    if (!tag) return std::nullopt;
    Read read{static_cast<std::uint32_t>(*tag >> 3), 0, {}};
    switch (*tag & 7) {
      case 0:
        if (const auto number = varint()) return read.number = *number, read;
        return std::nullopt;
      case 1:
        return skip(8) ? std::optional(read) : std::nullopt;
      case 5:
        return skip(4) ? std::optional(read) : std::nullopt;
      case 2: {
        const auto size = varint();
        if (!size || *size > left_.size()) return std::nullopt;
        read.bytes = left_.substr(0, *size);
        left_.remove_prefix(*size);
        return read;
      }
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool skip(std::size_t bytes) {
    if (left_.size() < bytes) return false;
    left_.remove_prefix(bytes);
    return true;
  }
  std::string_view left_;
};

PartialSuccess parse_json_answer(std::string_view body) {
  PartialSuccess result;
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  if (parser.parse(body.data(), body.size()).get(json)) return result;
  const auto partial = dom::member(json, "partialSuccess");
  if (!partial) return result;
  result.message = dom::text_of(*partial, "errorMessage");
  for (const std::string_view name : {"rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"}) {
    const std::string_view digits = dom::text_of(*partial, name);  // 64 bits are a string
    std::uint64_t number = dom::count_of(*partial, name).value_or(0);
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    result.rejected += number;
  }
  return result;
}

}  // namespace

std::string_view content_type(Encoding encoding) {
  return encoding == Encoding::json ? "application/json" : "application/x-protobuf";
}

std::string encode_span(const Span& span, Encoding encoding) {
  return encode(encoding, [&](auto& to) {
    using Writer = std::decay_t<decltype(to)>;
    to.id(trace::trace_id, {span.context.trace.high, span.context.trace.low});
    to.id(trace::span_id, {span.context.span});
    if (span.parent != 0) to.id(trace::parent_span_id, {span.parent});
    to.text(trace::name, span.name);
    to.enumeration(trace::kind, static_cast<int>(span.kind));
    to.fixed64(trace::start, to_ns(span.start_ms));
    to.fixed64(trace::end, to_ns(span.end_ms));
    write_attributes(to, trace::attributes, span.attributes);
    to.messages(trace::events, span.events, [](Writer& item, const SpanEvent& event) {
      item.fixed64(trace::event_time, to_ns(event.time_ms));
      item.text(trace::event_name, event.name);
      write_attributes(item, trace::event_attributes, event.attributes);
    });
    to.uint32(trace::dropped_events, span.dropped_events);
    to.message(trace::status, [&](Writer& status) {
      status.enumeration(trace::status_code, static_cast<int>(span.status));
    });
  });
}

std::string encode_log(const LogRecord& record, std::int64_t observed_ms, Encoding encoding) {
  return encode(encoding, [&](auto& to) {
    using Writer = std::decay_t<decltype(to)>;
    if (record.time_ms > 0) to.fixed64(logs::time, to_ns(record.time_ms));
    to.enumeration(logs::severity, record.is_error ? logs::error : logs::info);
    to.text(logs::severity_text, record.is_error ? "ERROR" : "INFO");
    to.message(logs::body, [&](Writer& body) { body.bytes(common::any_string, record.body); });
    write_attributes(to, logs::attributes, record.attributes);
    if (record.in) {
      to.id(logs::trace_id, {record.in->trace.high, record.in->trace.low});
      to.id(logs::span_id, {record.in->span});
    }
    to.fixed64(logs::observed, to_ns(observed_ms));
    to.text(logs::event_name, record.name);
  });
}

std::string encode_metric(const Metric& metric, Encoding encoding) {
  return encode(encoding, [&](auto& to) { write_metric(to, metric); });
}

std::size_t count_of(const EncodedByHost& messages) {
  std::size_t count = 0;
  for (const auto& [host, each] : messages) count += each.size();
  return count;
}

EncodedByHost take_half(EncodedByHost& from) {
  std::size_t left = count_of(from) / 2;
  EncodedByHost taken;
  while (left > 0) {
    const auto last = std::prev(from.end());
    std::vector<std::string>& messages = last->second;
    const std::size_t moved = std::min(left, messages.size());
    const auto begin = messages.end() - static_cast<std::ptrdiff_t>(moved);
    if (moved > 0)
      taken[last->first].assign(std::make_move_iterator(begin), std::make_move_iterator(messages.end()));
    messages.erase(begin, messages.end());
    if (messages.empty()) from.erase(last);
    left -= moved;
  }
  return taken;
}

std::string traces_request(const EncodedByHost& spans, Resource resource, Encoding encoding) {
  return request(trace_envelope, spans, std::move(resource), encoding);
}

std::string logs_request(const EncodedByHost& records, Resource resource, Encoding encoding) {
  return request(logs_envelope, records, std::move(resource), encoding);
}

std::string metrics_request(const EncodedByHost& metrics, Resource resource, Encoding encoding) {
  return request(metrics_envelope, metrics, std::move(resource), encoding);
}

PartialSuccess parse_answer(std::string_view body, Encoding encoding) {
  if (encoding == Encoding::json) return parse_json_answer(body);
  PartialSuccess result;
  ProtobufReader reader(body);
  while (const auto outer = reader.next()) {
    if (outer->field != answer::partial_success) continue;
    ProtobufReader inner(outer->bytes);
    while (const auto field = inner.next()) {
      if (field->field == answer::rejected && static_cast<std::int64_t>(field->number) > 0)
        result.rejected = field->number;
      if (field->field == answer::message) result.message = field->bytes;
    }
  }
  return result;
}

}  // namespace earshot::otlp
