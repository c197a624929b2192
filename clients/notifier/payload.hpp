// What each kind of receiver is sent. Pure.
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

struct WebRequest {
  std::string url;
  std::vector<std::string> headers;  // `Name: value`
  std::vector<std::string>
      secret_headers;  // only for where the configuration says, not for where it redirects to
  std::string body;    // JSON
  std::string ca_file;
  std::int64_t timeout_ms = 0;
};

/// What the places say that the sink names, at this moment.
struct Keys {
  std::string url, token, secret;
};
std::variant<Keys, SecretTrouble> read_keys(const Sink& sink);

/// Text: why there can be none.
std::variant<WebRequest, SecretTrouble> web_request(const Sink& sink, const Keys& keys, const Notice& notice,
                                                    std::int64_t now_ms);

/// The notice as the json sink and commands get it: one object, without a line end.
std::string notice_json(const Notice& notice);

/// Where a request goes, without what may be secret: https://hooks.example/…
std::string shown_url(std::string_view url);

}  // namespace earshot::notifier
