// The HTTP sinks: credentials, request bodies, and how they are sent.
#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "notifier/notice.hpp"

namespace earshot::notifier {

struct SecretError {
  std::string why;
};
/// The current value; empty if no source is set. A file that others can read is refused.
std::variant<std::string, SecretError> read_secret(const SecretSource& source);

/// HMAC-SHA256 in hex.
std::string sign(std::string_view key, std::string_view text);

struct WebhookRequest {
  std::string url;
  std::vector<std::string> headers;         // `Name: value`
  std::vector<std::string> secret_headers;  // sent only to the configured origin, not to redirect targets
  std::string body;                         // JSON
  std::string ca_file;
  std::int64_t timeout_ms = 0;
};

/// The current values of a sink's URL and secrets: read for each use, never in an argument or a log.
struct Credentials {
  std::string url, token, secret;
};
std::variant<Credentials, SecretError> read_credentials(const Sink& sink);

/// The request, or why there is none.
std::variant<WebhookRequest, SecretError> make_request(const Sink& sink, const Credentials& credentials,
                                                       const Notice& notice, std::int64_t now_ms);

/// The URL without parts that may be secret: https://hooks.example/…
std::string redact_url(std::string_view url);

/// Loopback, private, link-local, shared, multicast and reserved addresses, also embedded in IPv6, to which
/// redirects must not lead. Other address families are private.
bool is_private(const sockaddr* address);

/// The result of a delivery by HTTP status; `response` is the beginning of the response body.
Delivery delivery_result(long status, std::int64_t retry_after_ms, const std::string& response);

/// Sends the notice. Blocks up to the sink's timeout; `is_cancelled` is called at least once a second and
/// ends it earlier.
Delivery send_webhook(const Sink& sink, const Notice& notice, const std::function<bool()>& is_cancelled);

}  // namespace earshot::notifier
