// An HTTP answer, and how it is written. Plain text: no socket.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace earshot::serve {

struct HttpResponse {
  enum class Kind {
    response,   // all there is
    websocket,  // the connection becomes a WebSocket
    events,     // the body is the live stream
    cold,       // ask again when the sessions that `wanted` says have been read
  } kind = Kind::response;
  bool authenticated = false;  // of websocket: it is the owner's, or a user's
  bool meta = false;           // of websocket and events: asks to be shown less
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string etag;                                      // quoted; empty: none
  std::string page_policy;                               // of a page: what it may do; empty: nothing at all
  std::string allow;                                     // of 405
  std::string upgrade;                                   // of 426
  std::string subscription;                              // of events: the text of the `subscribe` message
  std::function<bool(std::string_view session)> wanted;  // of cold
  std::string_view issued_secret;                        // a secret that the body has, in words; empty: none
};

/// Text for people; a line's end is added.
HttpResponse text_response(unsigned status, std::string_view text);
HttpResponse json_response(std::string body);

/// Of the body, in quotes: the same text has the same one.
std::string etag_of(std::string_view body);
/// An `If-None-Match` that names it (or is `*`), compared weakly: nothing new.
bool matches_etag(std::string_view if_none_match, std::string_view etag);
/// The answer again when the client has not got it; 304 when it has.
HttpResponse or_not_modified(HttpResponse answer, std::string_view if_none_match);

/// The words of a status, such as `Not Found`.
std::string_view reason_of(unsigned status);

/// `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
std::string http_date(std::chrono::system_clock::time_point time);

struct Delivery {
  bool keep_alive = false;
  bool http_1_0 = false;
  bool head = false;  // of HEAD: the body stays here
  std::string_view server;
  std::chrono::system_clock::time_point now;
};
/// Status line, headers, and for Kind::response the body: all bytes of it. The body of Kind::events follows
/// in chunks, or, to HTTP/1.0, as it is until the end.
std::string encode(const HttpResponse& answer, const Delivery& delivery);

/// One chunk (RFC 9112, 7.1). Not for no bytes: that is last_chunk.
void append_chunk_head(std::string& out, std::size_t bytes);
constexpr std::string_view chunk_end = "\r\n", last_chunk = "0\r\n\r\n";

}  // namespace earshot::serve
