// The raw bytes of one client, on a socket pair, through Beast and the connection behind it, while events
// happen: what it is sent is HTTP and frames of JSON, who has no token sees nothing of the sessions, and who
// goes away is gone.
// The first byte: the door (1: the owner's Unix socket), whether $TOKEN is known (2), whether the upgrade is
// made for it and each line is a message (4), how its bytes are cut (8…); the rest is what it says.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "fuzz.hpp"
#include "redact/redactor.hpp"
#include "serve/stream/catch_up.hpp"
#include "serve/stream/records.hpp"
#include "serve/stream/types.hpp"
#include "serve/websocket/connection.hpp"
#include "told_bytes.hpp"
#include "unit/serve/memory_archive.hpp"

namespace {

using namespace earshot;
using namespace earshot::serve;
using fuzz::require;

constexpr std::string_view token = "5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a3e5e5a";
constexpr std::string_view secret = "abracadabra";  // of the sessions: no stranger may see it

/// A daemon with one transcript, without its doors.
struct ServerFixture final : tail::Listener {
  ServerFixture()
      : archive(io),
        stream("claude/p/s1", "s1"),
        context("dev7", 1 << 20),
        catch_ups(io, context),
        records(context) {
    static const redact::Redactor redactor;
    context.server = "earshot/0.0.1", context.instance = "0011223344556677", context.token = token;
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
    session.changed_now(context.head());
  }

  void on_appeared(const tail::Stream&) override {}
  void on_event(const tail::Stream& from, const Event& event) override {
    Session& session = context.sessions.session_of(from);
    const Tags tags{session.id, type_of(event.body), context.sessions.stream_id(from), event.cursor};
    context.append(tags, [&](Audience audience, std::string& out) {
      append_event(out, event, {context.host, from.name(), from.session()}, context.encoding(audience));
    });
  }
  void on_changed(const tail::Stream&) override {}
  void on_reset(const tail::Stream&, std::string_view) override {}
  void on_removed(const tail::Stream&) override {}
  void on_compacting(std::string_view) override {}
  void on_pumped() override {}

  boost::asio::io_context io{1};
  test::MemoryArchive archive;
  test::FakeStream stream;
  ServerContext context;
  CatchUps catch_ups;
  Records records;
};

/// One client and its connection.
class Line {
 public:
  Line(ServerFixture& house, TransportKind transport_kind) : house_(house) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
            "there is a socket");
    ours_ = ends[0];
    Transport::Socket socket(house.io, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
    connection_ = connect(make_plain_transport(std::move(socket), house.context.limits), transport_kind,
                          house.context, Admission::yes, [this](Connection&) { ++gone_; });
  }
  ~Line() { ::close(ours_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void say(std::string_view bytes) {
    while (!bytes.empty() && gone_ == 0) {
      const ssize_t sent = ::send(ours_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      run();
      if (sent <= 0) return;  // it reads no more
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void wake() {
    if (gone_ > 0) return;
    house_.context.sessions.for_each([&](Session& session) { connection_->session_changed(session); });
    connection_->wake();
    run();
  }
  /// Until nothing moves.
  void run() {
    char piece[16 << 10];
    bool moved = true;
    while (moved) {
      house_.io.restart();
      moved = house_.io.poll() > 0;
      for (ssize_t got = 0; (got = ::recv(ours_, piece, sizeof piece, 0)) > 0; moved = true)
        heard_.append(piece, static_cast<std::size_t>(got));
    }
  }
  void go_away() {
    ::shutdown(ours_, SHUT_WR);
    run();
    for (int hours = 1; hours <= 4 && gone_ == 0; ++hours) {
      connection_->tick(std::chrono::steady_clock::now() + std::chrono::hours(hours));
      run();
    }
    require(gone_ == 1, "who goes away is gone, once");
  }
  const std::string& heard() const { return heard_; }

 private:
  ServerFixture& house_;
  int ours_ = -1, gone_ = 0;
  std::shared_ptr<Connection> connection_;
  std::string heard_;
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
  std::string says = how & 2 ? with_token(input.rest()) : std::string(input.rest());
  if (how & 4) says = upgraded(says);
  const std::size_t head = how & 4 ? says.find("\r\n\r\n") + 4 : 0;  // nothing may follow it unanswered

  ServerFixture house;
  {
    Line line(house, transport_kind);
    line.say(std::string_view(says).substr(0, head));
    std::string_view rest = std::string_view(says).substr(head);
    const std::size_t piece = how & 8 ? 1 + how / 16 * 8 : std::max<std::size_t>(1, (rest.size() + 2) / 3);
    for (int n = 1; !rest.empty(); ++n) {
      line.say(rest.substr(0, piece));
      rest.remove_prefix(std::min(rest.size(), piece));
      if (n > 3) continue;
      house.write(test::prompt(10 * n, "more") +
                  test::call(10 * n + 1, "Bash", R"({"command":"ls"})", "c" + std::to_string(n)));
      line.wake();
    }
    line.wake();
    line.go_away();
    fuzz::require_answers(line.heard());
    if (!owner)
      require(line.heard().find(secret) == std::string::npos, "a stranger sees nothing of the sessions");
  }
  require(house.context.event_connections() == 0 && house.context.state_connections == 0,
          "nobody is listened for");
  house.io.restart();
  house.io.poll();
  return 0;
}
