// Requests and responses: Host, Origin, token, query and the text of a response. No socket.
#include "serve/http/message.hpp"

#include <catch2/catch.hpp>

#include "serve/http/event_stream.hpp"
#include "serve/stream/live_log.hpp"

namespace message_test {

using namespace earshot::serve;

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

unsigned judged(std::vector<std::string_view> hosts, std::vector<std::string_view> origins,
                TransportKind transport_kind, const OwnAddress& own) {
  const auto refused = refuse({"GET", "/", std::move(hosts), std::move(origins), {}}, transport_kind, own);
  return refused ? refused->status : 200;
}

bool has_line(const std::string& bytes, const std::string& line) {
  return bytes.find("\r\n" + line + "\r\n") != std::string::npos;
}

std::string body_of(const std::string& bytes) { return bytes.substr(bytes.find("\r\n\r\n") + 4); }

}  // namespace

TEST_CASE("over TCP the Host is a loopback name with our port, and the Origin is ours or absent") {
  const OwnAddress own{"127.0.0.1", 7717};
  struct Row {
    std::vector<std::string_view> hosts, origins;
    unsigned status;
  };
  const Row rows[] = {
      {{"127.0.0.1:7717"}, {}, 200},
      {{"localhost:7717"}, {}, 200},
      {{"LocalHost:7717"}, {}, 200},
      {{"[::1]:7717"}, {}, 200},
      {{}, {}, 403},
      {{"127.0.0.1"}, {}, 403},
      {{"127.0.0.1:80"}, {}, 403},
      {{"evil.example:7717"}, {}, 403},
      {{"localhost.evil.example:7717"}, {}, 403},
      {{"evil-localhost:7717"}, {}, 403},
      {{"0.0.0.0:7717"}, {}, 403},
      {{":7717"}, {}, 403},
      {{"localhost:7717", "localhost:7717"}, {}, 403},
      {{"localhost:7717"}, {"http://localhost:7717"}, 200},
      {{"localhost:7717"}, {"http://127.0.0.1:7717"}, 200},
      {{"localhost:7717"}, {"https://localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://localhost:3000"}, 403},
      {{"localhost:7717"}, {"http://evil.example"}, 403},
      {{"localhost:7717"}, {"http://localhost:7717.evil.example"}, 403},
      {{"localhost:7717"}, {"http://evil-localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://evil.localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://evil.example/localhost:7717"}, 403},
      {{"localhost:7717"}, {"http://evil-127.0.0.1:7717"}, 403},
      {{"localhost:7717"}, {"null"}, 403},
      {{"localhost:7717"}, {""}, 403},
      {{"localhost:7717"}, {"http://localhost:7717", "http://evil.example"}, 403},
  };
  for (const Row& row : rows) {
    CAPTURE(row.hosts, row.origins);
    REQUIRE(judged(row.hosts, row.origins, TransportKind::tcp, own) == row.status);
  }
  REQUIRE(judged({"127.0.0.5:1"}, {}, TransportKind::tcp, {"127.0.0.5", 1}) == 200);
  REQUIRE(judged({"dev7.example:7717"}, {}, TransportKind::tcp, {"127.0.0.1", 7717, {"dev7.example"}}) ==
          403);
}

TEST_CASE("over TLS configured names are accepted as Host") {
  const OwnAddress own{"0.0.0.0", 7717, {"dev7.example"}};
  REQUIRE(judged({"dev7.example:7717"}, {}, TransportKind::tls, own) == 200);
  REQUIRE(judged({"Dev7.Example:7717"}, {"https://dev7.example:7717"}, TransportKind::tls, own) == 200);
  REQUIRE(judged({"dev7.example:7717"}, {"http://dev7.example:7717"}, TransportKind::tls, own) == 403);
  REQUIRE(judged({"dev7.example"}, {}, TransportKind::tls, own) == 403);
  REQUIRE(judged({"evil.dev7.example:7717"}, {}, TransportKind::tls, own) == 403);
  REQUIRE(judged({"localhost:7717"}, {"https://localhost:7717"}, TransportKind::tls, own) == 200);
  const OwnAddress usual_port{"0.0.0.0", 443, {"dev7.example"}};
  REQUIRE(judged({"dev7.example"}, {"https://dev7.example"}, TransportKind::tls, usual_port) == 200);
  REQUIRE(judged({"evil.example"}, {}, TransportKind::tls, usual_port) == 403);
}

TEST_CASE("on the Unix socket any Host is accepted, and no Origin") {
  const OwnAddress own{"127.0.0.1", 7717};
  REQUIRE(judged({"localhost"}, {}, TransportKind::unix_socket, own) == 200);
  REQUIRE(judged({"anything.example:1"}, {}, TransportKind::unix_socket, own) == 200);
  REQUIRE(judged({}, {}, TransportKind::unix_socket, own) == 200);
  REQUIRE(judged({"localhost"}, {"http://localhost"}, TransportKind::unix_socket, own) == 403);
}

TEST_CASE("the owner has the token, or uses the Unix socket") {
  const auto auth_result = [](std::vector<std::string_view> authorizations,
                              TransportKind transport_kind = TransportKind::tcp) {
    return authenticate({"GET", "/", {}, {}, std::move(authorizations)}, transport_kind, "right");
  };
  REQUIRE(auth_result({}) == AuthResult::anonymous);
  REQUIRE(auth_result({"Bearer right"}) == AuthResult::owner);
  REQUIRE(auth_result({"bearer right"}) == AuthResult::owner);
  for (const std::string_view wrong :
       {"Bearer wrong", "Basic right", "", "Bearer", "Bearer ", "Bearer righ", "Bearer right ", "right"}) {
    CAPTURE(wrong);
    REQUIRE(auth_result({wrong}) == AuthResult::wrong_token);
  }
  REQUIRE(auth_result({"Bearer right", "Bearer right"}) == AuthResult::wrong_token);
  REQUIRE(auth_result({"Bearer right"}, TransportKind::tls) == AuthResult::owner);
  REQUIRE(auth_result({}, TransportKind::tls) == AuthResult::anonymous);
  REQUIRE(auth_result({}, TransportKind::unix_socket) == AuthResult::owner);
}

TEST_CASE("a query is split and decoded") {
  REQUIRE(parse_query("").pairs.empty());
  REQUIRE(parse_query("a=b").pairs == Pairs{{"a", "b"}});
  REQUIRE(parse_query("a=1&b=2&a=3").pairs == Pairs{{"a", "1"}, {"b", "2"}, {"a", "3"}});
  REQUIRE(parse_query("a&b=&=c&&").pairs == Pairs{{"a", ""}, {"b", ""}, {"", "c"}});
  REQUIRE(parse_query("a=b=c").pairs == Pairs{{"a", "b=c"}});
  REQUIRE(parse_query("p=%2Fhome%2fu+x%2By&%6b=%C3%A4").pairs == Pairs{{"p", "/home/u x+y"}, {"k", "ä"}});
  REQUIRE(parse_query("a=b").error.empty());
}

TEST_CASE("an undecodable query is an error") {
  for (const std::string_view text :
       {"a=%", "a=%1", "a=%zz", "%=1", "a=%ff", "a=%C3", "a=%00", "a=%ED%A0%80", "x&a=%G0"}) {
    CAPTURE(text);
    REQUIRE_FALSE(parse_query(text).error.empty());
  }
  std::string many;
  for (std::size_t i = 0; i < Query::pairs_max; ++i) many += "a=1&";
  REQUIRE(parse_query(many).error.empty());
  REQUIRE_FALSE(parse_query(many + "a").error.empty());
}

TEST_CASE("query values are found by key and validated") {
  Query query = parse_query("n=7&n=8&yes=true&no=0&key&list=x&list=y");
  REQUIRE(query.one("n") == "8");
  REQUIRE(query.one("none", "else") == "else");
  REQUIRE(query.all("list") == std::vector<std::string>{"x", "y"});
  REQUIRE(query.all("none").empty());
  REQUIRE(query.number("n", 1, 1, 10) == 8);
  REQUIRE(query.number("none", 5, 1, 10) == 5);
  REQUIRE(query.flag("yes", false));
  REQUIRE_FALSE(query.flag("no", true));
  REQUIRE(query.flag("key", false));
  REQUIRE(query.flag("none", true));
  REQUIRE(query.error.empty());
  for (const std::string_view text :
       {"n=0", "n=11", "n=x", "n=", "n=-1", "n=1.5", "n=99999999999999999999999"}) {
    CAPTURE(text);
    Query bad = parse_query(text);
    REQUIRE(bad.number("n", 5, 1, 10) == 5);
    REQUIRE(bad.error == "`n` is a number from 1 to 10");
  }
  Query maybe = parse_query("f=maybe");
  maybe.flag("f", false);
  REQUIRE(maybe.error == "`f` is true or false");
  constexpr std::string_view known[] = {"n", "list"};
  query.only(known);
  REQUIRE(query.error == "unknown key `yes`; known keys: n list");
}

TEST_CASE("a response has its length and the security headers") {
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

TEST_CASE("a response to HEAD has the headers of GET and no body") {
  Delivery get, head;
  head.head = true;
  const std::string whole = encode(text_response(200, "some text"), get),
                    only_head = encode(text_response(200, "some text"), head);
  REQUIRE(only_head == whole.substr(0, whole.size() - body_of(whole).size()));
  REQUIRE(body_of(only_head).empty());
  REQUIRE(has_line(only_head, "Content-Length: 10"));
}

TEST_CASE("the Connection header follows the HTTP version") {
  Delivery delivery;
  REQUIRE(has_line(encode(text_response(200, "x"), delivery), "Connection: close"));
  delivery.keep_alive = delivery.http_1_0 = true;
  REQUIRE(has_line(encode(text_response(200, "x"), delivery), "Connection: keep-alive"));
  HttpResponse upgrade = text_response(426, "x");
  upgrade.upgrade = "websocket";
  REQUIRE(has_line(encode(upgrade, {}), "Connection: close, Upgrade"));
}

TEST_CASE("statuses have their required headers") {
  REQUIRE(has_line(encode(text_response(401, "x"), {}), "WWW-Authenticate: Bearer"));
  REQUIRE(has_line(encode(text_response(503, "x"), {}), "Retry-After: 1"));
  REQUIRE(has_line(encode(text_response(429, "x"), {}), "Retry-After: 1"));
  HttpResponse wrong_method = text_response(405, "x");
  wrong_method.allow = "GET, HEAD";
  REQUIRE(has_line(encode(wrong_method, {}), "Allow: GET, HEAD"));
  for (const unsigned status :
       {200, 304, 400, 401, 403, 404, 405, 408, 413, 414, 415, 426, 429, 431, 500, 501, 503}) {
    const std::string line = encode(text_response(status, "x"), {}).substr(0, 40);
    CAPTURE(line);
    REQUIRE(line.starts_with("HTTP/1.1 " + std::to_string(status) + " "));
    REQUIRE(line.find("unknown") == std::string::npos);
  }
}

TEST_CASE("204 has neither a body nor its length") {
  HttpResponse done;
  done.status = 204;
  const std::string bytes = encode(done, {.keep_alive = true});
  REQUIRE(bytes.starts_with("HTTP/1.1 204 No Content\r\n"));
  REQUIRE(bytes.find("Content-Length") == std::string::npos);
  REQUIRE(body_of(bytes).empty());
}

TEST_CASE("a matching If-None-Match is answered by 304 without a body") {
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

TEST_CASE("an event stream is chunked, or unframed for HTTP/1.0") {
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
  const std::string bytes(0x1abc, 'x');
  REQUIRE(chunk_of(bytes) == "1abc\r\n" + bytes + "\r\n");
  REQUIRE(chunk_of("") == "0\r\n\r\n");
}

TEST_CASE("frames of every length become lines") {
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

}  // namespace message_test
