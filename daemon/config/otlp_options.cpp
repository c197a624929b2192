// [otlp] and the OTEL_* variables → the exporter's configuration.
#include <simdjson.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/pct_string_view.hpp>
#include <cctype>
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

/// The names of one signal.
struct SignalNames {
  std::string_view variables;  // TRACES of OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  std::string_view path;
};
constexpr SignalNames traces_names{"TRACES", "/v1/traces"}, metrics_names{"METRICS", "/v1/metrics"},
    logs_names{"LOGS", "/v1/logs"};

struct Variable {
  std::string name, value;
};

/// An empty variable counts as unset, as the OpenTelemetry specification has it.
std::optional<Variable> find_variable(const Environment& environment, std::string name) {
  auto value = environment(name.c_str());
  if (!value || value->empty()) return std::nullopt;
  return Variable{std::move(name), std::move(*value)};
}

/// The signal's own variable, else the general one.
std::optional<Variable> find_variable(const Environment& environment, const SignalNames& signal,
                                      std::string_view name) {
  const std::string prefix = "OTEL_EXPORTER_OTLP_";
  if (auto own = find_variable(environment, prefix + std::string(signal.variables) + "_" + std::string(name)))
    return own;
  return find_variable(environment, prefix + std::string(name));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

/// `key=value,key=value`, percent-encoded. The values may be secrets: they are not repeated in an error.
Pairs read_pairs(const std::optional<Variable>& variable) {
  Pairs pairs;
  for (std::string_view left = variable ? std::string_view(variable->value) : std::string_view();
       !left.empty();) {
    const std::string_view pair = trimmed(left.substr(0, left.find(',')));
    left.remove_prefix(std::min(left.size(), left.find(',') == left.npos ? left.size() : left.find(',') + 1));
    if (pair.empty()) continue;
    const std::size_t sign = pair.find('=');
    const std::string_view key = trimmed(pair.substr(0, sign));
    const auto value = boost::urls::make_pct_string_view(sign == pair.npos ? std::string_view()
                                                                           : trimmed(pair.substr(sign + 1)));
    std::string text = value ? value->decode() : std::string();
    // A collector refuses a whole request with a text that is not UTF-8.
    if (sign == pair.npos || key.empty() || !value || !is_utf8(key) || !is_utf8(text))
      throw Error(variable->name +
                  ": must be `key=value` pairs in UTF-8, separated by commas, percent-encoded");
    pairs.emplace_back(key, std::move(text));
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

/// The URL of a signal; empty: it has none. A signal's own variable is used as it is.
std::string url_of(const OtlpOptions& options, const Environment& environment, const SignalNames& signal) {
  if (!options.endpoint.empty()) return with_path(options.endpoint, signal.path);
  const auto endpoint = find_variable(environment, signal, "ENDPOINT");
  if (!endpoint) return {};
  check_url(endpoint->name, endpoint->value);
  return endpoint->name == endpoint_variable ? with_path(endpoint->value, signal.path) : endpoint->value;
}

/// The protocol of the environment belongs to its endpoint, which another one makes one of another kind.
void check_protocol(const OtlpOptions& options, const Environment& environment, const SignalNames& signal) {
  const auto protocol = find_variable(environment, signal, "PROTOCOL");
  if (!protocol || protocol->value == "http/protobuf" || !options.endpoint.empty()) return;
  throw Error(protocol->name + ": `" + protocol->value + "` is not http/protobuf: set `endpoint` in [otlp]");
}

/// Several signals may give the same one.
void add_warning(std::vector<std::string>& warnings, std::string warning) {
  if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
    warnings.push_back(std::move(warning));
}

/// Calls `read`, and returns what it throws as a warning; `consequence` follows the reason.
template <class Read>
bool is_usable(std::vector<std::string>& warnings, std::string_view consequence, Read read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    add_warning(warnings, std::string(error.what()) + "; " + std::string(consequence));
    return false;
  }
}

void warn_of_compression(const Environment& environment, const SignalNames& signal,
                         std::vector<std::string>& warnings) {
  const auto compression = find_variable(environment, signal, "COMPRESSION");
  if (!compression || compression->value == "none") return;
  add_warning(warnings, compression->name + ": `" + compression->value +
                            "` is not supported; requests are sent without compression");
}

std::vector<std::string> headers_of(const Environment& environment, const SignalNames& signal) {
  const auto variable = find_variable(environment, signal, "HEADERS");
  std::vector<std::string> headers;
  for (const auto& [key, value] : read_pairs(variable)) {
    headers.push_back(key + ": " + value);
    if (!otlp::is_header(headers.back()))
      throw Error(variable->name + ": names and values must be visible ASCII");
  }
  return headers;
}

std::optional<std::chrono::milliseconds> milliseconds_of(const std::optional<Variable>& variable) {
  if (!variable) return std::nullopt;
  const std::string& text = variable->value;
  constexpr std::int64_t max = 24 * 3600 * 1000;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error != std::errc() || end != text.data() + text.size() || ms < 1 || ms > max)
    throw Error(variable->name + ": `" + text + "` is not a number of milliseconds");
  return std::chrono::milliseconds(ms);
}

/// The authorities of the environment belong to its endpoint: without them it could not be verified.
std::string authorities_of(const OtlpOptions& options, const Environment& environment,
                           const SignalNames& signal) {
  const auto variable = find_variable(environment, signal, "CERTIFICATE");
  if (!variable) return {};
  const std::string error = otlp::check_authorities(variable->value);
  if (error.empty()) return variable->value;
  if (options.endpoint.empty()) throw Error(variable->name + ": " + error);
  return {};
}

/// Throws Error if the signal cannot be sent as the environment asks.
void read_signal(otlp::SignalConfig& into, const OtlpOptions& options, const Environment& environment,
                 const SignalNames& signal) {
  into.url = url_of(options, environment, signal);
  if (!into.is_on()) return;
  check_protocol(options, environment, signal);
  // The headers of the environment may be secrets of its endpoint: another one does not get them.
  if (options.headers_file.empty() && options.endpoint.empty())
    into.headers = headers_of(environment, signal);
  if (options.tls_ca.empty()) into.tls_ca = authorities_of(options, environment, signal);
}

bool is_disabled(const Environment& environment) {
  auto disabled = find_variable(environment, "OTEL_SDK_DISABLED");
  if (!disabled) return false;
  std::string& value = disabled->value;
  std::transform(value.begin(), value.end(), value.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return value == "true";
}

}  // namespace

std::optional<otlp::Config> otlp_config(const OtlpOptions& options, const Environment& environment,
                                        const std::function<std::string(const std::string&)>& resolve,
                                        std::vector<std::string>& warnings) {
  otlp::Config config;
  config.full = options.full;
  config.retain = options.retain;
  struct Signal {
    bool is_wanted;
    otlp::SignalConfig& config;
    const SignalNames& names;
  };
  const Signal signals[] = {{options.traces, config.traces, traces_names},
                            {options.metrics, config.metrics, metrics_names},
                            {options.logs, config.logs, logs_names}};
  const bool is_exporting = is_usable(warnings, "nothing is exported by OpenTelemetry", [&] {
    for (const Signal& each : signals)
      if (each.is_wanted) read_signal(each.config, options, environment, each.names);
    if (config.is_exporting() && is_disabled(environment)) throw Error("OTEL_SDK_DISABLED: is `true`");
  });
  if (!is_exporting || !config.is_exporting()) return std::nullopt;
  if (!options.headers_file.empty()) config.headers_file = resolve(options.headers_file);
  constexpr std::string_view unused = "it is not used";
  for (const Signal& each : signals) {
    if (!each.config.is_on()) continue;
    if (!options.tls_ca.empty()) each.config.tls_ca = resolve(options.tls_ca);
    warn_of_compression(environment, each.names, warnings);
    is_usable(warnings, unused, [&] {
      each.config.timeout =
          milliseconds_of(find_variable(environment, each.names, "TIMEOUT")).value_or(each.config.timeout);
    });
  }
  is_usable(warnings, unused, [&] {
    config.metric_interval = milliseconds_of(find_variable(environment, "OTEL_METRIC_EXPORT_INTERVAL"))
                                 .value_or(config.metric_interval);
  });
  is_usable(warnings, unused, [&] {
    config.resource.more = read_pairs(find_variable(environment, "OTEL_RESOURCE_ATTRIBUTES"));
  });
  for (const auto& [key, value] : config.resource.more)
    if (key == "service.name") config.resource.service_name = value;
  if (const auto name = find_variable(environment, "OTEL_SERVICE_NAME"))
    is_usable(warnings, unused, [&] {
      if (!is_utf8(name->value)) throw Error(name->name + ": is not UTF-8");
      config.resource.service_name = name->value;
    });
  return config;
}

}  // namespace earshot::config
