// Request bodies for each kind of sink.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "notifier/notice.hpp"
#include "notifier/rules.hpp"
#include "notifier/secrets.hpp"

namespace earshot::notifier {

struct WebhookRequest {
  std::string url;
  std::vector<std::string> headers;         // `Name: value`
  std::vector<std::string> secret_headers;  // sent only to the configured origin, not to redirect targets
  std::string body;                         // JSON
  std::string ca_file;
  std::int64_t timeout_ms = 0;
};

/// The current values of a sink's URL and secrets.
struct Credentials {
  std::string url, token, secret;
};
std::variant<Credentials, SecretError> read_credentials(const Sink& sink);

/// The request, or why there is none.
std::variant<WebhookRequest, SecretError> make_request(const Sink& sink, const Credentials& credentials,
                                                       const Notice& notice, std::int64_t now_ms);

/// The notice for json sinks and commands: one object without line end.
std::string notice_json(const Notice& notice);

/// The URL without parts that may be secret: https://hooks.example/…
std::string redact_url(std::string_view url);

}  // namespace earshot::notifier
