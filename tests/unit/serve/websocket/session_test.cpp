// Requests, tokens, limits and protocol violations, over real sockets.
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <new>

#include "unit/serve/auth/test_browser.hpp"
#include "unit/serve/server_fixture.hpp"

namespace session_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::test;

namespace {

std::string get(const std::string& target, const std::string& host, const std::string& more = "") {
  const bool upgrade = more.find("Connection: ") != std::string::npos;
  return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + (upgrade ? "" : "Connection: close\r\n") +
         more + "\r\n";
}

std::string status_line(const std::string& response) { return response.substr(0, response.find("\r\n")); }

std::string headers_of_upgrade() {
  return "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
         "dGhlIHNhbXBsZSBub25jZQ==\r\n";
}

/// A client's frame: masked with zeroes, so that its payload is plain.
std::string masked(unsigned char first_byte, const std::string& payload) {
  std::string out(1, static_cast<char>(first_byte));
  out += static_cast<char>(0x80 | payload.size());
  return out + std::string(4, '\0') + payload;
}

}  // namespace

TEST_CASE("without an Authorization header, hello is the first message") {
  ServerFixture fixture;
  ClientOptions stranger;
  SECTION("with the right token it is answered by welcome") {
    auto client = fixture.client(stranger);
    client->send(R"({"type":"hello","token":")" + token + R"(","client":"test/1"})");
    REQUIRE(fixture.until([&] { return client->has("welcome"); }));
    REQUIRE(client->protocol.empty());
    client->send(R"({"type":"hello","token":")" + token + R"("})");  // repeated
    client->send(R"({"type":"hello","token":"wrong"})");
    REQUIRE(fixture.until([&] { return client->has("error"); }));
    REQUIRE(client->types() == std::vector<std::string>{"welcome", "error"});
    REQUIRE_FALSE(client->ended);
  }
  SECTION("with a wrong token, or anything else first, it is closed with 4501") {
    for (const std::string text :
         {R"({"type":"hello","token":"0011"})", R"({"type":"subscribe","id":"a"})", "hi"}) {
      CAPTURE(text);
      auto client = fixture.client(stranger);
      client->send(text);
      REQUIRE(fixture.until([&] { return client->ended; }));
      REQUIRE(client->close_code == 4501);
      REQUIRE(client->frames.empty());
    }
  }
  SECTION("a message longer than allowed before authentication is closed with 1009") {
    auto client = fixture.client(stranger);
    client->send(std::string(5000, ' ') + R"({"type":"hello","token":")" + token + R"("})");
    REQUIRE(fixture.until([&] { return client->ended; }));
    REQUIRE(client->close_code == 1009);
  }
  REQUIRE(fixture.until([&] { return fixture.server.connections() <= 1; }));
}

TEST_CASE("a client without hello in time is closed with 4501") {
  ServerOptions options;
  options.limits.hello = milliseconds(50);
  ServerFixture fixture(options);
  auto client = fixture.client(ClientOptions{});
  REQUIRE(fixture.until([&] { return client->ended; }));
  REQUIRE(client->close_code == 4501);
}

TEST_CASE("a client that never completes its request is disconnected") {
  ServerOptions options;
  options.limits.handshake = milliseconds(50);
  ServerFixture fixture(options);
  asio::ip::tcp::socket socket(fixture.io);
  socket.connect(fixture.server.endpoint());
  asio::write(socket, asio::buffer(std::string("GET / HTTP/1.1\r\nHo")));
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 1; }));
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 0; }));
}

TEST_CASE("foreign hosts, foreign origins and wrong tokens are refused before the upgrade") {
  ServerOptions options;
  options.limits.keep_alive = milliseconds(50);  // exchange() ends with the connection
  ServerFixture fixture(options);
  const std::string own = "localhost:" + std::to_string(fixture.port());
  const auto ask = [&](const std::string& request) {
    return status_line(test::exchange(fixture.io, fixture.port(), request));
  };
  const std::string upgrade = headers_of_upgrade();
  REQUIRE(ask(get("/v1/ws", "evil.example", upgrade)) == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/healthz", "evil.example:" + std::to_string(fixture.port()))) == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask("GET / HTTP/1.1\r\n\r\n") == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/v1/ws", own, upgrade + "Origin: http://evil.example\r\n")) == "HTTP/1.1 403 Forbidden");
  REQUIRE(
      ask(get("/v1/ws", own, upgrade + "Origin: http://" + own + "\r\nOrigin: http://evil.example\r\n")) ==
      "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/v1/ws", own, upgrade + "Authorization: Bearer wrong\r\n")) ==
          "HTTP/1.1 401 Unauthorized");
  REQUIRE(ask(get("/v1/ws", own)) == "HTTP/1.1 426 Upgrade Required");
  REQUIRE(ask(get("/nothing", own)) == "HTTP/1.1 404 Not Found");
  REQUIRE(ask("POST / HTTP/1.1\r\nConnection: close\r\nHost: " + own + "\r\nContent-Length: 3\r\n\r\nabc") ==
          "HTTP/1.1 405 Method Not Allowed");
  REQUIRE(ask("\x16\x03\x01 is no HTTP\r\n\r\n") == "HTTP/1.1 400 Bad Request");
  REQUIRE(ask(get("/", own, "X: " + std::string(9000, 'x') + "\r\n")) ==
          "HTTP/1.1 431 Request Header Fields Too Large");
  const std::string early =
      get("/v1/ws", own, upgrade + "Authorization: Bearer " + token + "\r\n") + masked(0x81, "{}");
  REQUIRE(ask(early) == "HTTP/1.1 400 Bad Request");
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 0; }));
}

TEST_CASE("fault 144: a service worker is replaced however long its URL and its cookies are") {
  ServerFixture fixture;
  const std::string own = "127.0.0.1:" + std::to_string(fixture.port());
  const std::string worker = "Service-Worker: script\r\n", end = "Connection: close\r\n";
  const auto ask = [&](std::size_t url, const std::string& headers) {
    const std::string target = "/w.js?" + std::string(url, 'x');
    return test::exchange(fixture.io, fixture.port(), get(target, own, headers));
  };
  const auto is_replaced = [](const std::string& answer) { return answer.ends_with("}\n"); };
  const std::string cookie = "Cookie: a=" + std::string(9000, 'x') + "\r\n";
  for (const std::size_t url :
       {std::size_t(1), std::size_t(5000), std::size_t(8100), std::size_t(9000), std::size_t(2 << 20)}) {
    INFO(url);
    REQUIRE(is_replaced(ask(url, worker + end)));
    REQUIRE(is_replaced(ask(url, cookie + worker + end)));
    if (url > 4096) REQUIRE_FALSE(is_replaced(ask(url, end)));
  }
  REQUIRE_FALSE(is_replaced(ask(9000, end + "X: " + worker)));
  REQUIRE_FALSE(is_replaced(ask(9000, end + "\r\n" + worker)));
}

TEST_CASE("the page and /healthz need no token, and the page has a strict policy") {
  ServerFixture fixture;
  const std::string own = "127.0.0.1:" + std::to_string(fixture.port());
  const std::string health = test::exchange(fixture.io, fixture.port(), get("/healthz", own));
  REQUIRE(status_line(health) == "HTTP/1.1 200 OK");
  REQUIRE(health.ends_with("\r\n\r\nok\n"));
  const std::string page = test::exchange(fixture.io, fixture.port(), get("/", own));
  REQUIRE(status_line(page) == "HTTP/1.1 200 OK");
  REQUIRE(page.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
  REQUIRE(page.find("connect-src 'self' ws://" + own + ";") != std::string::npos);
  REQUIRE(page.find("src=\"/app.js\"") != std::string::npos);
  REQUIRE(test::exchange(fixture.io, fixture.port(), get("/app.js", own)).find("/v1/ws") !=
          std::string::npos);
  REQUIRE(page.find(token) == std::string::npos);
}

TEST_CASE("an invalid message is answered by an error frame and keeps the connection") {
  ServerFixture fixture;
  auto client = fixture.client();
  const std::vector<std::string> wrong = {"",
                                          "nonsense",
                                          R"({"type":"dance","id":"d"})",
                                          R"({"type":"read","id":"r","stream":"x","cursor":"y"})",
                                          R"({"type":"subscribe","id":"f","filter":{"nope":[]}})",
                                          R"({"type":"subscribe","id":"g","after":"claude/x:"})"};
  for (const std::string& text : wrong) client->send(text);
  client->send_binary("\x01\x02");
  client->send(R"({"type":"subscribe","id":"ok"})");
  REQUIRE(fixture.until([&] { return client->has("ready"); }));
  std::vector<std::string> codes;
  for (const std::string& frame : client->frames) {
    if (at(frame, "/type") == "\"error\"") codes.push_back(at(frame, "/code"));
  }
  REQUIRE(codes == std::vector<std::string>{"\"bad_message\"", "\"bad_message\"", "\"bad_message\"",
                                            "\"bad_cursor\"", "\"bad_filter\"", "\"bad_message\"",
                                            "\"bad_message\""});
}

TEST_CASE("violations of the WebSocket protocol have their close codes") {
  struct Row {
    std::string name, bytes;
    std::uint16_t code;
  };
  std::string huge = std::string("\x81\xff\x00\x00\x00\x00\x40\x00\x00\x00", 10) + std::string(4, '\0') +
                     "x";  // length: 1 GiB
  std::string flood = masked(0x01, "a");
  for (int i = 0; i < 20000; ++i) flood += masked(0x00, std::string(100, 'b'));
  const Row rows[] = {
      {"text that is not UTF-8", masked(0x81, "\xff\xfe"), 1007},
      {"reserved bits", masked(0xf1, "{}"), 1002},
      {"a reserved opcode", masked(0x83, "{}"), 1002},
      {"a fragment of nothing", masked(0x80, "{}"), 1002},
      {"a frame that is not masked", std::string("\x81\x02{}", 4), 1002},
      {"a forged length", huge, 1009},
      {"a flood of fragments", flood, 1009},
  };
  ServerFixture fixture;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    auto client = fixture.client();
    REQUIRE(fixture.until([&] { return client->has("welcome"); }));
    client->send_raw(row.bytes);
    REQUIRE(fixture.until([&] { return client->ended; }));
    REQUIRE(client->close_code == row.code);
  }
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 0; }));
}

TEST_CASE("clients above the limit receive 503 until another one disconnects") {
  ServerOptions options;
  options.limits.connections_max = 2;
  ServerFixture fixture(options);
  auto first = fixture.listener();
  auto second = fixture.listener();
  auto third = fixture.client();
  REQUIRE(fixture.until([&] { return third->refused.has_value(); }));
  REQUIRE(*third->refused == 503);
  first->vanish();
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 1; }));
  auto fourth = fixture.listener();
  REQUIRE(fourth->open);
}

TEST_CASE("fault 87: a hello of a browser is valid once, at its origin, and until it is signed out") {
  ServerFixture fixture;
  const test::TestBrowser browser;
  const std::string own = "127.0.0.1:" + std::to_string(fixture.port()), origin = "http://" + own;
  const auto ask = [&](const std::string& request, const std::string& body, const std::string& header) {
    const std::string response = test::exchange(
        fixture.io, fixture.port(),
        request + " HTTP/1.1\r\nHost: " + own + "\r\nConnection: close\r\n" + header +
            "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n" + body);
    REQUIRE(status_line(response) == "HTTP/1.1 200 OK");
    return response.substr(response.find("\r\n\r\n") + 4);
  };
  const auto unquoted = [](const std::string& text) { return text.substr(1, text.size() - 2); };
  const std::string bearer = "Authorization: Bearer " + token, from_page = "Origin: " + origin;
  const auto nonce = [&] { return unquoted(at(ask("GET /v1/challenge", "", from_page), "/nonce")); };
  const std::string daemon_id = unquoted(at(ask("GET /v1/challenge", "", from_page), "/daemon_id"));
  const std::string code = unquoted(at(ask("POST /v1/codes", "", bearer), "/code"));
  Registration made{nonce(), browser.public_key(), "Chrome", {}, {}};
  const std::string message = registration_message(daemon_id, origin, made);
  const std::string body = R"({"nonce":")" + made.nonce + R"(","key":")" + made.key +
                           R"(","name":"Chrome","proof":")" + hmac_sha256(code, message) +
                           R"(","signature":")" + browser.sign(message) + "\"}";
  const std::string id = unquoted(at(ask("POST /v1/browsers/register", body, from_page), "/browser"));
  const auto hello = [&](const SignIn& sign_in) {
    return R"({"type":"hello","sign_in":{"browser":")" + sign_in.browser + R"(","nonce":")" + sign_in.nonce +
           R"(","signature":")" + sign_in.signature + "\"}}";
  };
  ClientOptions page;
  page.origin = origin;
  const std::string first = hello(browser.answer(id, nonce(), "hello", daemon_id, origin));
  auto client = fixture.client(page);
  client->send(first);
  REQUIRE(fixture.until([&] { return client->has("welcome"); }));
  const auto is_refused = [&](const std::string& text, const std::string& at_origin) {
    page.origin = at_origin;
    auto refused = fixture.client(page);
    refused->send(text);
    REQUIRE(fixture.until([&] { return refused->ended; }));
    return refused->close_code == 4501;
  };
  REQUIRE(is_refused(first, origin));  // sent again
  const std::string localhost = "http://localhost:" + std::to_string(fixture.port());
  REQUIRE(is_refused(hello(browser.answer(id, nonce(), "hello", daemon_id, origin)), localhost));
  REQUIRE(is_refused(hello(browser.answer(id, nonce(), "hello", daemon_id, localhost)), localhost));
  REQUIRE(is_refused(hello(browser.answer(id, nonce(), "hello", daemon_id, origin)), ""));
  REQUIRE(is_refused(R"({"type":"hello","sign_in":{}})", origin));
  REQUIRE(is_refused(R"({"type":"hello","sign_in":7})", origin));
  REQUIRE_FALSE(client->ended);
  ask("POST /v1/browsers/revoke", R"({"all":true})", bearer);
  REQUIRE(fixture.until([&] { return client->ended; }));
  REQUIRE(client->close_code == 4501);
  REQUIRE(is_refused(hello(browser.answer(id, nonce(), "hello", daemon_id, origin)), origin));
}

TEST_CASE("fault 90: an idle unauthenticated connection gives way, and is closed soon") {
  ServerOptions options;
  options.limits.connections_max = 2;
  options.limits.keep_alive = std::chrono::hours(1);
  SECTION("at the limit the one that has been idle longest is dropped") {
    ServerFixture fixture(options);
    asio::ip::tcp::socket idle(fixture.io);
    idle.connect(fixture.server.endpoint());
    REQUIRE(fixture.until([&] { return fixture.server.connections() == 1; }));
    auto first = fixture.listener();
    auto second = fixture.listener();
    REQUIRE(fixture.until([&] { return fixture.server.connections() == 2; }));
    auto third = fixture.client();
    REQUIRE(fixture.until([&] { return third->refused.has_value(); }));
    REQUIRE(*third->refused == 503);
    REQUIRE_FALSE(first->ended);
  }
  SECTION("it is closed after `handshake`, whatever `keep_alive` is") {
    // Where the test pauses for so long, the request comes too late: then it is repeated with more time.
    std::string response;
    for (auto handshake = milliseconds(50); response.empty() && handshake < std::chrono::minutes(1);
         handshake *= 5) {
      options.limits.handshake = handshake;
      ServerFixture fixture(options);
      const std::string request =
          "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(fixture.port()) + "\r\n\r\n";
      response = test::exchange(fixture.io, fixture.port(), request);
    }
    REQUIRE(response.ends_with("\r\n\r\nok\n"));
  }
  SECTION("the Unix socket has connections of its own") {
    test::TemporaryDirectory home;
    ServerFixture fixture(options);
    auto socket = UnixListener::open(home / "sock");
    fixture.server.listen(std::get<UnixListener>(std::move(socket)));
    fixture.server.serve();
    auto first = fixture.listener();
    auto second = fixture.listener();
    asio::local::stream_protocol::socket owner(fixture.io);
    owner.connect(home / "sock");
    asio::write(owner, asio::buffer(std::string("GET /v1/health HTTP/1.1\r\nConnection: close\r\n\r\n")));
    std::string response;
    bool ended = false;
    asio::async_read(owner, asio::dynamic_buffer(response),
                     [&](boost::system::error_code, std::size_t) { ended = true; });
    REQUIRE(fixture.until([&] { return ended; }));
    REQUIRE(status_line(response) == "HTTP/1.1 200 OK");
  }
}

TEST_CASE("fault 91: unread responses are bounded in total") {
  ServerOptions options;
  options.limits.response_bytes_max = 100 << 10;
  options.limits.send_buffer_bytes = 4 << 10;
  ServerFixture fixture(options);
  for (int i = 0; i < 60; ++i) fixture.stream("s" + std::to_string(i));
  const std::string request =
      "GET /v1/sessions?limit=1000 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(fixture.port()) +
      "\r\nAuthorization: Bearer " + token + "\r\n\r\n";
  constexpr std::size_t clients = 20;
  std::vector<asio::ip::tcp::socket> sockets;
  const ServerContext& context = fixture.server.context();
  const auto answered = [&](unsigned status) {
    const auto found = context.counters.answers.find(status);
    return found == context.counters.answers.end() ? 0 : found->second;
  };
  for (std::size_t i = 0; i < clients; ++i) {
    asio::ip::tcp::socket& socket = sockets.emplace_back(fixture.io);
    socket.open(asio::ip::tcp::v4());
    socket.set_option(asio::socket_base::receive_buffer_size(4096));
    socket.connect(fixture.server.endpoint());
    asio::write(socket, asio::buffer(request));
    REQUIRE(fixture.until([&] { return answered(200) + answered(503) == i + 1; }));
    REQUIRE(context.response_bytes < 2 * options.limits.response_bytes_max);
  }
  REQUIRE(answered(200) >= 1);
  REQUIRE(answered(503) >= clients / 2);
  sockets.clear();
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 0; }));
  REQUIRE(context.response_bytes == 0);
}

TEST_CASE("fault 97: handlers that run or are destroyed after the server use nothing of it") {
  alignas(Server) std::array<std::byte, sizeof(Server)> memory{};
  auto io = std::make_unique<asio::io_context>(1);
  auto* server = new (memory.data()) Server(*io, ServerFixture::with_defaults({}));
  server->listen({asio::ip::address_v4::loopback(), 0});
  server->serve();
  auto client = std::make_unique<Client>(*io, server->endpoint().port(), ServerFixture::with_token());
  client->send(R"({"type":"subscribe","id":"a"})");
  REQUIRE(test::run_until(*io, [&] { return client->has("ready"); }));
  server->~Server();
  volatile std::byte* const bytes = memory.data();  // written although nothing reads it
  for (std::size_t at = 0; at < memory.size(); ++at)
    bytes[at] = std::byte(at * 37 + 1);  // a use of the former members would be a crash
  io->poll();
  client.reset();
  io.reset();
}

TEST_CASE("fault 100: a client that sends but does not read its answers is stalled, not silent") {
  // Where the test pauses for longer than `silence`, the client is silent: then it is repeated with more
  // time.
  for (auto silence = milliseconds(100);; silence *= 4) {
    CAPTURE(silence.count());
    ServerOptions options;
    options.limits.own_bytes_max = 64 << 10;
    options.limits.send_buffer_bytes = 4 << 10;
    options.limits.messages_burst = 1'000'000;
    options.limits.ping = milliseconds(20);
    options.limits.silence = silence;
    options.limits.stall = 5 * silence;
    options.limits.goodbye = milliseconds(20);
    ServerFixture fixture(options);
    auto client = fixture.sleeper();
    const std::string id(200, 'i');
    for (int i = 0; i < 2000; ++i) client->send(R"({"type":"dance","id":")" + id + "\"}");
    REQUIRE(fixture.until([&] { return fixture.server.connections() == 1; }));
    REQUIRE(fixture.until([&] { return fixture.server.connections() == 0; }));
    const Counters& counters = fixture.server.context().counters;
    const bool was_silent = counters.endings[static_cast<std::size_t>(Ending::silent)] > 0;
    if (was_silent && silence < std::chrono::seconds(5)) continue;
    REQUIRE(counters.endings[static_cast<std::size_t>(Ending::stalled)] == 1);
    REQUIRE_FALSE(was_silent);
    return;
  }
}

TEST_CASE("the accept loop survives exhausted descriptors") {
  ServerFixture fixture;
  auto before = fixture.listener();
  // UBSan needs a pipe to find an object's type, which is impossible without descriptors: let the server look
  // at its connection now (its tick is 5 ms), and use the logger.
  bool has_ticked = false;
  asio::steady_timer later(fixture.io, milliseconds(50));
  later.async_wait([&](boost::system::error_code) { has_ticked = true; });
  REQUIRE(fixture.until([&] { return has_ticked; }));
  fixture.io.restart();
  fixture.io.poll();
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  const auto level = spdlog::get_level();
  spdlog::set_level(spdlog::level::off);
  spdlog::debug("known");
  asio::ip::tcp::socket waiting(fixture.io);
  waiting.open(asio::ip::tcp::v4());
  const int highest = ::dup(0);
  REQUIRE(highest >= 0);
  ::close(highest);
  rlimit none = old;
  none.rlim_cur = static_cast<rlim_t>(highest);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  boost::system::error_code ec;
  waiting.connect(fixture.server.endpoint(), ec);
  for (int i = 0; i < 20; ++i) {  // the loop runs without descriptors
    fixture.io.restart();
    fixture.io.run_one();
  }
  const std::size_t while_exhausted = fixture.server.connections();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  spdlog::set_level(level);
  REQUIRE_FALSE(ec);
  REQUIRE(while_exhausted == 1);
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 2; }));
}

}  // namespace session_test
