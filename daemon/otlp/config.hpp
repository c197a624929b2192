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

struct Config {
  // URLs; empty: the signal is off.
  std::string traces_url, metrics_url, logs_url;
  Encoding encoding = Encoding::protobuf;
  std::string headers_file;          // lines of "Name: value"; empty: none
  std::vector<std::string> headers;  // "Name: value"; secret
  std::string tls_ca;                // a file; empty: the system's certificate authorities
  bool full = false;                 // export the full view instead of the meta view
  std::chrono::milliseconds retain = std::chrono::hours(24);  // older spans are not exported
  std::chrono::milliseconds timeout{10'000};                  // of a request
  std::chrono::milliseconds metric_interval{60'000};
  Resource resource;  // without host and version
};

/// Appends the headers of the file, which only its owner can read. Returns an error for users; empty: done.
std::string read_headers_file(Config& config);

/// True for "Name: value" without control characters.
bool is_header(std::string_view line);

}  // namespace earshot::otlp
