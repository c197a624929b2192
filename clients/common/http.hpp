// The daemon over HTTP: one request and its response, blocking, bounded in bytes, and in time from the
// resolved address on; and its page in the user's browser.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "common/endpoint.hpp"

namespace earshot::common {

struct HttpRequest {
  std::string_view method = "GET";  // or POST
  std::string_view target = "/";    // path and query, percent-encoded
  std::string_view body = {};       // JSON, for POST
};

struct HttpResponse {
  int status = 0;  // 0: none was received; see `error`
  std::string body;
  std::string error;  // for the user; escape it
  EndReason end_reason = EndReason::refused;
  bool unreachable() const { return end_reason == EndReason::unreachable; }  // nothing listens there
  bool ok() const { return status >= 200 && status < 300; }
};

constexpr std::size_t http_response_bytes_max = 4 << 20;  // a longer response is an error

/// Over plain TCP the daemon first proves that it has the token, on the same connection.
HttpResponse send_request(const DaemonAddress& address, const HttpRequest& request);

/// The response of the first address that can be reached; `connect` is for format_connect_error().
struct HttpResult {
  HttpResponse response;
  ConnectResult connect;
};
HttpResult send_request(const DaemonAddresses& addresses, const HttpRequest& request);

/// The program that opens addresses where there is something to see them on; null: there is no display.
const char* browser_command();

/// Only an http address of printable characters is ever handed to another program or printed.
bool is_web_address(std::string_view url);

/// `?name=value&…`, encoded, of the values that are not empty.
std::string query(std::initializer_list<std::pair<std::string_view, std::string_view>> values);

/// The address of a session's page; `url` is that of the daemon's page. Empty if it is no web address.
std::string session_page(std::string_view url, std::string_view session, std::string_view host);

/// False: it could not be started, or failed at once. Takes as long as the program does, 3 s at most.
bool open_in_browser(const char* program, const std::string& url);

}  // namespace earshot::common
