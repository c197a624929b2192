// HTTP responses and their encoding. Pure.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace earshot::serve {

struct HttpResponse {
  enum class Kind {
    response,   // complete
    websocket,  // the connection becomes a WebSocket
    events,     // the body is an event stream
    cold,       // repeat the request after the sessions for which `wanted` is true were read
  } kind = Kind::response;
  bool meta = false;  // of websocket and events: the meta view was requested
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string etag;                                      // quoted; empty: none
  std::string page_policy;                               // Content-Security-Policy; empty: nothing is allowed
  std::string allow;                                     // of 405
  std::string upgrade;                                   // of 426
  std::string subscription;                              // of events: the `subscribe` message
  std::function<bool(std::string_view session)> wanted;  // of cold
  std::string_view issued_secret;  // for the audit log: the secret in the body; empty: none
};

/// A text for users, with a newline.
HttpResponse text_response(unsigned status, std::string_view text);
HttpResponse json_response(std::string body);

/// A hash of the body, quoted.
std::string etag_of(std::string_view body);
/// Whether `If-None-Match` contains it, or is `*` (weak comparison).
bool matches_etag(std::string_view if_none_match, std::string_view etag);
/// The response, or 304 if the client has it.
HttpResponse or_not_modified(HttpResponse answer, std::string_view if_none_match);

/// The reason phrase of a status, such as `Not Found`.
std::string_view reason_of(unsigned status);

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
std::string http_date(std::chrono::system_clock::time_point time);

struct Delivery {
  bool keep_alive = false;
  bool http_1_0 = false;
  bool head = false;  // of HEAD: without the body
  std::string_view server;
  std::chrono::system_clock::time_point now;
};
/// The status line, the headers and, for Kind::response, the body. The body of Kind::events follows in
/// chunks, or unframed for HTTP/1.0.
std::string encode(const HttpResponse& answer, const Delivery& delivery);

/// The head of a chunk (RFC 9112, 7.1); `bytes` is not 0.
void append_chunk_head(std::string& out, std::size_t bytes);
constexpr std::string_view chunk_end = "\r\n", last_chunk = "0\r\n\r\n";

}  // namespace earshot::serve
