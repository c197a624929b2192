// [otlp] and the OTEL_* variables → the exporter's configuration.
#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/pct_string_view.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quantities.hpp"
#include "config/option_table.hpp"

namespace earshot::config {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Of OpenTelemetry's "OTLP exporter configuration": a variable of one signal wins over the general one.
constexpr char endpoint_variable[] = "OTEL_EXPORTER_OTLP_ENDPOINT";

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// `key=value,key=value`, percent-encoded. The values may be secrets: they are not repeated in an error.
Pairs read_pairs(const char* variable, const Environment& environment) {
  Pairs pairs;
  const auto text = environment(variable);
  for (std::string_view left = text ? std::string_view(*text) : std::string_view(); !left.empty();) {
    const std::string_view pair = trimmed(left.substr(0, left.find(',')));
    left.remove_prefix(std::min(left.size(), left.find(',') == left.npos ? left.size() : left.find(',') + 1));
    if (pair.empty()) continue;
    const std::size_t sign = pair.find('=');
    const std::string_view key = trimmed(pair.substr(0, sign));
    const auto value = boost::urls::make_pct_string_view(sign == pair.npos ? std::string_view()
                                                                           : trimmed(pair.substr(sign + 1)));
    if (sign == pair.npos || key.empty() || !value)
      throw Error(std::string(variable) +
                  ": must be `key=value` pairs, separated by commas, percent-encoded");
    pairs.emplace_back(key, value->decode());
  }
  return pairs;
}

/// An address with a path; `what` names its place in an error.
void check_url(const std::string& what, const std::string& address) {
  const auto url = boost::urls::parse_uri(address);
  if (!url || (url->scheme() != "http" && url->scheme() != "https") || url->host().empty() ||
      url->has_userinfo())
    throw Error(what + ": must be the address of a collector, such as http://127.0.0.1:4318, without a user");
}

std::string with_path(std::string base, std::string_view path) {
  while (base.ends_with('/')) base.pop_back();
  return base + std::string(path);
}

/// The URL of a signal; empty: it has none.
std::string url_of(const OtlpOptions& options, const Environment& environment, const char* variable,
                   std::string_view path) {
  if (!options.endpoint.empty()) return with_path(options.endpoint, path);
  if (auto own = environment(variable)) return check_url(variable, *own), *own;
  if (const auto base = environment(endpoint_variable))
    return check_url(endpoint_variable, *base), with_path(*base, path);
  return {};
}

/// The protocol of the environment belongs to its endpoint, which `grpc` makes one of another kind.
otlp::Encoding encoding_of(const OtlpOptions& options, const Environment& environment) {
  if (options.encoding) return *options.encoding;
  constexpr char variable[] = "OTEL_EXPORTER_OTLP_PROTOCOL";
  const auto protocol = environment(variable);
  if (!protocol || *protocol == "http/protobuf") return otlp::Encoding::protobuf;
  if (*protocol == "http/json") return otlp::Encoding::json;
  if (!options.endpoint.empty()) return otlp::Encoding::protobuf;
  throw Error(std::string(variable) + ": `" + *protocol +
              "` is neither http/protobuf nor http/json: set `protocol` or `endpoint` in [otlp]");
}

/// Calls `read`, and returns what it throws as a warning; `consequence` follows the reason.
template <class Read>
bool is_usable(std::vector<std::string>& warnings, std::string_view consequence, Read read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    warnings.push_back(std::string(error.what()) + "; " + std::string(consequence));
    return false;
  }
}

std::vector<std::string> headers_of(const Environment& environment) {
  constexpr char variable[] = "OTEL_EXPORTER_OTLP_HEADERS";
  std::vector<std::string> headers;
  for (const auto& [key, value] : read_pairs(variable, environment)) {
    headers.push_back(key + ": " + value);
    if (!otlp::is_header(headers.back()))
      throw Error(std::string(variable) + ": names and values must be visible ASCII");
  }
  return headers;
}

std::optional<std::chrono::milliseconds> milliseconds_of(const char* variable,
                                                         const Environment& environment) {
  const auto text = environment(variable);
  if (!text) return std::nullopt;
  constexpr std::int64_t max = 24 * 3600 * 1000;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), ms);
  if (error != std::errc() || end != text->data() + text->size() || ms < 1 || ms > max)
    throw Error(std::string(variable) + ": `" + *text + "` is not a number of milliseconds");
  return std::chrono::milliseconds(ms);
}

}  // namespace

std::optional<otlp::Config> otlp_config(const OtlpOptions& options, const Environment& environment,
                                        const std::function<std::string(const std::string&)>& resolve,
                                        std::vector<std::string>& warnings) {
  otlp::Config config;
  config.full = options.full;
  config.retain = options.retain;
  const bool is_exporting = is_usable(warnings, "nothing is exported by OpenTelemetry", [&] {
    if (options.traces)
      config.traces_url = url_of(options, environment, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/v1/traces");
    if (options.metrics)
      config.metrics_url = url_of(options, environment, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/v1/metrics");
    if (options.logs)
      config.logs_url = url_of(options, environment, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "/v1/logs");
    if (config.traces_url.empty() && config.metrics_url.empty() && config.logs_url.empty()) return;
    config.encoding = encoding_of(options, environment);
    // The headers of the environment may be secrets of its endpoint: another one does not get them.
    if (!options.headers_file.empty())
      config.headers_file = resolve(options.headers_file);
    else if (options.endpoint.empty())
      config.headers = headers_of(environment);
  });
  if (!is_exporting) return std::nullopt;
  if (config.traces_url.empty() && config.metrics_url.empty() && config.logs_url.empty()) return std::nullopt;
  if (!options.tls_ca.empty())
    config.tls_ca = resolve(options.tls_ca);
  else if (const auto file = environment("OTEL_EXPORTER_OTLP_CERTIFICATE"))
    config.tls_ca = *file;
  constexpr std::string_view unused = "it is not used";
  is_usable(warnings, unused, [&] {
    config.timeout = milliseconds_of("OTEL_EXPORTER_OTLP_TIMEOUT", environment).value_or(config.timeout);
  });
  is_usable(warnings, unused, [&] {
    config.metric_interval =
        milliseconds_of("OTEL_METRIC_EXPORT_INTERVAL", environment).value_or(config.metric_interval);
  });
  is_usable(warnings, unused,
            [&] { config.resource.more = read_pairs("OTEL_RESOURCE_ATTRIBUTES", environment); });
  for (const auto& [key, value] : config.resource.more)
    if (key == "service.name") config.resource.service_name = value;
  if (const auto name = environment("OTEL_SERVICE_NAME")) config.resource.service_name = *name;
  return config;
}

}  // namespace earshot::config
