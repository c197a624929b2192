// One HTTP question to the daemon and its answer: for what needs no WebSocket. Blocking, bounded in time and
// bytes.
#pragma once
#include <string>
#include <string_view>

#include "common/client.hpp"
#include "common/endpoint.hpp"

namespace earshot::common {

struct HttpRequest {
  std::string_view method = "GET";
  std::string_view target = "/";  // a path, as it stands in the request
  std::string_view body = {};     // JSON, for POST
};

struct HttpAnswer {
  int status = 0;  // 0: there was none; `trouble` says why
  std::string body;
  std::string trouble;       // for people; to be escaped
  bool unreachable = false;  // nobody listens there
  bool ok() const { return status >= 200 && status < 300; }
};

constexpr std::size_t http_answer_bytes_max = 4 << 20;  // a longer answer is none
constexpr int http_seconds_max = 5;                     // for all of it, from connecting to the last byte

HttpAnswer ask(const DaemonAddress& door, const HttpRequest& request);

/// Of the first door that is reached; `visit` is for explain().
struct HttpVisit {
  HttpAnswer answer;
  Visit visit;
};
HttpVisit ask(const Doors& doors, const HttpRequest& request);

/// The body of a whole answer. Status 0: the bytes are no HTTP answer that this client understands.
HttpAnswer parse_answer(std::string_view bytes);

}  // namespace earshot::common
