// The judgement of an HTTP request, before anything else is done with it. Plain text: no socket.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::serve {

struct Request {
  std::string_view method, target;
  std::vector<std::string_view> hosts, origins, authorizations;  // as often as they stand there
  bool upgrade = false;                                          // asks for a WebSocket
};

/// The addresses that a browser on this machine may have used to reach us. Anything else is another site that
/// had its name resolve to loopback (DNS rebinding), or a page that has no business here.
struct Own {
  std::string address;  // that we listen on: 127.0.0.1, ::1
  std::uint16_t port = 0;
};

struct Answer {
  enum class Kind { response, websocket } kind = Kind::response;
  bool authenticated = false;  // of websocket: a right token came with the request
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string allow;    // of 405
  std::string upgrade;  // of 426
};

Answer judge(const Request& request, const Own& own, std::string_view token);

/// The page at `/` may do nothing at all.
constexpr std::string_view page_policy =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace earshot::serve
