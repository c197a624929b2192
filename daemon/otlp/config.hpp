// What [otlp] of earshot.toml and the OTEL_* variables configure.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "otlp/encoding.hpp"

namespace earshot::otlp {

/// Where and how one signal is sent.
struct SignalConfig {
  std::string url;                            // empty: the signal is off
  std::vector<std::string> headers;           // "Name: value"; secret
  std::string tls_ca;                         // a file; empty: the system's certificate authorities
  std::chrono::milliseconds timeout{10'000};  // of a request

  bool is_on() const { return !url.empty(); }
};

struct Config {
  SignalConfig traces, metrics, logs;
  std::string headers_file;                                   // lines of "Name: value"; empty: none
  std::vector<std::string> file_headers;                      // its content, for all signals; secret
  bool full = false;                                          // export the full view instead of the meta view
  std::chrono::milliseconds retain = std::chrono::hours(24);  // older spans are not exported
  std::chrono::milliseconds metric_interval{60'000};
  Resource resource;  // without version

  bool is_exporting() const { return traces.is_on() || metrics.is_on() || logs.is_on(); }
};

/// Reads the headers of the file, which only its owner can read. Returns an error for users; empty: done.
std::string read_headers_file(Config& config);

/// True for "Name: value" without control characters.
bool is_header(std::string_view line);

/// Why the file cannot be used as certificate authorities, for users; empty: it can.
std::string check_authorities(const std::string& file);

}  // namespace earshot::otlp
