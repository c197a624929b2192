// A server on real loopback sockets, with fake streams and WebSocket clients.
#pragma once
#include <algorithm>
#include <boost/asio.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/server.hpp"
#include "unit/serve/client.hpp"
#include "unit/serve/support.hpp"

namespace earshot::test {

namespace asio = boost::asio;
using serve::Server;
using serve::ServerOptions;
using std::chrono::milliseconds;

inline const std::string token = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct ServerFixture {
  explicit ServerFixture(ServerOptions options = {}) : server(io, with_defaults(std::move(options))) {
    server.listen({asio::ip::address_v4::loopback(), 0});
    server.serve();
  }
  static ServerOptions with_defaults(ServerOptions options) {
    options.host = "dev7";
    options.version = "0.0.1";
    options.token = token;
    options.limits.tick = milliseconds(5);
    // On a loaded machine a test may not run for seconds: only the times that it sets itself apply.
    using serve::Limits;
    for (const auto time : {&Limits::handshake, &Limits::hello, &Limits::ping, &Limits::silence,
                            &Limits::keep_alive, &Limits::stall, &Limits::answer, &Limits::heartbeat})
      if (options.limits.*time == Limits{}.*time) options.limits.*time = std::chrono::minutes(10);
    return options;
  }

  std::uint16_t port() const { return server.endpoint().port(); }
  bool until(const std::function<bool()>& condition) { return test::run_until(io, condition); }
  FakeStream& stream(const std::string& session, const std::string& cwd = "/home/u/api") {
    streams.push_back(std::make_unique<FakeStream>("claude/p/" + session, session));
    FakeStream& made = *streams.back();
    made.write(test::prompt(0, "begin", cwd), nullptr);  // history
    server.on_added(made);
    server.on_batch_end();
    return made;
  }
  /// One turn: about eight events.
  void turn(FakeStream& stream, int n, const std::string& text = "more") {
    stream.write(test::prompt(10 * n, text) +
                     test::call(10 * n + 1, "Bash", R"({"command":"ls"})", "c" + std::to_string(n)) +
                     test::result(10 * n + 2, "c" + std::to_string(n), "ok") +
                     test::answer(10 * n + 3, "done"),
                 &server);
    server.on_batch_end();
  }
  std::unique_ptr<Client> client(ClientOptions options = with_token()) {
    return std::make_unique<Client>(io, port(), options);
  }
  static ClientOptions with_token() {
    ClientOptions options;
    options.token = token;
    return options;
  }
  /// The client has received all events of this transcript.
  bool caught_up(const Client& client, const FakeStream& stream) {
    const std::string end = "\"" + to_string(stream.transcript()->end()) + "\"";
    return until([&] {
      return std::any_of(client.frames.rbegin(), client.frames.rend(),
                         [&](const std::string& frame) { return at(frame, "/cursor") == end; });
    });
  }
  /// A client with a subscription.
  std::unique_ptr<Client> listener(const std::string& more = "", ClientOptions options = with_token()) {
    auto made = client(std::move(options));
    made->send(R"({"type":"subscribe","id":"a")" + more + "}");
    REQUIRE(until([&] { return made->has("ready"); }));
    return made;
  }
  /// A client that reads nothing until read().
  std::unique_ptr<Client> sleeper() {
    ClientOptions options = with_token();
    options.receive_buffer = 4096;
    options.reading = false;
    return client(std::move(options));
  }
  /// A sleeper with a subscription, and more events than its buffers have room for.
  std::unique_ptr<Client> overwhelmed() {
    FakeStream& busy = stream("s1");
    auto made = sleeper();
    made->send(R"({"type":"subscribe","id":"z"})");
    REQUIRE(until([&] { return server.context().logs.readers() == 1; }));
    for (int n = 1; n <= 400; ++n) turn(busy, n, std::string(3000, 'x'));
    return made;
  }

  asio::io_context io{1};
  std::vector<std::unique_ptr<FakeStream>> streams;
  Server server;
};

/// The text of /metrics.
inline std::string metrics_page(const Server& server) {
  serve::SessionFigures figures(server.context().sessions);
  server.context().sessions.for_each([&](const serve::Session& session) {
    figures.add(session, is_live(session, server.context().recent));
  });
  serve::MetricsPage page;
  server.context().fill_metrics(page, figures);
  return page.text;
}

inline std::size_t count(const std::vector<std::string>& names, std::string_view name) {
  return static_cast<std::size_t>(std::count(names.begin(), names.end(), name));
}

}  // namespace earshot::test
