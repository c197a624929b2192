// Spans, log records and metrics as OTLP messages in protobuf, and the collector's answers. Pure.
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

/// What all signals have in common, apart from their host.
struct Resource {
  std::string service_name = "earshot", service_version;
  std::vector<std::pair<std::string, std::string>> more;  // further attributes
};

/// One message of its kind, to be put into a request later.
std::string encode_span(const Span& span);
std::string encode_log(const LogRecord& record, std::int64_t observed_ms);
/// REQUIRES: it has points.
std::string encode_metric(const Metric& metric);

/// Encoded messages of one signal, by host.
using EncodedByHost = std::map<std::string, std::vector<std::string>, std::less<>>;

std::size_t count_of(const EncodedByHost& messages);
/// Moves the later half of the messages out of `from`, the smaller one if their number is odd.
EncodedByHost take_half(EncodedByHost& from);

/// Of messages of one signal: an Export<Signal>ServiceRequest.
std::string encode_request(const EncodedByHost& messages, const Resource& resource);

/// The `partial_success` of an answer. Another text than an answer counts as a complete success.
struct PartialSuccess {
  std::uint64_t rejected = 0;
  std::string message;
};
PartialSuccess parse_answer(std::string_view body);

}  // namespace earshot::otlp
