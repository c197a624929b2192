// What clients hear, and in which order. Over real sockets.
#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "unit/serve/server_fixture.hpp"

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::test;

namespace {

/// The sequence of cursors' offsets of a stream's events: strictly forward, or something came twice or out of
/// order.
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

TEST_CASE(
    "with a token in the header, welcome is the first message, then the snapshot, ready, and what happens") {
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
  REQUIRE(std::vector<std::string>(types.begin(), types.begin() + 3) ==
          std::vector<std::string>{"welcome", "session", "ready"});
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
      std::vector<std::string> got, expected;
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
      for (const Cursor& cursor : stream->cursors()) {
        if (cursor.offset > from->offset) expected.push_back("\"" + to_string(cursor) + "\"");
      }
      REQUIRE_FALSE(expected.empty());
      REQUIRE(got == expected);
    }
  }
}

TEST_CASE("a client that stops reading is told that it lagged, costs no memory, and holds up nobody") {
  ServerOptions options;
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
  REQUIRE(house.until([&] { return house.hub.shared().event_connections() == 2; }));
  std::size_t seen = 0;
  for (int n = 1; house.hub.shared().channel(serve::Audience::full).log.first() < 4000; ++n) {
    house.turn(loud, n, std::string(2000, 'x'));
    REQUIRE(house.hub.shared().channel(serve::Audience::full).log.bytes() <= options.log_bytes_max);
    if (n % 20) continue;
    const std::string end = "\"" + to_string(loud.transcript()->end()) + "\"";
    REQUIRE(
        house.until([&] { return !awake->frames.empty() && at(awake->frames.back(), "/cursor") == end; }));
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
  ServerOptions options;
  options.limits.stall = milliseconds(50);
  options.limits.goodbye = milliseconds(50);
  House house(options);
  FakeStream& stream = house.stream("s1");
  ClientOptions sleepy = House::with_token();
  sleepy.receive_buffer = 4096;
  sleepy.reading = false;
  auto sleeper = house.client(sleepy);
  sleeper->send(R"({"type":"subscribe","id":"z"})");
  REQUIRE(house.until([&] { return house.hub.shared().event_connections() == 1; }));
  for (int n = 1; n <= 400; ++n) house.turn(stream, n, std::string(3000, 'x'));
  REQUIRE(house.until([&] { return house.hub.connections() == 0; }));
  REQUIRE(house.hub.shared().event_connections() == 0);
}

TEST_CASE("a client that vanishes leaves no trace") {
  House house;
  FakeStream& stream = house.stream("s1");
  auto first = house.listener();
  auto second = house.listener();
  first->vanish();
  for (int n = 1; n <= 50; ++n) house.turn(stream, n);
  REQUIRE(house.until(
      [&] { return house.hub.connections() == 1 && house.hub.shared().event_connections() == 1; }));
  second->send_raw(std::string("\x81\xfe\x10", 3));  // begins a frame, and is gone
  second->vanish();
  REQUIRE(house.until(
      [&] { return house.hub.connections() == 0 && house.hub.shared().event_connections() == 0; }));
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
  ServerOptions options;
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
  house.hub.on_batch_end();
  REQUIRE(house.until([&] { return client->has("stream.removed"); }));
  const auto types = client->types();
  REQUIRE(std::vector<std::string>(types.begin() + 3, types.end()) ==
          std::vector<std::string>{"status", "reset", "stream.removed"});
  REQUIRE(client->frames[3] ==
          R"({"type":"status","host":"dev7","session":"s1","state":"waiting","reason":"permission",)"
          R"("detail":"approve Bash: rm -rf build","source":"registry","since":"2026-03-01T10:00:00.000Z"})");
  REQUIRE(client->frames[4] ==
          R"({"type":"reset","host":"dev7","session":"s1","stream":"claude/p/s1","reason":"rewritten"})");
  REQUIRE(client->frames[5] ==
          R"({"type":"stream.removed","host":"dev7","session":"s1","stream":"claude/p/s1"})");
  REQUIRE(std::set<std::string>(forgotten.begin(), forgotten.end()) == std::set<std::string>{"s1", "s2"});
  REQUIRE(forgotten.size() == 2);
}

TEST_CASE("the board hears once a pump what the transcripts say, and its answer comes behind the events") {
  House house;
  std::vector<std::pair<std::string, bool>> said;
  house.hub.said = [&](const std::string& session, const status::TranscriptSummary& what) {
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
  house.hub.on_added(agent);
  house.hub.on_changed(agent);
  house.hub.on_batch_end();
  agent.meta_.agent_type = "scout";
  for (int i = 0; i < 3; ++i) house.hub.on_changed(agent);
  house.turn(main, 1);
  REQUIRE(house.caught_up(*client, main));
  REQUIRE(count(client->types(), "session") == 3);  // once, not at every change
  house.hub.on_removed(agent);
}

TEST_CASE("for states there are session frames only, the newest wins, and not too many") {
  ServerOptions options;
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
  ServerOptions options;
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
  house.hub.on_added(old);
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
  ServerOptions options;
  options.limits.stop = milliseconds(50);
  House house(options);
  FakeStream& stream = house.stream("s1");
  ClientOptions sleepy = House::with_token();
  sleepy.receive_buffer = 4096;
  sleepy.reading = false;
  auto sleeper = house.client(sleepy);
  sleeper->send(R"({"type":"subscribe","id":"z"})");
  REQUIRE(house.until([&] { return house.hub.shared().event_connections() == 1; }));
  for (int n = 1; n <= 400; ++n) house.turn(stream, n, std::string(3000, 'x'));
  bool stopped = false;
  house.hub.stop([&] { stopped = true; });
  REQUIRE(house.until([&] { return stopped; }));
}
