// Spans, log records and metrics as OTLP messages, in both encodings, and the collector's answers. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otlp/metric.hpp"
#include "otlp/span.hpp"

namespace earshot::otlp {

enum class Encoding { protobuf, json };
std::string_view content_type(Encoding encoding);

/// What all signals of a host have in common.
struct Resource {
  std::string service_name = "earshot", service_version, host;
  std::vector<std::pair<std::string, std::string>> more;  // further attributes
};

/// One message of its kind, to be put into a request later.
std::string encode_span(const Span& span, Encoding encoding);
std::string encode_log(const LogRecord& record, std::int64_t observed_ms, Encoding encoding);
/// REQUIRES: it has points.
std::string encode_metric(const Metric& metric, Encoding encoding);

/// Encoded messages of one signal, by host.
using EncodedByHost = std::map<std::string, std::vector<std::string>, std::less<>>;

std::size_t count_of(const EncodedByHost& messages);
/// Moves the later half of the messages out of `from`, the smaller one if their number is odd.
EncodedByHost take_half(EncodedByHost& from);

/// `resource.host` is replaced.
std::string traces_request(const EncodedByHost& spans, Resource resource, Encoding encoding);
std::string logs_request(const EncodedByHost& records, Resource resource, Encoding encoding);
std::string metrics_request(const EncodedByHost& metrics, Resource resource, Encoding encoding);

/// The `partial_success` of an answer. Another text than an answer counts as a complete success.
struct PartialSuccess {
  std::uint64_t rejected = 0;
  std::string message;
};
PartialSuccess parse_answer(std::string_view body, Encoding encoding);

}  // namespace earshot::otlp
