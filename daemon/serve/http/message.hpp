// HTTP requests and responses as values, and the checks of Host, Origin and token. Pure.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot::serve {

class Slice;

/// The kind of listener that accepted a connection.
enum class TransportKind { tcp, unix_socket, tls };

// --- Requests ---

/// The longest body of any path; most paths accept Limits::body_bytes_max only.
constexpr std::size_t request_body_bytes_max = 64 << 10;

/// Views of the current request.
struct Request {
  std::string_view method, target;
  std::vector<std::string_view> hosts, origins, authorizations;  // all values
  bool upgrade = false;                                          // asks for a WebSocket
  std::string_view content_type = {}, if_none_match = {}, body = {};
  bool wants_worker = false;  // a browser fetches the script of a service worker

  std::string_view path() const { return target.substr(0, target.find('?')); }
  std::string_view query() const;  // behind the question mark
};

/// The query of a request: `a=b&c=d`. Never throws.
struct Query {
  static constexpr std::size_t pairs_max = 512;  // more are an error

  std::vector<std::pair<std::string, std::string>> pairs;  // decoded, in order; keys may repeat
  std::string error;                                       // for users; empty: valid

  /// The last value of the key, or `fallback`.
  std::string_view one(std::string_view key, std::string_view fallback = {}) const;
  std::vector<std::string> all(std::string_view key) const;
  bool has(std::string_view key) const { return !all(key).empty(); }

  /// `true`, `1` or no value; `false` or `0`. Anything else sets `error`.
  bool flag(std::string_view key, bool fallback);
  /// An integer in these bounds. Anything else sets `error`.
  std::size_t number(std::string_view key, std::size_t fallback, std::size_t min, std::size_t max);
  /// `view=meta`; another view than `full` or `meta` sets `error`.
  bool is_meta_view();
  /// Any other key sets `error`.
  void only(std::span<const std::string_view> known);
};

/// Decodes a form-encoded query (`+` is a space). Characters that a URL cannot contain, invalid
/// percent-encoding, invalid UTF-8 and NUL are errors.
Query parse_query(std::string_view text);

/// The addresses of this daemon. Another Host may be a DNS rebinding attack, another Origin a foreign page.
struct OwnAddress {
  std::string address;  // of the listener
  std::uint16_t port = 0;
  std::vector<std::string> names = {};  // configured, for TLS only
};

/// The result of checking the token; on the Unix socket the client is the owner.
enum class AuthResult {
  anonymous,
  wrong_token,
  owner,
  user,     // of a hub, with a token of its own
  metrics,  // by the token that reads /metrics and nothing else
};
AuthResult authenticate(const Request& request, TransportKind transport_kind, std::string_view token);
/// The origin of the page that sent it: browsers omit the header `Origin` of a GET request to the same
/// origin.
std::string origin_of(const Request& request, TransportKind transport_kind);
/// The token of the Authorization header; empty: none.
std::string_view bearer_token(const Request& request);

/// The Host, if it is safe in a response header; otherwise empty.
std::string_view plain_host(const Request& request);

// --- Responses ---

struct HttpResponse {
  enum class Kind {
    response,   // complete
    websocket,  // the connection becomes a WebSocket
    events,     // the body is an event stream
    stored,  // complete, after the browsers were stored; if that fails: `not_stored` and the reason, as 500
    later,   // `compute` makes the response, of any other kind
    sliced,  // likewise `make`
  } kind = Kind::response;
  bool meta = false;  // of websocket and events: the meta view was requested
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string etag;          // quoted; empty: none
  std::string page_policy;   // Content-Security-Policy; empty: nothing is allowed
  bool is_worker = false;    // the script of a service worker
  std::string allow;         // of 405
  std::string upgrade;       // of 426
  std::string subscription;  // of events: the `subscribe` message
  /// Of later. Calls `done` once, on the loop, possibly after the connection was closed.
  std::function<void(std::function<void(HttpResponse)> done)> compute;
  /// Of sliced. Continues until the slice is over; true: `made` is complete.
  std::function<bool(Slice& slice, HttpResponse& made)> make;
  std::string issued;      // for the audit log: what the caller was given; empty: nothing
  std::string not_stored;  // of stored
};

/// A text for users, with a newline.
HttpResponse text_response(unsigned status, std::string_view text);
HttpResponse json_response(std::string body);

/// A foreign Host or Origin: 403. On the Unix socket any Host is accepted, and no Origin.
std::optional<HttpResponse> refuse(const Request& request, TransportKind transport_kind,
                                   const OwnAddress& own);

/// A hash of the body, quoted.
std::string etag_of(std::string_view body);
/// The response, or 304 if `If-None-Match` contains its tag or is `*` (weak comparison).
HttpResponse or_not_modified(HttpResponse response, std::string_view if_none_match);

struct Delivery {
  bool keep_alive = false;
  bool http_1_0 = false;
  bool head = false;  // of HEAD: without the body
  std::string_view server;
  std::chrono::system_clock::time_point now;
};
/// The status line, the headers and, for Kind::response, the body. The body of Kind::events follows in
/// chunks, or unframed for HTTP/1.0.
std::string encode(const HttpResponse& response, const Delivery& delivery);

}  // namespace earshot::serve
