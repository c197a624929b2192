#include "otlp/encoding.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>

#include "otlp/protobuf_writer.hpp"

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
constexpr Field any_string = 1, any_bool = 2, any_int = 3, any_double = 4, any_array = 5;
constexpr Field array_values = 1;
constexpr Field key = 1, value = 2;
constexpr Field scope = 1, scope_version = 2;
}  // namespace common
namespace resource_fields {  // resource/v1/resource.proto
constexpr Field attributes = 1;
}
namespace trace {  // trace/v1/trace.proto
constexpr Field trace_id = 1, span_id = 2, parent_span_id = 4, name = 5, kind = 6, start = 7, end = 8,
                attributes = 9, events = 11, dropped_events = 12, status = 15;
constexpr Field event_time = 1, event_name = 2, event_attributes = 3;
constexpr Field status_code = 3;
}  // namespace trace
namespace logs {  // logs/v1/logs.proto
constexpr Field time = 1, severity = 2, severity_text = 3, body = 5, attributes = 6, trace_id = 9,
                span_id = 10, observed = 11, event_name = 12;
constexpr std::uint32_t info = 9, error = 17;  // SeverityNumber
}  // namespace logs
namespace metrics {  // metrics/v1/metrics.proto
constexpr Field name = 1, description = 2, unit = 3, gauge = 5, sum = 7, histogram = 9;
constexpr Field points = 1, temporality = 2, monotonic = 3;
constexpr std::uint32_t cumulative = 2;  // AggregationTemporality
constexpr Field start = 2, time = 3;
constexpr Field number_value = 4, number_attributes = 7;
constexpr Field count = 4, total = 5, bucket_counts = 6, bounds = 7, histogram_attributes = 9;
}  // namespace metrics
namespace envelope {
// Export<Signal>ServiceRequest, Resource<Signal> and Scope<Signal> have the same fields for each signal
// (collector/*/v1/*_service.proto and */v1/*.proto).
constexpr Field resources = 1, resource = 1, scopes = 2, scope = 1, items = 2, schema = 3;
}  // namespace envelope
namespace answer {  // Export…ServiceResponse and Export…PartialSuccess of the collector/*/v1 files
constexpr Field partial_success = 1, rejected = 1, message = 2;
}

/// A message, filled by `write(writer)`.
template <class Write>
std::string encode(Write write) {
  constexpr std::size_t usual_bytes = 512;  // of a span
  std::string out;
  out.reserve(usual_bytes);
  ProtobufWriter writer(out);
  write(writer);
  return out;
}

void write_value(ProtobufWriter& to, const Attribute::Value& value) {
  std::visit(
      [&](const auto& each) {
        using Type = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<Type, std::string>) to.bytes(common::any_string, each);
        if constexpr (std::is_same_v<Type, std::int64_t>) to.int64(common::any_int, each);
        if constexpr (std::is_same_v<Type, double>) to.real(common::any_double, each);
        if constexpr (std::is_same_v<Type, bool>) to.flag(common::any_bool, each);
        if constexpr (std::is_same_v<Type, std::vector<std::string>>)
          to.message(common::any_array, [&] {
            for (const std::string& text : each)
              to.message(common::array_values, [&] { to.bytes(common::any_string, text); });
          });
      },
      value);
}

void write_attribute(ProtobufWriter& to, Field field, std::string_view key, const Attribute::Value& value) {
  to.message(field, [&] {
    to.text(common::key, key);
    to.message(common::value, [&] { write_value(to, value); });
  });
}

void write_attributes(ProtobufWriter& to, Field field, const Attributes& attributes) {
  for (const Attribute& each : attributes.all()) write_attribute(to, field, each.key, each.value);
}

void write_resource(ProtobufWriter& to, const Resource& resource, std::string_view host) {
  std::vector<std::pair<std::string, std::string>> all = {{"service.name", resource.service_name},
                                                          {"service.version", resource.service_version}};
  if (!host.empty()) all.emplace_back("host.name", host);
  for (const auto& [key, value] : resource.more) {
    const bool is_ours =
        std::any_of(all.begin(), all.end(), [&](const auto& ours) { return ours.first == key; });
    if (!is_ours) all.emplace_back(key, value);
  }
  for (const auto& [key, value] : all)
    write_attribute(to, resource_fields::attributes, key, Attribute::Value(value));
}

void write_point(ProtobufWriter& to, const Metric& metric, const Point& point) {
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

}  // namespace

std::string encode_span(const Span& span) {
  return encode([&](ProtobufWriter& to) {
    to.id(trace::trace_id, {span.context.trace.high, span.context.trace.low});
    to.id(trace::span_id, {span.context.span});
    if (span.parent != 0) to.id(trace::parent_span_id, {span.parent});
    to.text(trace::name, span.name);
    to.uint32(trace::kind, static_cast<std::uint32_t>(span.kind));
    to.fixed64(trace::start, to_ns(span.start_ms));
    to.fixed64(trace::end, to_ns(span.end_ms));
    write_attributes(to, trace::attributes, span.attributes);
    for (const SpanEvent& event : span.events)
      to.message(trace::events, [&] {
        to.fixed64(trace::event_time, to_ns(event.time_ms));
        to.text(trace::event_name, event.name);
        write_attributes(to, trace::event_attributes, event.attributes);
      });
    to.uint32(trace::dropped_events, span.dropped_events);
    to.message(trace::status,
               [&] { to.uint32(trace::status_code, static_cast<std::uint32_t>(span.status)); });
  });
}

std::string encode_log(const LogRecord& record, std::int64_t observed_ms) {
  return encode([&](ProtobufWriter& to) {
    if (record.time_ms > 0) to.fixed64(logs::time, to_ns(record.time_ms));
    to.uint32(logs::severity, record.is_error ? logs::error : logs::info);
    to.text(logs::severity_text, record.is_error ? "ERROR" : "INFO");
    to.message(logs::body, [&] { to.bytes(common::any_string, record.body); });
    write_attributes(to, logs::attributes, record.attributes);
    if (record.in) {
      to.id(logs::trace_id, {record.in->trace.high, record.in->trace.low});
      to.id(logs::span_id, {record.in->span});
    }
    to.fixed64(logs::observed, to_ns(observed_ms));
    to.text(logs::event_name, record.name);
  });
}

std::string encode_metric(const Metric& metric) {
  return encode([&](ProtobufWriter& to) {
    to.text(metrics::name, metric.name);
    to.text(metrics::description, metric.description);
    to.text(metrics::unit, metric.unit);
    const Field kind = metric.kind == Metric::Kind::gauge ? metrics::gauge
                       : metric.kind == Metric::Kind::sum ? metrics::sum
                                                          : metrics::histogram;
    to.message(kind, [&] {
      for (const Point& point : metric.points)
        to.message(metrics::points, [&] { write_point(to, metric, point); });
      if (metric.kind != Metric::Kind::gauge) to.uint32(metrics::temporality, metrics::cumulative);
      if (metric.kind == Metric::Kind::sum) to.flag(metrics::monotonic, true);
    });
  });
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

std::string encode_request(const EncodedByHost& messages, const Resource& resource) {
  return encode([&](ProtobufWriter& to) {
    for (const auto& [host, each] : messages)
      to.message(envelope::resources, [&, &host = host, &each = each] {
        to.message(envelope::resource, [&] { write_resource(to, resource, host); });
        to.message(envelope::scopes, [&] {
          to.message(envelope::scope, [&] {
            to.text(common::scope, scope_name);
            to.text(common::scope_version, resource.service_version);
          });
          for (const std::string& message : each) to.bytes(envelope::items, message);
          to.text(envelope::schema, schema_url);
        });
        to.text(envelope::schema, schema_url);
      });
  });
}

PartialSuccess parse_answer(std::string_view body) {
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
