// One HTTP request to the daemon and its response. Blocking, bounded in time and bytes.
#pragma once
#include <string>
#include <string_view>

#include "common/endpoint.hpp"

namespace earshot::common {

struct HttpRequest {
  std::string_view method = "GET";
  std::string_view target = "/";  // path and query, percent-encoded
  std::string_view body = {};     // JSON, for POST
};

struct HttpResponse {
  int status = 0;  // 0: none was received; see `error`
  std::string body;
  std::string error;         // for the user; escape it
  bool unreachable = false;  // nothing listens there
  bool ok() const { return status >= 200 && status < 300; }
};

constexpr std::size_t http_response_bytes_max = 4 << 20;  // a longer response is an error
constexpr int http_seconds_max = 5;                       // from connecting to the last byte

HttpResponse send_request(const DaemonAddress& address, const HttpRequest& request);

/// The response of the first address that can be reached; `connect` is for format_connect_error().
struct HttpResult {
  HttpResponse response;
  ConnectResult connect;
};
HttpResult send_request(const DaemonAddresses& addresses, const HttpRequest& request);

}  // namespace earshot::common
