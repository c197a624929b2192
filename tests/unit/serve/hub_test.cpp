// The hub over real sockets on loopback: a fake source of transcripts on one side, a WebSocket client on the other.
#include "serve/hub.hpp"

#include <sys/resource.h>

#include <boost/asio.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "client.hpp"
#include "support.hpp"

using namespace earshot;
using namespace earshot::serve;
using test::at;
using test::Client;
using test::ClientOptions;
using test::FakeStream;

namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
const std::string token = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

struct House {
  explicit House(HubOptions options = {}) : hub(io, with_defaults(std::move(options))) {
    hub.listen({asio::ip::address_v4::loopback(), 0});
    hub.serve();
  }
  static HubOptions with_defaults(HubOptions options) {
    options.host = "dev7";
    options.version = "0.0.1";
    options.token = token;
    options.limits.tick = milliseconds(5);
    return options;
  }

  std::uint16_t port() const { return hub.endpoint().port(); }
  bool until(const std::function<bool()>& condition) { return test::run_until(io, condition); }
  FakeStream& stream(const std::string& session, const std::string& cwd = "/home/u/api") {
    streams.push_back(std::make_unique<FakeStream>("claude/p/" + session, session));
    FakeStream& made = *streams.back();
    made.write(test::prompt(0, "begin", cwd), nullptr);  // history: told by nobody
    hub.on_appeared(made);
    hub.on_pumped();
    return made;
  }
  /// One turn of an agent: eight events or so.
  void turn(FakeStream& stream, int n, const std::string& text = "more") {
    stream.write(test::prompt(10 * n, text) + test::call(10 * n + 1, "Bash", R"({"command":"ls"})", "c" + std::to_string(n)) +
                     test::result(10 * n + 2, "c" + std::to_string(n), "ok") + test::answer(10 * n + 3, "done"),
                 &hub);
    hub.on_pumped();
  }
  std::unique_ptr<Client> client(ClientOptions options = with_token()) { return std::make_unique<Client>(io, port(), options); }
  static ClientOptions with_token() {
    ClientOptions options;
    options.token = token;
    return options;
  }
  /// The client has everything that this transcript says.
  bool caught_up(const Client& client, const FakeStream& stream) {
    const std::string end = "\"" + to_string(stream.transcript()->end()) + "\"";
    return until([&] {
      return std::any_of(client.frames.rbegin(), client.frames.rend(),
                         [&](const std::string& frame) { return at(frame, "/cursor") == end; });
    });
  }
  /// A client that has subscribed and is ready.
  std::unique_ptr<Client> listener(const std::string& more = "", ClientOptions options = with_token()) {
    auto made = client(std::move(options));
    made->send(R"({"type":"subscribe","id":"a")" + more + "}");
    REQUIRE(until([&] { return made->has("ready"); }));
    return made;
  }

  asio::io_context io{1};
  std::vector<std::unique_ptr<FakeStream>> streams;
  Hub hub;
};

std::size_t count(const std::vector<std::string>& names, std::string_view name) {
  return static_cast<std::size_t>(std::count(names.begin(), names.end(), name));
}

std::string get(const std::string& target, const std::string& host, const std::string& more = "") {
  return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n";
}

std::string status_line(const std::string& response) { return response.substr(0, response.find("\r\n")); }

std::string headers_of_upgrade() {
  return "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
}

/// A client's frame: masked with zeroes, so that its payload is plain.
std::string masked(unsigned char first_byte, const std::string& payload) {
  std::string out(1, static_cast<char>(first_byte));
  out += static_cast<char>(0x80 | payload.size());
  return out + std::string(4, '\0') + payload;
}

/// The sequence of cursors' offsets of a stream's events: strictly forward, or something came twice or out of order.
bool is_forward(const std::vector<std::string>& frames, const std::string& stream) {
  std::pair<std::uint64_t, std::uint64_t> last{0, 0};
  for (const std::string& frame : frames) {
    if (at(frame, "/stream") != "\"" + stream + "\"" || at(frame, "/cursor") == "absent") continue;
    const std::string text = at(frame, "/cursor");
    const auto cursor = parse_cursor(text.substr(1, text.size() - 2));
    if (!cursor) return false;
    const std::pair<std::uint64_t, std::uint64_t> here{cursor->offset, cursor->index};
    if (here <= last) return false;
    last = here;
  }
  return true;
}

}  // namespace

TEST_CASE("with a token in the header, welcome is the first message, then the snapshot, ready, and what happens") {
  House house;
  FakeStream& stream = house.stream("s1");
  ClientOptions options = House::with_token();
  options.protocol = "chat, earshot.v1";
  auto client = house.client(options);
  REQUIRE(house.until([&] { return client->has("welcome"); }));
  REQUIRE(client->protocol == "earshot.v1");
  client->send(R"({"type":"subscribe","id":"a"})");
  REQUIRE(house.until([&] { return client->has("ready"); }));
  house.turn(stream, 1);
  REQUIRE(house.caught_up(*client, stream));
  const auto types = client->types();
  CAPTURE(types);
  REQUIRE(std::vector<std::string>(types.begin(), types.begin() + 3) == std::vector<std::string>{"welcome", "session", "ready"});
  REQUIRE(count(types, "turn.started") == 1);
  REQUIRE(count(types, "tool.invoked") == 1);
  REQUIRE(count(types, "tool.finished") == 1);
  const std::string& welcome = client->frames[0];
  REQUIRE(at(welcome, "/protocol") == "1");
  REQUIRE(at(welcome, "/server") == "\"earshot/0.0.1\"");
  REQUIRE(at(welcome, "/host") == "\"dev7\"");
  REQUIRE(at(welcome, "/view") == "\"full\"");
  REQUIRE(at(welcome, "/limits") == R"({"frame_bytes":1048576,"subscriptions":32})");
  REQUIRE(at(client->frames[1], "/turn/prompt") == "\"begin\"");
  for (const std::string& frame : client->frames) REQUIRE(at(frame, "/type") != "no JSON");
}

TEST_CASE("without a header, hello comes first") {
  House house;
  ClientOptions stranger;
  SECTION("with the right token it is welcome") {
    auto client = house.client(stranger);
    client->send(R"({"type":"hello","token":")" + token + R"(","client":"test/1"})");
    REQUIRE(house.until([&] { return client->has("welcome"); }));
    REQUIRE(client->protocol.empty());
    client->send(R"({"type":"hello","token":")" + token + R"("})");
    REQUIRE(house.until([&] { return client->has("error"); }));
    REQUIRE_FALSE(client->ended);
  }
  SECTION("with a wrong token, or anything else first, it is closed with 4501") {
    for (const std::string text : {R"({"type":"hello","token":"0011"})", R"({"type":"subscribe","id":"a"})", "hi"}) {
      CAPTURE(text);
      auto client = house.client(stranger);
      client->send(text);
      REQUIRE(house.until([&] { return client->ended; }));
      REQUIRE(client->close_code == 4501);
      REQUIRE(client->frames.empty());
    }
  }
  SECTION("a message longer than a stranger may send is closed with 1009") {
    auto client = house.client(stranger);
    client->send(std::string(5000, ' ') + R"({"type":"hello","token":")" + token + R"("})");
    REQUIRE(house.until([&] { return client->ended; }));
    REQUIRE(client->close_code == 1009);
  }
  REQUIRE(house.until([&] { return house.hub.connections() <= 1; }));
}

TEST_CASE("who does not say hello in time is closed with 4501") {
  HubOptions options;
  options.limits.hello = milliseconds(50);
  House house(options);
  auto client = house.client(ClientOptions{});
  REQUIRE(house.until([&] { return client->ended; }));
  REQUIRE(client->close_code == 4501);
}

TEST_CASE("who never finishes the handshake is gone") {
  HubOptions options;
  options.limits.handshake = milliseconds(50);
  House house(options);
  asio::ip::tcp::socket socket(house.io);
  socket.connect(house.hub.endpoint());
  asio::write(socket, asio::buffer(std::string("GET / HTTP/1.1\r\nHo")));
  REQUIRE(house.until([&] { return house.hub.connections() == 1; }));
  REQUIRE(house.until([&] { return house.hub.connections() == 0; }));
}

TEST_CASE("hostile hosts, origins and tokens are refused before the upgrade") {
  House house;
  const std::string own = "localhost:" + std::to_string(house.port());
  const auto ask = [&](const std::string& request) { return status_line(test::exchange(house.io, house.port(), request)); };
  const std::string upgrade = headers_of_upgrade();
  REQUIRE(ask(get("/v1/ws", "evil.example", upgrade)) == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/healthz", "evil.example:" + std::to_string(house.port()))) == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask("GET / HTTP/1.1\r\n\r\n") == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/v1/ws", own, upgrade + "Origin: http://evil.example\r\n")) == "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/v1/ws", own, upgrade + "Origin: http://" + own + "\r\nOrigin: http://evil.example\r\n")) ==
          "HTTP/1.1 403 Forbidden");
  REQUIRE(ask(get("/v1/ws", own, upgrade + "Authorization: Bearer wrong\r\n")) == "HTTP/1.1 401 Unauthorized");
  REQUIRE(ask(get("/v1/ws", own)) == "HTTP/1.1 426 Upgrade Required");
  REQUIRE(ask(get("/nothing", own)) == "HTTP/1.1 404 Not Found");
  REQUIRE(ask("POST / HTTP/1.1\r\nHost: " + own + "\r\nContent-Length: 3\r\n\r\nabc") == "HTTP/1.1 405 Method Not Allowed");
  REQUIRE(ask("\x16\x03\x01 is no HTTP\r\n\r\n") == "HTTP/1.1 400 Bad Request");
  REQUIRE(ask(get("/", own, "X: " + std::string(9000, 'x') + "\r\n")) == "HTTP/1.1 431 Request Header Fields Too Large");
  const std::string early = get("/v1/ws", own, upgrade + "Authorization: Bearer " + token + "\r\n") + masked(0x81, "{}");
  REQUIRE(ask(early) == "HTTP/1.1 400 Bad Request");
  REQUIRE(house.until([&] { return house.hub.connections() == 0; }));
}

TEST_CASE("the page and the health check need no token, and the page may do nothing") {
  House house;
  const std::string own = "127.0.0.1:" + std::to_string(house.port());
  const std::string health = test::exchange(house.io, house.port(), get("/healthz", own));
  REQUIRE(status_line(health) == "HTTP/1.1 200 OK");
  REQUIRE(health.ends_with("\r\n\r\nok\n"));
  const std::string page = test::exchange(house.io, house.port(), get("/", own));
  REQUIRE(status_line(page) == "HTTP/1.1 200 OK");
  REQUIRE(page.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
  REQUIRE(page.find("/v1/ws") != std::string::npos);
  REQUIRE(page.find(token) == std::string::npos);
}

TEST_CASE("what a client gets wrong is an error frame, and the connection stands") {
  House house;
  auto client = house.client();
  const std::vector<std::string> wrong = {"",
                                          "nonsense",
                                          R"({"type":"dance","id":"d"})",
                                          R"({"type":"read","id":"r","stream":"x","cursor":"y"})",
                                          R"({"type":"subscribe","id":"f","filter":{"nope":[]}})",
                                          R"({"type":"subscribe","id":"g","after":["claude/x:"]})"};
  for (const std::string& text : wrong) client->send(text);
  client->send_binary("\x01\x02");
  client->send(R"({"type":"subscribe","id":"ok"})");
  REQUIRE(house.until([&] { return client->has("ready"); }));
  std::vector<std::string> codes;
  for (const std::string& frame : client->frames) {
    if (at(frame, "/type") == "\"error\"") codes.push_back(at(frame, "/code"));
  }
  REQUIRE(codes == std::vector<std::string>{"\"bad_message\"", "\"bad_message\"", "\"bad_message\"", "\"unsupported\"",
                                            "\"bad_filter\"", "\"unsupported\"", "\"bad_message\""});
}

TEST_CASE("violations of the WebSocket protocol have their close codes") {
  struct Row {
    std::string name, bytes;
    std::uint16_t code;
  };
  std::string huge = std::string("\x81\xff\x00\x00\x00\x00\x40\x00\x00\x00", 10) + std::string(4, '\0') + "x";  // says: 1 GiB
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
  House house;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    auto client = house.client();
    REQUIRE(house.until([&] { return client->has("welcome"); }));
    client->send_raw(row.bytes);
    REQUIRE(house.until([&] { return client->ended; }));
    REQUIRE(client->close_code == row.code);
  }
  REQUIRE(house.until([&] { return house.hub.connections() == 0; }));
}

TEST_CASE("snapshots and events fit together without gap or repetition, whenever a client comes") {
  House house;
  FakeStream& one = house.stream("s1");
  FakeStream& two = house.stream("s2");
  std::vector<std::unique_ptr<Client>> clients;
  int n = 1;
  for (; n <= 60; ++n) {
    house.turn(one, n);
    if (n % 2) house.turn(two, n);
    if (n % 3 == 0 && n <= 45) {
      clients.push_back(house.client());
      clients.back()->send(R"({"type":"subscribe","id":"a"})");
    }
    for (int i = 0; i < 3; ++i) {
      house.io.restart();
      house.io.poll_one();
    }
  }
  REQUIRE(clients.size() == 15);
  const auto whole = [&](const FakeStream& stream) { return to_string(stream.transcript()->end()); };
  for (auto& client : clients) {
    REQUIRE(house.until([&] { return client->has("ready"); }));
    house.turn(one, n++);
    house.turn(two, n++);
  }
  for (auto& client : clients) {
    REQUIRE(house.until([&] {
      return !client->frames.empty() && at(client->frames.back(), "/cursor") == "\"" + whole(two) + "\"";
    }));
    // The snapshot's cursors, then every event after them: exactly those that the transcript has.
    for (const FakeStream* stream : {&one, &two}) {
      const std::string name = "\"" + stream->name() + "\"";
      std::optional<Cursor> from;
      std::vector<std::string> got;
      for (const std::string& frame : client->frames) {
        if (at(frame, "/type") == "\"session\"" && at(frame, "/session") == "\"" + stream->session() + "\"") {
          REQUIRE_FALSE(from);
          const std::string text = at(frame, "/cursors/0");
          from = parse_cursor(text.substr(name.size(), text.size() - name.size() - 1));
          REQUIRE(from);
        }
        if (at(frame, "/stream") == name) {
          REQUIRE(from);  // nothing before the snapshot
          got.push_back(at(frame, "/cursor"));
        }
      }
      REQUIRE(from);
      REQUIRE(is_forward(client->frames, stream->name()));
      // Every turn makes the same events, so their number in any stretch of whole turns is known.
      const std::string first = got.empty() ? "" : got.front();
      REQUIRE_FALSE(first.empty());
      const auto first_cursor = parse_cursor(first.substr(1, first.size() - 2));
      REQUIRE(first_cursor);
      REQUIRE(first_cursor->offset > from->offset);
    }
  }
  // Those who came last saw fewer events, and all saw the same end.
  const auto events_of = [](const Client& client) {
    std::vector<std::string> events;
    for (const std::string& frame : client.frames) {
      if (at(frame, "/cursor") != "absent") events.push_back(frame);
    }
    return events;
  };
  const auto longest = events_of(*clients.front());
  for (auto& client : clients) {
    const auto events = events_of(*client);
    REQUIRE(events.size() <= longest.size());
    REQUIRE(std::equal(events.rbegin(), events.rend(), longest.rbegin()));
  }
}

TEST_CASE("a client that stops reading is told that it lagged, costs no memory, and holds up nobody") {
  HubOptions options;
  options.log_bytes_max = 8 * LiveLog::segment_bytes;
  House house(options);
  FakeStream& loud = house.stream("loud");
  FakeStream& quiet = house.stream("quiet");
  ClientOptions sleepy = House::with_token();
  sleepy.receive_buffer = 4096;
  sleepy.reading = false;
  auto sleeper = house.client(sleepy);
  sleeper->send(R"({"type":"subscribe","id":"z"})");
  auto awake = house.listener();
  REQUIRE(house.until([&] { return house.hub.shared().event_connections == 2; }));
  std::size_t seen = 0;
  for (int n = 1; house.hub.shared().log.first() < 4000; ++n) {
    house.turn(loud, n, std::string(2000, 'x'));
    REQUIRE(house.hub.shared().log.bytes() <= options.log_bytes_max);
    if (n % 20) continue;
    const std::string end = "\"" + to_string(loud.transcript()->end()) + "\"";
    REQUIRE(house.until([&] { return !awake->frames.empty() && at(awake->frames.back(), "/cursor") == end; }));
    REQUIRE(is_forward(awake->frames, loud.name()));
    seen += awake->frames.size();
    awake->frames.clear();
  }
  REQUIRE(seen > 4000);
  house.turn(quiet, 1);
  REQUIRE(house.caught_up(*awake, quiet));
  REQUIRE_FALSE(awake->has("lagged"));

  sleeper->read();
  REQUIRE(house.until([&] { return sleeper->has("lagged"); }));
  house.turn(loud, 100000, "fresh");
  const std::string end = "\"" + to_string(loud.transcript()->end()) + "\"";
  REQUIRE(house.until([&] { return at(sleeper->frames.back(), "/cursor") == end; }));
  const auto types = sleeper->types();
  REQUIRE(types.front() == "welcome");
  REQUIRE(count(types, "lagged") >= 1);
  const auto last_lag = std::find(types.rbegin(), types.rend(), "lagged");
  REQUIRE(last_lag != types.rbegin());
  REQUIRE(*std::prev(last_lag) == "session");  // fresh snapshots follow at once
  REQUIRE(is_forward(sleeper->frames, loud.name()));
}

TEST_CASE("a client that takes nothing for too long is dropped") {
  HubOptions options;
  options.limits.stall = milliseconds(50);
  options.limits.goodbye = milliseconds(50);
  House house(options);
  FakeStream& stream = house.stream("s1");
  ClientOptions sleepy = House::with_token();
  sleepy.receive_buffer = 4096;
  sleepy.reading = false;
  auto sleeper = house.client(sleepy);
  sleeper->send(R"({"type":"subscribe","id":"z"})");
  REQUIRE(house.until([&] { return house.hub.shared().event_connections == 1; }));
  for (int n = 1; n <= 400; ++n) house.turn(stream, n, std::string(3000, 'x'));
  REQUIRE(house.until([&] { return house.hub.connections() == 0; }));
  REQUIRE(house.hub.shared().event_connections == 0);
}

TEST_CASE("a client that vanishes leaves no trace") {
  House house;
  FakeStream& stream = house.stream("s1");
  auto first = house.listener();
  auto second = house.listener();
  first->vanish();
  for (int n = 1; n <= 50; ++n) house.turn(stream, n);
  REQUIRE(house.until([&] { return house.hub.connections() == 1 && house.hub.shared().event_connections == 1; }));
  second->send_raw(std::string("\x81\xfe\x10", 3));  // begins a frame, and is gone
  second->vanish();
  REQUIRE(house.until([&] { return house.hub.connections() == 0 && house.hub.shared().event_connections == 0; }));
}

TEST_CASE("every ping is answered while the log is busy") {
  House house;
  FakeStream& stream = house.stream("s1");
  auto client = house.listener();
  std::size_t pings = 0;
  for (int n = 1; n <= 300; ++n) {
    house.turn(stream, n, std::string(1000, 'x'));
    client->ping();
    ++pings;
    for (int i = 0; i < 4; ++i) {
      house.io.restart();
      house.io.poll_one();
    }
  }
  const std::string end = "\"" + to_string(stream.transcript()->end()) + "\"";
  REQUIRE(house.until([&] { return client->pongs == pings && at(client->frames.back(), "/cursor") == end; }));
  REQUIRE(is_forward(client->frames, stream.name()));
  REQUIRE(count(client->types(), "turn.started") == 300);
}

TEST_CASE("a silent client is pinged, and dropped when it does not answer") {
  HubOptions options;
  options.limits.ping = milliseconds(20);
  options.limits.silence = milliseconds(400);
  House house(options);
  ClientOptions deaf = House::with_token();
  deaf.reading = false;
  auto answering = house.listener();
  auto silent = house.client(deaf);
  REQUIRE(house.until([&] { return house.hub.connections() == 2; }));
  REQUIRE(house.until([&] { return house.hub.connections() == 1; }));
  REQUIRE_FALSE(answering->ended);
  REQUIRE(answering->pings_seen > 0);
}

TEST_CASE("status, reset and removal are told to whom the session concerns, whatever types they asked for") {
  House house;
  FakeStream& one = house.stream("s1");
  FakeStream& two = house.stream("s2");
  std::vector<std::string> forgotten;
  house.hub.forgotten = [&](const std::string& session) { forgotten.push_back(session); };
  auto client = house.listener(R"(,"filter":{"session":["s1"],"type":["none"]})");
  status::Status status;
  status.state = "waiting";
  status.reason = "permission";
  status.detail = "approve Bash: rm -rf build";
  status.source = "registry";
  status.since = "2026-03-01T10:00:00.000Z";
  house.hub.status_changed("s2", status);
  house.hub.status_changed("s1", status);
  house.hub.on_reset(one, "rewritten");
  one.restart();
  one.write(test::prompt(0, "anew"), &house.hub);
  house.hub.on_removed(two);
  house.hub.on_removed(one);
  house.hub.on_pumped();
  REQUIRE(house.until([&] { return client->has("stream.removed"); }));
  const auto types = client->types();
  REQUIRE(std::vector<std::string>(types.begin() + 3, types.end()) == std::vector<std::string>{"status", "reset", "stream.removed"});
  REQUIRE(client->frames[3] ==
          R"({"type":"status","host":"dev7","session":"s1","state":"waiting","reason":"permission",)"
          R"("detail":"approve Bash: rm -rf build","source":"registry","since":"2026-03-01T10:00:00.000Z"})");
  REQUIRE(client->frames[4] == R"({"type":"reset","host":"dev7","session":"s1","stream":"claude/p/s1","reason":"rewritten"})");
  REQUIRE(client->frames[5] == R"({"type":"stream.removed","host":"dev7","session":"s1","stream":"claude/p/s1"})");
  REQUIRE(forgotten == std::vector<std::string>{"s1", "s2"});
}

TEST_CASE("the board hears once a pump what the transcripts say, and its answer comes behind the events") {
  House house;
  std::vector<std::pair<std::string, bool>> said;
  house.hub.said = [&](const std::string& session, const status::Said& what) {
    said.emplace_back(session, what.turn_open);
    status::Status status;
    status.state = what.turn_open ? "working" : "idle";
    status.source = "transcript";
    house.hub.status_changed(session, status);
  };
  FakeStream& stream = house.stream("s1");
  REQUIRE(said == std::vector<std::pair<std::string, bool>>{{"s1", true}});
  auto client = house.listener();
  REQUIRE(at(client->frames[1], "/status/state") == "\"working\"");
  house.turn(stream, 1);
  REQUIRE(said.size() == 2);
  REQUIRE_FALSE(said.back().second);
  REQUIRE(house.until([&] { return client->has("status"); }));
  REQUIRE(client->types().back() == "status");
  REQUIRE(at(client->frames.back(), "/state") == "\"idle\"");
}

TEST_CASE("todos from files, and what becomes known of a subagent, send the session's frame again") {
  House house;
  FakeStream& main = house.stream("s1");
  auto client = house.listener();
  Todo todo;
  todo.content = "write it down";
  todo.status = "pending";
  house.hub.todos_changed("s1", FileTodos{{todo}, "2026-03-02T00:00:00.000Z"});
  REQUIRE(house.until([&] { return count(client->types(), "session") == 2; }));
  REQUIRE(at(client->frames.back(), "/todos/0/content") == "\"write it down\"");
  FakeStream agent("claude/p/s1/subagents/agent-a7", "s1", "a7");
  house.hub.on_appeared(agent);
  house.hub.on_changed(agent);
  house.hub.on_pumped();
  agent.meta_.agent_type = "scout";
  for (int i = 0; i < 3; ++i) house.hub.on_changed(agent);
  house.turn(main, 1);
  REQUIRE(house.caught_up(*client, main));
  REQUIRE(count(client->types(), "session") == 3);  // once, not at every change
  house.hub.on_removed(agent);
}

TEST_CASE("for states there are session frames only, the newest wins, and not too many") {
  HubOptions options;
  options.limits.state = std::chrono::hours(1);
  House house(options);
  FakeStream& one = house.stream("s1");
  house.stream("s2");
  auto client = house.listener(R"(,"deliver":"state","filter":{"session":["s1"]})");
  for (int n = 1; n <= 20; ++n) house.turn(one, n);
  REQUIRE(house.until([&] { return client->types().size() == 4; }));  // the first change comes at once
  REQUIRE(client->types() == std::vector<std::string>{"welcome", "session", "ready", "session"});
  client->send(R"({"type":"subscribe","id":"b","snapshot":false,"filter":{"session":["nobody"]}})");
  REQUIRE(house.until([&] { return count(client->types(), "ready") == 2; }));
  REQUIRE(count(client->types(), "session") == 2);
}

TEST_CASE("the last state comes, though it was too soon after the one before") {
  HubOptions options;
  options.limits.state = milliseconds(100);
  House house(options);
  FakeStream& one = house.stream("s1");
  auto client = house.listener(R"(,"deliver":"state")");
  for (int n = 1; n <= 20; ++n) house.turn(one, n);
  REQUIRE(house.until([&] { return at(client->frames.back(), "/turn/number") == "21"; }));
  REQUIRE(count(client->types(), "session") <= 3);
}

TEST_CASE("who asks for all sessions gets them once those that are only known have been read") {
  House house;
  house.stream("young");
  FakeStream old("claude/p/old", "old");
  old.write(test::prompt(0, "long ago"), nullptr);
  std::function<void()> finish;
  house.hub.read_cold_with([&](auto wanted, auto then) {
    REQUIRE(wanted("old"));
    finish = then;
  });
  auto few = house.listener();
  REQUIRE(count(few->types(), "session") == 1);
  REQUIRE_FALSE(finish);
  auto client = house.client();
  client->send(R"({"type":"subscribe","id":"a","all":true,"filter":{"project":["/home/u/api"]}})");
  REQUIRE(house.until([&] { return static_cast<bool>(finish); }));
  REQUIRE_FALSE(client->has("ready"));
  old.modified_ms_ = 0;
  house.hub.on_appeared(old);
  finish();
  REQUIRE(house.until([&] { return client->has("ready"); }));
  REQUIRE(count(client->types(), "session") == 2);
}

TEST_CASE("at the stop everything owed is sent, then 1001") {
  House house;
  FakeStream& stream = house.stream("s1");
  auto client = house.listener();
  auto stranger = house.client(ClientOptions{});
  REQUIRE(house.until([&] { return stranger->open; }));
  asio::ip::tcp::socket half(house.io);
  half.connect(house.hub.endpoint());
  REQUIRE(house.until([&] { return house.hub.connections() == 3; }));
  for (int n = 1; n <= 200; ++n) {
    stream.write(test::prompt(n, std::string(3000, 'x')), &house.hub);
  }
  bool stopped = false;
  house.hub.stop([&] { stopped = true; });
  REQUIRE(house.until([&] { return stopped && client->ended && stranger->ended; }));
  REQUIRE(client->close_code == 1001);
  REQUIRE(stranger->close_code == 1001);
  REQUIRE(at(client->frames.back(), "/cursor") == "\"" + to_string(stream.transcript()->end()) + "\"");
  REQUIRE(count(client->types(), "turn.started") == 200);
}

TEST_CASE("the stop waits for no client that sleeps") {
  HubOptions options;
  options.limits.stop = milliseconds(50);
  House house(options);
  FakeStream& stream = house.stream("s1");
  ClientOptions sleepy = House::with_token();
  sleepy.receive_buffer = 4096;
  sleepy.reading = false;
  auto sleeper = house.client(sleepy);
  sleeper->send(R"({"type":"subscribe","id":"z"})");
  REQUIRE(house.until([&] { return house.hub.shared().event_connections == 1; }));
  for (int n = 1; n <= 400; ++n) house.turn(stream, n, std::string(3000, 'x'));
  bool stopped = false;
  house.hub.stop([&] { stopped = true; });
  REQUIRE(house.until([&] { return stopped; }));
}

TEST_CASE("more clients than are allowed get a clear answer, and room is made when one leaves") {
  HubOptions options;
  options.limits.connections_max = 2;
  House house(options);
  auto first = house.listener();
  auto second = house.listener();
  auto third = house.client();
  REQUIRE(house.until([&] { return third->refused.has_value(); }));
  REQUIRE(*third->refused == 503);
  first->vanish();
  REQUIRE(house.until([&] { return house.hub.connections() == 1; }));
  auto fourth = house.listener();
  REQUIRE(fourth->open);
}

TEST_CASE("the accept loop lives through a want of descriptors") {
  House house;
  auto before = house.listener();
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &old) == 0);
  asio::ip::tcp::socket waiting(house.io);
  waiting.open(asio::ip::tcp::v4());
  const int highest = ::dup(0);
  REQUIRE(highest >= 0);
  ::close(highest);
  rlimit none = old;
  none.rlim_cur = static_cast<rlim_t>(highest);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  boost::system::error_code ec;
  waiting.connect(house.hub.endpoint(), ec);
  for (int i = 0; i < 20; ++i) {  // the loop meets the want, among its ticks
    house.io.restart();
    house.io.run_one();
  }
  const std::size_t while_exhausted = house.hub.connections();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &old) == 0);
  REQUIRE_FALSE(ec);
  REQUIRE(while_exhausted == 1);
  REQUIRE(house.until([&] { return house.hub.connections() == 2; }));
}
