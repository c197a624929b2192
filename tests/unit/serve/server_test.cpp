// Frames and their order, over real sockets.
#include <catch2/catch.hpp>
#include <optional>
#include <set>

#include "unit/serve/server_fixture.hpp"

namespace server_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::test;

namespace {

/// Whether the cursors of a stream's events strictly increase: nothing repeated or out of order.
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

TEST_CASE("with a token in the header, frames are welcome, snapshot, ready, then events") {
  ServerFixture fixture;
  FakeStream& stream = fixture.stream("s1");
  ClientOptions options = ServerFixture::with_token();
  options.protocol = "chat, earshot.v1";
  auto client = fixture.client(options);
  REQUIRE(fixture.until([&] { return client->has("welcome"); }));
  REQUIRE(client->protocol == "earshot.v1");
  client->send(R"({"type":"subscribe","id":"a"})");
  REQUIRE(fixture.until([&] { return client->has("ready"); }));
  fixture.turn(stream, 1);
  REQUIRE(fixture.caught_up(*client, stream));
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
  REQUIRE(at(welcome, "/url") == "\"http://127.0.0.1:" + std::to_string(fixture.port()) + "/\"");
  REQUIRE(at(welcome, "/view") == "\"full\"");
  REQUIRE(at(welcome, "/limits") ==
          R"({"frame_bytes":1048576,"subscriptions":32,"outbound_bytes":16777216})");
  REQUIRE(at(welcome, "/resume/claude-code") == R"(["claude","--resume"])");
  REQUIRE(at(welcome, "/resume/codex") == R"(["codex","resume"])");
  REQUIRE(at(welcome, "/resume/copilot") == R"(["copilot","--resume"])");
  REQUIRE(at(welcome, "/resume/pi") == R"(["pi","--session"])");
  REQUIRE(at(client->frames[1], "/turn/prompt") == "\"begin\"");
  for (const std::string& frame : client->frames) REQUIRE(at(frame, "/type") != "no JSON");
}

TEST_CASE("a snapshot and the events after it have no gap or repetition, whenever a client connects") {
  ServerFixture fixture;
  FakeStream& one = fixture.stream("s1");
  FakeStream& two = fixture.stream("s2");
  std::vector<std::unique_ptr<Client>> clients;
  int n = 1;
  for (; n <= 60; ++n) {
    fixture.turn(one, n);
    if (n % 2) fixture.turn(two, n);
    if (n % 3 == 0 && n <= 45) {
      clients.push_back(fixture.client());
      clients.back()->send(R"({"type":"subscribe","id":"a"})");
    }
    for (int i = 0; i < 3; ++i) {
      fixture.io.restart();
      fixture.io.poll_one();
    }
  }
  REQUIRE(clients.size() == 15);
  const auto whole = [&](const FakeStream& stream) { return to_string(stream.transcript()->end()); };
  for (auto& client : clients) {
    REQUIRE(fixture.until([&] { return client->has("ready"); }));
    fixture.turn(one, n++);
    fixture.turn(two, n++);
  }
  for (auto& client : clients) {
    REQUIRE(fixture.until([&] {
      return !client->frames.empty() && at(client->frames.back(), "/cursor") == "\"" + whole(two) + "\"";
    }));
    // The snapshot's cursors, then exactly the transcript's events after them.
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

TEST_CASE("a client that stops reading receives a lagged frame, uses no memory and delays no other client") {
  ServerOptions options;
  options.log_bytes_max = 8 * LiveLog::segment_bytes;
  ServerFixture fixture(options);
  FakeStream& loud = fixture.stream("loud");
  FakeStream& quiet = fixture.stream("quiet");
  auto sleeper = fixture.sleeper();
  sleeper->send(R"({"type":"subscribe","id":"z"})");
  auto awake = fixture.listener();
  REQUIRE(fixture.until([&] { return fixture.server.context().logs.readers() == 2; }));
  std::size_t seen = 0;
  for (int n = 1; fixture.server.context().logs.first() < 4000; ++n) {
    fixture.turn(loud, n, std::string(2000, 'x'));
    REQUIRE(fixture.server.context().logs.bytes() <= options.log_bytes_max);
    if (n % 20) continue;
    const std::string end = "\"" + to_string(loud.transcript()->end()) + "\"";
    REQUIRE(
        fixture.until([&] { return !awake->frames.empty() && at(awake->frames.back(), "/cursor") == end; }));
    REQUIRE(is_forward(awake->frames, loud.name()));
    seen += awake->frames.size();
    awake->frames.clear();
  }
  REQUIRE(seen > 4000);
  fixture.turn(quiet, 1);
  REQUIRE(fixture.caught_up(*awake, quiet));
  REQUIRE_FALSE(awake->has("lagged"));

  sleeper->read();
  REQUIRE(fixture.until([&] { return sleeper->has("lagged"); }));
  fixture.turn(loud, 100000, "fresh");
  const std::string end = "\"" + to_string(loud.transcript()->end()) + "\"";
  REQUIRE(fixture.until([&] { return at(sleeper->frames.back(), "/cursor") == end; }));
  const auto types = sleeper->types();
  REQUIRE(types.front() == "welcome");
  REQUIRE(count(types, "lagged") >= 1);
  const auto last_lag = std::find(types.rbegin(), types.rend(), "lagged");
  REQUIRE(last_lag != types.rbegin());
  REQUIRE(*std::prev(last_lag) == "session");  // fresh snapshots follow at once
  REQUIRE(is_forward(sleeper->frames, loud.name()));
}

TEST_CASE("a client that reads nothing for too long is dropped") {
  ServerOptions options;
  options.limits.stall = milliseconds(50);
  options.limits.goodbye = milliseconds(50);
  ServerFixture fixture(options);
  auto sleeper = fixture.overwhelmed();
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 0; }));
  REQUIRE(fixture.server.context().logs.readers() == 0);
}

TEST_CASE("a vanished client leaves no state") {
  ServerFixture fixture;
  FakeStream& stream = fixture.stream("s1");
  auto first = fixture.listener();
  auto second = fixture.listener();
  first->vanish();
  for (int n = 1; n <= 50; ++n) fixture.turn(stream, n);
  REQUIRE(fixture.until(
      [&] { return fixture.server.connections() == 1 && fixture.server.context().logs.readers() == 1; }));
  second->send_raw(std::string("\x81\xfe\x10", 3));  // an incomplete frame
  second->vanish();
  REQUIRE(fixture.until(
      [&] { return fixture.server.connections() == 0 && fixture.server.context().logs.readers() == 0; }));
}

TEST_CASE("every ping is answered while the log is busy") {
  ServerFixture fixture;
  FakeStream& stream = fixture.stream("s1");
  auto client = fixture.listener();
  std::size_t pings = 0;
  for (int n = 1; n <= 300; ++n) {
    fixture.turn(stream, n, std::string(1000, 'x'));
    client->ping();
    ++pings;
    for (int i = 0; i < 4; ++i) {
      fixture.io.restart();
      fixture.io.poll_one();
    }
  }
  const std::string end = "\"" + to_string(stream.transcript()->end()) + "\"";
  REQUIRE(
      fixture.until([&] { return client->pongs == pings && at(client->frames.back(), "/cursor") == end; }));
  REQUIRE(is_forward(client->frames, stream.name()));
  REQUIRE(count(client->types(), "turn.started") == 300);
}

TEST_CASE("a silent client is pinged, and dropped when it does not answer") {
  // Where the test pauses for longer than `silence`, both are silent: then it is repeated with more time.
  for (auto silence = milliseconds(400);; silence *= 5) {
    CAPTURE(silence.count());
    ServerOptions options;
    options.limits.ping = milliseconds(20);
    options.limits.silence = silence;
    ServerFixture fixture(options);
    ClientOptions deaf = ServerFixture::with_token();
    deaf.reading = false;
    auto answering = fixture.client();
    answering->send(R"({"type":"subscribe","id":"a"})");
    REQUIRE(fixture.until([&] { return answering->ended || answering->has("ready"); }));
    auto silent = fixture.client(deaf);
    REQUIRE(fixture.until([&] { return answering->ended || fixture.server.connections() == 2; }));
    REQUIRE(fixture.until([&] { return answering->ended || fixture.server.connections() == 1; }));
    answering->ping();
    REQUIRE(fixture.until([&] { return answering->ended || answering->pongs > 0; }));
    if (answering->ended && silence < std::chrono::seconds(10)) continue;
    REQUIRE_FALSE(answering->ended);
    REQUIRE(answering->pings_seen > 0);
    return;
  }
}

TEST_CASE("fault 125: events of a renamed stream follow under its new name") {
  ServerFixture fixture;
  FakeStream& stream = fixture.stream("s1");
  auto client = fixture.listener({});
  stream.write(test::prompt(0, "one"), &fixture.server);
  stream.rename("claude/tree/s1");
  fixture.server.on_renamed(stream, "claude/p/s1");
  stream.write(test::prompt(1, "two"), &fixture.server);
  fixture.server.on_batch_end();
  REQUIRE(fixture.until([&] { return test::at(client->frames.back(), "/stream") == R"("claude/tree/s1")"; }));
  std::vector<std::string> names;
  for (const std::string& frame : client->frames)
    if (test::at(frame, "/stream") != "absent" || test::at(frame, "/from") != "absent")
      names.push_back(test::at(frame, "/type") + " " + test::at(frame, "/stream"));
  const auto renamed = std::find(names.begin(), names.end(), R"("stream.renamed" absent)");
  REQUIRE(renamed != names.end());
  for (auto at = names.begin(); at != names.end(); ++at)
    if (at != renamed) CHECK(at->ends_with(at < renamed ? R"( "claude/p/s1")" : R"( "claude/tree/s1")"));
  CHECK(client->has("stream.renamed"));
}

TEST_CASE("status, reset and stream.removed are sent for matching sessions, whatever the type filter") {
  ServerFixture fixture;
  FakeStream& one = fixture.stream("s1");
  FakeStream& two = fixture.stream("s2");
  std::vector<std::string> forgotten;
  fixture.server.on_session_removed = [&](const std::string& session) { forgotten.push_back(session); };
  auto client = fixture.listener(R"(,"filter":{"session":["s1"],"type":["none"]})");
  status::Status status;
  status.state = "waiting";
  status.reason = "permission";
  status.detail = "approve Bash: rm -rf build";
  status.source = "registry";
  status.since = "2026-03-01T10:00:00.000Z";
  fixture.server.status_changed("s2", status);
  fixture.server.status_changed("s1", status);
  fixture.server.on_reset(one, "rewritten");
  one.restart();
  one.write(test::prompt(0, "anew"), &fixture.server);
  fixture.server.on_removed(two);
  fixture.server.on_removed(one);
  fixture.server.on_batch_end();
  REQUIRE(fixture.until([&] { return client->has("stream.removed"); }));
  const auto types = client->types();
  REQUIRE(std::vector<std::string>(types.begin() + 3, types.end()) ==
          std::vector<std::string>{"status", "reset", "stream.removed"});
  REQUIRE(client->frames[3] ==
          R"({"type":"status","host":"dev7","session":"s1","program":"claude-code",)"
          R"("project":"/home/u/api","state":"waiting","reason":"permission",)"
          R"("detail":"approve Bash: rm -rf build","source":"registry","since":"2026-03-01T10:00:00.000Z"})");
  REQUIRE(client->frames[4] ==
          R"({"type":"reset","host":"dev7","session":"s1","stream":"claude/p/s1","reason":"rewritten"})");
  REQUIRE(client->frames[5] ==
          R"({"type":"stream.removed","host":"dev7","session":"s1","stream":"claude/p/s1"})");
  REQUIRE(std::set<std::string>(forgotten.begin(), forgotten.end()) == std::set<std::string>{"s1", "s2"});
  REQUIRE(forgotten.size() == 2);
}

TEST_CASE("the status tracker is notified once a pump, and its status follows the events") {
  ServerFixture fixture;
  std::vector<std::pair<std::string, bool>> said;
  fixture.server.on_transcript_summary = [&](const std::string& session,
                                             const status::TranscriptSummary& what) {
    said.emplace_back(session, what.turn_open);
    status::Status status;
    status.state = what.turn_open ? "working" : "idle";
    status.source = "transcript";
    fixture.server.status_changed(session, status);
  };
  FakeStream& stream = fixture.stream("s1");
  REQUIRE(said == std::vector<std::pair<std::string, bool>>{{"s1", true}});
  auto client = fixture.listener();
  REQUIRE(at(client->frames[1], "/status/state") == "\"working\"");
  fixture.turn(stream, 1);
  REQUIRE(said.size() == 2);
  REQUIRE_FALSE(said.back().second);
  REQUIRE(fixture.until([&] { return client->has("status"); }));
  REQUIRE(client->types().back() == "status");
  REQUIRE(at(client->frames.back(), "/state") == "\"idle\"");
}

TEST_CASE("todos from files and new facts of a subagent send the session frame again") {
  ServerFixture fixture;
  FakeStream& main = fixture.stream("s1");
  auto client = fixture.listener();
  Todo todo;
  todo.content = "write it down";
  todo.status = "pending";
  fixture.server.todos_changed("s1", FileTodos{{todo}, "2026-03-02T00:00:00.000Z"});
  REQUIRE(fixture.until([&] { return count(client->types(), "session") == 2; }));
  REQUIRE(at(client->frames.back(), "/todos/0/content") == "\"write it down\"");
  FakeStream agent("claude/p/s1/subagents/agent-a7", "s1", "a7");
  fixture.server.on_added(agent);
  fixture.server.on_changed(agent);
  fixture.server.on_batch_end();
  agent.meta_.agent_type = "scout";
  for (int i = 0; i < 3; ++i) fixture.server.on_changed(agent);
  fixture.turn(main, 1);
  REQUIRE(fixture.caught_up(*client, main));
  REQUIRE(count(client->types(), "session") == 3);  // once, not at every change
  fixture.server.on_removed(agent);
}

TEST_CASE("an idle connection receives heartbeats, an unauthenticated one does not") {
  ServerOptions options;
  options.limits.heartbeat = milliseconds(50);
  ServerFixture fixture(options);
  auto client = fixture.listener();
  REQUIRE(fixture.until([&] { return count(client->types(), "heartbeat") >= 2; }));
  const std::string& heartbeat = client->frames.back();
  REQUIRE(at(heartbeat, "/time").size() == std::string_view(R"("2026-03-14T09:26:53.589Z")").size());
  auto stranger = fixture.client(ClientOptions{});
  REQUIRE(fixture.until([&] { return count(client->types(), "heartbeat") >= 5; }));
  REQUIRE(stranger->frames.empty());  // nothing before the welcome
}

TEST_CASE("fault 101: of one session id in two projects each user sees the own project only") {
  ServerFixture fixture;
  const auto user = [](const std::string& name, const std::string& project) {
    Filter allowed;
    allowed.project = {project};
    return User{name, sha256_hex(name), allowed, View::full};
  };
  fixture.server.set_users({user("ada", "/home/u/api"), user("bob", "/home/u/web")});
  FakeStream& api = fixture.stream("s1", "/home/u/api");
  ClientOptions as_ada, as_bob;
  as_ada.token = "ada";
  as_bob.token = "bob";
  auto early = fixture.listener("", as_ada);
  REQUIRE(count(early->types(), "session") == 1);
  FakeStream web("claude/web/s1", "s1");
  web.write(test::prompt(0, "web begins", "/home/u/web"), nullptr);
  fixture.server.on_added(web);
  fixture.server.on_batch_end();
  auto ada = fixture.listener("", as_ada);
  auto bob = fixture.listener("", as_bob);
  fixture.turn(api, 1, "api text");
  fixture.turn(web, 2, "web text");
  REQUIRE(fixture.caught_up(*early, api));
  REQUIRE(fixture.caught_up(*ada, api));
  REQUIRE(fixture.caught_up(*bob, web));
  const auto has = [](const Client& client, std::string_view text) {
    return std::any_of(client.frames.begin(), client.frames.end(),
                       [&](const std::string& frame) { return frame.find(text) != frame.npos; });
  };
  for (const Client* client : {early.get(), ada.get()}) {
    REQUIRE(has(*client, "api text"));
    REQUIRE_FALSE(has(*client, "web"));
  }
  REQUIRE(has(*bob, "web text"));
  REQUIRE_FALSE(has(*bob, "api text"));
  const std::string host = "127.0.0.1:" + std::to_string(fixture.port());
  const std::string page = test::exchange(fixture.io, fixture.port(),
                                          "GET /v1/sessions?all HTTP/1.1\r\nHost: " + host +
                                              "\r\nConnection: close\r\nAuthorization: Bearer ada\r\n\r\n");
  REQUIRE(page.find("{\"sessions\":[]}") != page.npos);
  fixture.server.on_removed(web);
}

namespace {

/// A user who may see /home/u/api only, and whether anything of another project reached the user.
struct RestrictedFixture : ServerFixture {
  RestrictedFixture() {
    Filter allowed;
    allowed.project = {"/home/u/api"};
    server.set_users({User{"ada", sha256_hex("ada"), allowed, View::full}});
    as_ada.token = "ada";
  }
  FakeStream& add(const std::string& name, const std::string& cwd) {
    streams.push_back(std::make_unique<FakeStream>(name, "s1"));
    streams.back()->write(test::prompt(0, "begin", cwd), nullptr);
    server.on_added(*streams.back());
    server.on_batch_end();
    return *streams.back();
  }
  void remove(FakeStream& stream) {
    server.on_removed(stream);
    server.on_batch_end();
  }
  void set_status(const std::string& detail, std::vector<std::string> projects = {}) {
    status::Status status{"waiting", "permission", detail, "registry", ""};
    status.projects = std::move(projects);
    server.status_changed("s1", status);
  }
  std::string sessions() {
    const std::string host = "127.0.0.1:" + std::to_string(port());
    return test::exchange(io, port(),
                          "GET /v1/sessions?all HTTP/1.1\r\nHost: " + host +
                              "\r\nConnection: close\r\nAuthorization: Bearer ada\r\n\r\n");
  }
  /// Whether the clients, once they are sent something that they may see, have a text of the other project.
  bool leaked(std::vector<Client*> clients) {
    FakeStream& last = stream("last" + std::to_string(streams.size()));
    turn(last, 1);
    bool found = sessions().find("vault") != std::string::npos;
    for (Client* client : clients) {
      REQUIRE(until([&] {
        return std::any_of(client->frames.begin(), client->frames.end(), [&](const std::string& frame) {
          return frame.find(last.session()) != frame.npos;
        });
      }));
      for (const std::string& frame : client->frames) found |= frame.find("vault") != frame.npos;
    }
    return found;
  }
  ClientOptions as_ada;
};

}  // namespace

TEST_CASE(
    "fault 149: of one session id in two projects a user is sent nothing about the removed transcript of the "
    "other "
    "one") {
  const bool is_first = GENERATE(true, false);
  RestrictedFixture fixture;
  FakeStream* vault = is_first ? &fixture.add("claude/vault/s1", "/srv/vault") : nullptr;
  FakeStream& api = fixture.add("claude/api/s1", "/home/u/api");
  if (!is_first) vault = &fixture.add("claude/vault/s1", "/srv/vault");
  auto owner = fixture.listener();
  auto ada = fixture.listener("", fixture.as_ada);
  auto states = fixture.listener(R"(,"deliver":"state")", fixture.as_ada);
  fixture.set_status("approve Bash: cat /srv/vault/plan");
  fixture.turn(*vault, 1, "vault text");
  fixture.remove(*vault);  // before the events were sent
  fixture.turn(api, 2, "api text");
  REQUIRE(fixture.caught_up(*ada, api));
  REQUIRE(fixture.until([&] { return count(owner->types(), "stream.removed") == 1; }));
  auto later = fixture.listener("", fixture.as_ada);
  fixture.set_status("approve Bash: cat /srv/vault/again");
  CHECK_FALSE(fixture.leaked({ada.get(), states.get(), later.get()}));
  CHECK(fixture.sessions().find("\"s1\"") == std::string::npos);
  CHECK(count(ada->types(), "stream.removed") == 0);
  fixture.remove(api);
  CHECK(fixture.until([&] { return count(ada->types(), "stream.removed") == 1; }));
  CHECK_FALSE(fixture.leaked({ada.get(), states.get(), later.get()}));
}

TEST_CASE(
    "fault 149: of one session id in two projects the transcript that is left is judged by its own project") {
  RestrictedFixture fixture;
  FakeStream& api = fixture.add("claude/api/s1", "/home/u/api");
  FakeStream& vault = fixture.add("claude/vault/s1", "/srv/vault");
  fixture.turn(api, 5, "newest");
  auto ada = fixture.listener("", fixture.as_ada);
  fixture.turn(vault, 1, "vault text");
  fixture.remove(api);  // before the events were sent
  CHECK_FALSE(fixture.leaked({ada.get()}));
  fixture.turn(vault, 2, "vault text");
  CHECK_FALSE(fixture.leaked({ada.get()}));
  CHECK(count(ada->types(), "stream.removed") == 1);
}

TEST_CASE(
    "fault 149: a new transcript is judged by its own project, not by that of the session's removed one") {
  RestrictedFixture fixture;
  fixture.remove(fixture.add("claude/api/s1", "/home/u/api"));
  auto ada = fixture.listener("", fixture.as_ada);
  FakeStream vault("claude/vault/s1", "s1");
  fixture.server.on_added(vault);
  vault.write(test::prompt(1, "vault text", "/srv/vault"), &fixture.server);
  fixture.turn(vault, 2, "vault text");
  CHECK_FALSE(fixture.leaked({ada.get()}));
  fixture.remove(vault);
}

TEST_CASE(
    "fault 149: a new transcript of unknown project is not judged by that of the session's removed one") {
  RestrictedFixture fixture;
  fixture.remove(fixture.add("claude/api/s1", "/home/u/api"));
  auto ada = fixture.listener("", fixture.as_ada);
  FakeStream vault("claude/vault/s1", "s1");
  fixture.server.on_added(vault);
  vault.write(test::prompt(1, "vault text", ""), &fixture.server);
  fixture.server.on_batch_end();
  CHECK_FALSE(fixture.leaked({ada.get()}));
  fixture.remove(vault);
}

TEST_CASE("fault 149: subagents whose main transcripts were removed are judged by their own projects") {
  RestrictedFixture fixture;
  FakeStream& api = fixture.add("claude/api/s1", "/home/u/api");
  FakeStream& vault = fixture.add("claude/vault/s1", "/srv/vault");
  const auto agent = [&](const std::string& name, const std::string& cwd) {
    auto made = std::make_unique<FakeStream>(name, "s1", "a7");
    made->write(test::prompt(0, "begin", cwd), nullptr);
    fixture.server.on_added(*made);
    return made;
  };
  const auto own = agent("claude/api/s1/subagents/agent-a7", "/home/u/api");
  const auto other = agent("claude/vault/s1/subagents/agent-a7", "/srv/vault");
  fixture.remove(api);
  fixture.remove(vault);
  auto ada = fixture.listener("", fixture.as_ada);
  fixture.turn(*other, 1, "vault text");
  fixture.turn(*own, 2, "api text");
  CHECK_FALSE(fixture.leaked({ada.get()}));
  CHECK(fixture.caught_up(*ada, *own));
  fixture.remove(*own);
  fixture.remove(*other);
}

TEST_CASE("fault 149: a session is hidden from a user who may not see each project that its host states") {
  RestrictedFixture fixture;
  fixture.add("claude/api/s1", "/home/u/api");
  fixture.set_status("approve Bash: cat /srv/vault/plan", {"/home/u/api", "/srv/vault"});
  auto ada = fixture.listener("", fixture.as_ada);
  fixture.set_status("approve Bash: cat /srv/vault/again");  // after the host forgot it
  CHECK_FALSE(fixture.leaked({ada.get()}));
  CHECK(fixture.sessions().find("\"s1\"") == std::string::npos);
}

TEST_CASE("a session frame has its program, and the filter matches it") {
  ServerFixture fixture;
  fixture.stream("s1");
  auto client = fixture.listener(R"(,"filter":{"program":["claude-*"]})");
  REQUIRE(client->types() == std::vector<std::string>{"welcome", "session", "ready"});
  REQUIRE(at(client->frames[1], "/program") == "\"claude-code\"");
  auto other = fixture.listener(R"(,"filter":{"program":["codex"]})");
  REQUIRE(other->types() == std::vector<std::string>{"welcome", "ready"});
}

TEST_CASE("fault 107: a subscription to states receives session frames only, at a limited rate") {
  ServerOptions options;
  options.limits.state = std::chrono::hours(1);
  ServerFixture fixture(options);
  FakeStream& one = fixture.stream("s1");
  fixture.stream("s2");
  auto client = fixture.listener(R"(,"deliver":"state","filter":{"session":["s1"]})");
  for (int n = 1; n <= 20; ++n) fixture.turn(one, n);
  REQUIRE(fixture.until([&] { return client->types().size() == 4; }));  // the first change is sent at once
  REQUIRE(client->types() == std::vector<std::string>{"welcome", "session", "ready", "session"});
  client->send(R"({"type":"subscribe","id":"b","snapshot":false,"filter":{"session":["nobody"]}})");
  REQUIRE(fixture.until([&] { return count(client->types(), "ready") == 2; }));
  REQUIRE(count(client->types(), "session") == 2);
}

TEST_CASE("the last state is sent even if it follows another one too soon") {
  ServerOptions options;
  options.limits.state = milliseconds(100);
  ServerFixture fixture(options);
  FakeStream& one = fixture.stream("s1");
  auto client = fixture.listener(R"(,"deliver":"state")");
  const auto begun = Clock::now();
  for (int n = 1; n <= 20; ++n) fixture.turn(one, n);
  REQUIRE(fixture.until([&] { return at(client->frames.back(), "/turn/number") == "21"; }));
  // Its snapshot, the first change, and one more frame per interval, which a loaded machine may need many of.
  const auto intervals = static_cast<std::size_t>((Clock::now() - begun) / options.limits.state);
  REQUIRE(count(client->types(), "session") <= 3 + intervals);
}

TEST_CASE("`all` sends cold sessions after their transcripts were read") {
  ServerFixture fixture;
  fixture.stream("young");
  FakeStream old("claude/p/old", "old");
  old.write(test::prompt(0, "long ago"), nullptr);
  std::function<void()> finish;
  fixture.server.set_cold_session_reader(
      [&](auto wanted, auto then) {
        REQUIRE(wanted("old"));
        finish = then;
      },
      {});
  auto few = fixture.listener();
  REQUIRE(count(few->types(), "session") == 1);
  REQUIRE_FALSE(finish);
  auto client = fixture.client();
  client->send(R"({"type":"subscribe","id":"a","all":true,"filter":{"project":["/home/u/api"]}})");
  REQUIRE(fixture.until([&] { return static_cast<bool>(finish); }));
  REQUIRE_FALSE(client->has("ready"));
  old.modified_ms_ = 0;
  fixture.server.on_added(old);
  finish();
  REQUIRE(fixture.until([&] { return client->has("ready"); }));
  REQUIRE(count(client->types(), "session") == 2);
}

TEST_CASE("a stop sends pending frames, then closes with 1001") {
  ServerOptions options;
  options.limits.stop = std::chrono::minutes(10);
  ServerFixture fixture(options);
  FakeStream& stream = fixture.stream("s1");
  auto client = fixture.listener();
  auto stranger = fixture.client(ClientOptions{});
  REQUIRE(fixture.until([&] { return stranger->open; }));
  asio::ip::tcp::socket half(fixture.io);
  half.connect(fixture.server.endpoint());
  REQUIRE(fixture.until([&] { return fixture.server.connections() == 3; }));
  for (int n = 1; n <= 200; ++n) {
    stream.write(test::prompt(n, std::string(3000, 'x')), &fixture.server);
  }
  bool stopped = false;
  fixture.server.stop([&] { stopped = true; });
  REQUIRE(fixture.until([&] { return stopped && client->ended && stranger->ended; }));
  REQUIRE(client->close_code == 1001);
  REQUIRE(stranger->close_code == 1001);
  REQUIRE(at(client->frames.back(), "/cursor") == "\"" + to_string(stream.transcript()->end()) + "\"");
  REQUIRE(count(client->types(), "turn.started") == 200);
}

TEST_CASE("fault 167: a stop does not wait for a client that does not read") {
  CHECK(ServerOptions().limits.stop < milliseconds(100));
  ServerFixture fixture;
  auto sleeper = fixture.overwhelmed();
  bool stopped = false;
  fixture.server.stop([&] { stopped = true; });
  REQUIRE(fixture.until([&] { return stopped; }));
}

}  // namespace server_test
