#include "serve/http/response.hpp"

#include <catch2/catch.hpp>

#include "serve/http/event_lines.hpp"
#include "serve/stream/frame.hpp"

using namespace earshot::serve;

namespace {

bool has_line(const std::string& bytes, const std::string& line) {
  return bytes.find("\r\n" + line + "\r\n") != std::string::npos;
}

std::string body_of(const std::string& bytes) { return bytes.substr(bytes.find("\r\n\r\n") + 4); }

}  // namespace

TEST_CASE("an answer is written with its length, and safe by its headers") {
  Delivery delivery;
  delivery.server = "earshot/1";
  delivery.now = std::chrono::system_clock::from_time_t(784111777);
  delivery.keep_alive = true;
  const std::string bytes = encode(text_response(200, "ok"), delivery);
  REQUIRE(bytes.starts_with("HTTP/1.1 200 OK\r\n"));
  REQUIRE(has_line(bytes, "Date: Sun, 06 Nov 1994 08:49:37 GMT"));
  REQUIRE(has_line(bytes, "Server: earshot/1"));
  REQUIRE(has_line(bytes, "Content-Length: 3"));
  REQUIRE(has_line(bytes, "Cache-Control: no-store"));
  REQUIRE(has_line(bytes, "X-Content-Type-Options: nosniff"));
  REQUIRE(has_line(bytes, "Referrer-Policy: no-referrer"));
  REQUIRE(bytes.find("\r\nContent-Security-Policy: default-src 'none';") != std::string::npos);
  REQUIRE(bytes.find("\r\nConnection:") == std::string::npos);
  REQUIRE(body_of(bytes) == "ok\n");
}

TEST_CASE("HEAD has the headers of GET and nothing behind them") {
  Delivery get, head;
  head.head = true;
  const std::string whole = encode(text_response(200, "some text"), get),
                    only_head = encode(text_response(200, "some text"), head);
  REQUIRE(only_head == whole.substr(0, whole.size() - body_of(whole).size()));
  REQUIRE(body_of(only_head).empty());
  REQUIRE(has_line(only_head, "Content-Length: 10"));
}

TEST_CASE("the connection's end is announced as each version of HTTP wants it") {
  Delivery delivery;
  REQUIRE(has_line(encode(text_response(200, "x"), delivery), "Connection: close"));
  delivery.keep_alive = delivery.http_1_0 = true;
  REQUIRE(has_line(encode(text_response(200, "x"), delivery), "Connection: keep-alive"));
  HttpResponse upgrade = text_response(426, "x");
  upgrade.upgrade = "websocket";
  REQUIRE(has_line(encode(upgrade, {}), "Connection: close, Upgrade"));
}

TEST_CASE("what a status asks for is there") {
  REQUIRE(has_line(encode(text_response(401, "x"), {}), "WWW-Authenticate: Bearer"));
  REQUIRE(has_line(encode(text_response(503, "x"), {}), "Retry-After: 1"));
  REQUIRE(has_line(encode(text_response(429, "x"), {}), "Retry-After: 1"));
  HttpResponse wrong_method = text_response(405, "x");
  wrong_method.allow = "GET, HEAD";
  REQUIRE(has_line(encode(wrong_method, {}), "Allow: GET, HEAD"));
  for (const unsigned status :
       {200, 304, 400, 401, 403, 404, 405, 408, 413, 414, 415, 426, 429, 431, 500, 501, 503}) {
    CAPTURE(status);
    REQUIRE(reason_of(status) != "Unknown");
  }
}

TEST_CASE("a client that has it already is told so, and sent nothing") {
  HttpResponse answer = json_response("{}");
  answer.etag = etag_of(answer.body);
  REQUIRE(answer.etag.size() == 34);
  REQUIRE(answer.etag != etag_of("{ }"));
  for (const std::string& list :
       {answer.etag, "W/" + answer.etag, "\"other\", " + answer.etag, std::string("*")}) {
    CAPTURE(list);
    const HttpResponse known = or_not_modified(answer, list);
    REQUIRE(known.status == 304);
    const std::string bytes = encode(known, {});
    REQUIRE(body_of(bytes).empty());
    REQUIRE(has_line(bytes, "ETag: " + answer.etag));
    REQUIRE(bytes.find("Content-Length") == std::string::npos);
  }
  for (const std::string& list :
       {std::string(), std::string("\"other\""), answer.etag.substr(1), std::string(",,")}) {
    CAPTURE(list);
    REQUIRE(or_not_modified(answer, list).status == 200);
  }
}

TEST_CASE("the live stream has chunks, or for HTTP/1.0 no length at all") {
  HttpResponse events;
  events.kind = HttpResponse::Kind::events;
  const std::string chunked = encode(events, {});
  REQUIRE(has_line(chunked, "Transfer-Encoding: chunked"));
  REQUIRE(chunked.find("Content-Length") == std::string::npos);
  Delivery old;
  old.http_1_0 = true;
  const std::string plain_body = encode(events, old);
  REQUIRE(plain_body.find("Transfer-Encoding") == std::string::npos);
  REQUIRE(has_line(plain_body, "Connection: close"));
  std::string chunk;
  append_chunk_head(chunk, 0x1abc);
  REQUIRE(chunk == "1abc\r\n");
}

TEST_CASE("frames of every length are lines") {
  std::string frames, expected;
  for (const std::size_t size : {0u, 1u, 125u, 126u, 65535u, 65536u, 100'000u}) {
    const std::string payload(size, 'x');
    frames += *make_frame(payload);
    expected += payload + "\n";
  }
  std::string lines = "before\n";
  append_lines(lines, frames);
  REQUIRE(lines == "before\n" + expected);
}
