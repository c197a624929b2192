// The bytes of one client on a socket pair, through Beast and the connection, during events: every response
// is valid HTTP or JSON frames, a client without the token gets no session data, and a disconnected client is
// removed. Input: one byte of flags (1: the owner's Unix socket, 2: with $TOKEN, 4: upgraded, each line a
// message, 8…: the split), then the client's bytes.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "fuzz.hpp"
#include "redact/redactor.hpp"
#include "response_check.hpp"
#include "serve/http/connection.hpp"
#include "serve/stream/catch_up.hpp"
#include "serve/stream/records.hpp"
#include "serve/stream/subscription.hpp"

#include "unit/serve/memory_archive.hpp"

namespace {

using namespace earshot;
using namespace earshot::serve;
using fuzz::require;

constexpr std::string_view token = "5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a";
constexpr std::string_view secret =
    "abracadabra";  // in the sessions; must not reach an unauthenticated client

/// A daemon with one transcript, without its doors.
struct ServerFixture final : tail::StreamObserver {
  ServerFixture()
      : archive(io),
        stream("claude/p/s1", "s1"),
        context("dev7", 1 << 20),
        catch_ups(io, context),
        records(context) {
    static const redact::Redactor redactor;
    context.server = "earshot/0.0.1", context.instance = "0011223344556677", context.access.token = token;
    context.own_address = {"127.0.0.1", 7717};
    context.limits.send_buffer_bytes = 1 << 20;
    context.filter = &redactor;
    context.sessions.set_filter(redactor);
    context.archive = &archive, context.catch_ups = &catch_ups, context.records = &records;
    archive.add(stream);
    write(test::prompt(0, secret));
  }
  void write(const std::string& lines) {
    stream.write(lines, this);
    Session& session = context.sessions.session_of(stream);
    context.sessions.refresh(session);
    session.changed_now(context.logs.head());
  }

  void on_added(const tail::Stream&) override {}
  void on_event(const tail::Stream& from, const Event& event) override {
    Session& session = context.sessions.session_of(from);
    const Tags tags{session.id, type_of(event.body), context.sessions.stream_id(from), event.cursor};
    context.logs.append(tags, [&](Audience audience, std::string& out) {
      append_event(out, event, {context.host, from.name(), from.session()}, context.encoding(audience));
    });
  }
  void on_changed(const tail::Stream&) override {}
  void on_reset(const tail::Stream&, std::string_view) override {}
  void on_renamed(const tail::Stream&, std::string_view) override {}
  void on_removed(const tail::Stream&) override {}
  void on_compacting(std::string_view) override {}
  void on_batch_end() override {}

  boost::asio::io_context io{1};
  test::MemoryArchive archive;
  test::FakeStream stream;
  ServerContext context;
  CatchUps catch_ups;
  Records records;
};

/// One client and its connection.
class TestClient {
 public:
  TestClient(ServerFixture& server, TransportKind transport_kind) : server_(server) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
            "socketpair succeeds");
    ours_ = ends[0];
    Transport::Socket socket(server.io, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
    connection_ = connect(make_plain_transport(std::move(socket), server.context.limits), transport_kind,
                          server.context, Admission::yes, [this](Connection&) { ++closed_; });
  }
  ~TestClient() { ::close(ours_); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  void send(std::string_view bytes) {
    while (!bytes.empty() && closed_ == 0) {
      const ssize_t sent = ::send(ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      run();
      if (sent <= 0) return;  // it reads no more
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void wake() {
    if (closed_ > 0) return;
    server_.context.sessions.for_each([&](Session& session) {
      if (Subscriber* subscriber = connection_->subscriber()) subscriber->session_changed(session);
    });
    connection_->wake();
    run();
  }
  /// Until nothing moves.
  void run() {
    char piece[16 << 10];
    bool moved = true;
    while (moved) {
      server_.io.restart();
      moved = server_.io.poll() > 0;
      for (ssize_t got = 0; (got = ::recv(ours_, piece, sizeof piece, 0)) > 0; moved = true)
        received_.append(piece, static_cast<std::size_t>(got));
    }
  }
  void disconnect() {
    ::shutdown(ours_, SHUT_WR);
    run();
    for (int hours = 1; hours <= 4 && closed_ == 0; ++hours) {
      connection_->tick(std::chrono::steady_clock::now() + std::chrono::hours(hours));
      run();
    }
    require(closed_ == 1, "a disconnect is reported once");
  }
  const std::string& received() const { return received_; }

 private:
  ServerFixture& server_;
  int ours_ = -1, closed_ = 0;
  std::shared_ptr<Connection> connection_;
  std::string received_;
};

std::string with_token(std::string_view text) {
  constexpr std::string_view name = "$TOKEN";
  std::string out;
  for (std::size_t at = 0; (at = text.find(name)) != text.npos; text.remove_prefix(at + name.size()))
    out.append(text.substr(0, at)).append(token);
  return out.append(text);
}

/// A client's text frame; masked with zeros, so that it stays readable.
std::string framed(std::string_view text) {
  std::string out("\x81");
  if (text.size() < 126) {
    out += static_cast<char>(0x80 | text.size());
  } else {
    out += static_cast<char>(0xFE);
    out += static_cast<char>(text.size() >> 8 & 255);
    out += static_cast<char>(text.size() & 255);
  }
  return out.append(4, '\0').append(text);
}

std::string upgraded(std::string_view lines) {
  std::string out =
      "GET /v1/ws HTTP/1.1\r\nHost: localhost:7717\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  constexpr std::size_t frame_bytes_max = 65535;
  for (fuzz::Input input(reinterpret_cast<const std::uint8_t*>(lines.data()), lines.size()); !input.done();)
    out += framed(input.until('\n').substr(0, frame_bytes_max));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const std::size_t how = input.byte();
  const TransportKind transport_kind = how & 1 ? TransportKind::unix_socket : TransportKind::tcp;
  const bool owner = how & 3;
  std::string input_text = how & 2 ? with_token(input.rest()) : std::string(input.rest());
  if (how & 4) input_text = upgraded(input_text);
  const std::size_t head = how & 4 ? input_text.find("\r\n\r\n") + 4 : 0;

  ServerFixture server;
  {
    TestClient client(server, transport_kind);
    client.send(std::string_view(input_text).substr(0, head));
    std::string_view rest = std::string_view(input_text).substr(head);
    const std::size_t piece = how & 8 ? 1 + how / 16 * 8 : std::max<std::size_t>(1, (rest.size() + 2) / 3);
    for (int n = 1; !rest.empty(); ++n) {
      client.send(rest.substr(0, piece));
      rest.remove_prefix(std::min(rest.size(), piece));
      if (n > 3) continue;
      server.write(test::prompt(10 * n, "more") +
                   test::call(10 * n + 1, "Bash", R"({"command":"ls"})", "c" + std::to_string(n)));
      client.wake();
    }
    client.wake();
    client.disconnect();
    fuzz::require_responses(client.received());
    if (!owner)
      require(client.received().find(secret) == std::string::npos,
              "an unauthenticated client gets no session data");
  }
  require(server.context.logs.readers() == 0 && server.context.state_connections == 0,
          "no connection remains");
  server.io.restart();
  server.io.poll();
  return 0;
}
