#include "serve/stream/subscriber.hpp"

#include <catch2/catch.hpp>
#include <random>

#include "unit/serve/stream/subscriber_fixture.hpp"

namespace subscriber_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

namespace {

const auto turn_started = type_of(event::TurnStarted{});
const auto usage_updated = type_of(event::UsageUpdated{});

/// A log, sessions, and one subscriber.
struct Bench {
  explicit Bench(std::size_t log_bytes = LiveLog::bytes_max_default)
      : context("dev7", log_bytes), socket(context), subscriber(*socket.subscriber) {}

  Session& session(const std::string& name) {
    streams.push_back(std::make_unique<FakeStream>("claude/" + name + "/" + name, name));
    streams.back()->directory_ = "-p-" + name;
    Session& made = context.sessions.session_of(*streams.back());
    made.status = status::Status{"idle", {}, {}, "process"};  // it is shown
    return made;
  }
  void subscribe(const std::string& id, Filter filter = {}, bool snapshot = false, bool state = false) {
    message::Subscribe asked = request(id, snapshot);
    asked.filter = std::move(filter);
    asked.state = state;
    subscriber.subscribe(std::move(asked));
  }
  void event(Session& session, int n, std::uint16_t type = turn_started, std::size_t size = 20) {
    std::string payload = R"({"n":)" + std::to_string(n) + R"(,"x":")";
    payload += std::string(size, 'x') + "\"}";
    session.changed = context.logs.head();
    session.frames = {};
    context.logs.append({session.id, type}, [&](Audience, std::string& out) { out = payload; });
  }
  std::vector<std::string> take_all() {
    while (socket.take(1 << 30)) {
    }
    return test::unframe(std::exchange(socket.received, {}));
  }
  /// The numbers of the received events, or the type of the frame.
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const std::string& frame : take_all()) {
      const std::string type = at(frame, "/type");
      out.push_back(type == "absent" ? at(frame, "/n") : type.substr(1, type.size() - 2));
    }
    return out;
  }

  ServerContext context;
  std::vector<std::unique_ptr<FakeStream>> streams;
  Socket socket;
  Subscriber& subscriber;
};

struct TwoSessions : Bench {
  using Bench::Bench;
  Session &one = session("s1"), &two = session("s2");
};

using Names = std::vector<std::string>;

Filter only(const std::string& session, std::vector<std::string> types = {}) {
  Filter filter;
  filter.session = {session};
  filter.type = std::move(types);
  return filter;
}

}  // namespace

TEST_CASE("the snapshot is sent first, then ready, then later events") {
  TwoSessions bench;
  bench.event(bench.one, 1);  // before: it is in the snapshot
  bench.subscribe("a", {}, true);
  bench.event(bench.one, 2);
  REQUIRE(bench.names() == Names{"session", "session", "ready", "2"});
  bench.event(bench.one, 3);
  REQUIRE(bench.names() == Names{"3"});
  REQUIRE(bench.names() == Names{});
}

TEST_CASE("filters select sessions and types, status frames pass the type filter") {
  TwoSessions bench;
  bench.subscribe("a", only("s1", {"turn.*"}), true);
  bench.event(bench.one, 1);
  bench.event(bench.two, 2);
  bench.event(bench.one, 3, usage_updated);
  bench.event(bench.one, 4, type_always);
  bench.event(bench.two, 5, type_always);
  bench.event(bench.one, 6);
  REQUIRE(bench.names() == Names{"session", "ready", "1", "4", "6"});
}

TEST_CASE("several subscriptions are a union: an event is sent once") {
  TwoSessions bench;
  bench.subscribe("a", only("s1"));
  bench.subscribe("b", only("*", {"usage.*"}));
  bench.event(bench.one, 1);
  bench.event(bench.one, 2, usage_updated);
  bench.event(bench.two, 3);
  bench.event(bench.two, 4, usage_updated);
  REQUIRE(bench.names() == Names{"ready", "ready", "1", "2", "4"});
  bench.subscriber.unsubscribe("a");
  bench.event(bench.one, 5);
  bench.event(bench.one, 6, usage_updated);
  REQUIRE(bench.names() == Names{"unsubscribed", "6"});
  bench.subscriber.unsubscribe("b");
  bench.event(bench.one, 7, usage_updated);
  REQUIRE(bench.names() == Names{"unsubscribed"});
  REQUIRE(bench.context.logs.readers() == 0);
}

TEST_CASE("a second subscription's snapshot is sent between earlier and later events") {
  TwoSessions bench;
  bench.subscribe("a", only("s1"));
  bench.event(bench.one, 1);
  bench.event(bench.two, 2);  // in the snapshot of b
  bench.subscribe("b", {}, true);
  bench.event(bench.one, 3);
  bench.event(bench.two, 4);
  REQUIRE(bench.names() == Names{"ready", "1", "session", "session", "ready", "3", "4"});
}

TEST_CASE("a filter matches a session's project as soon as it is known") {
  Bench bench;
  Session& one = bench.session("s1");
  Filter filter;
  filter.project = {"/home/u/api"};
  bench.subscribe("a", filter);
  bench.event(one, 1);
  REQUIRE(bench.names() == Names{"ready"});
  bench.streams[0]->write(test::prompt(0, "x", "/home/u/api"), nullptr);
  bench.context.sessions.refresh(one);
  bench.event(one, 2);
  REQUIRE(bench.names() == Names{"2"});
}

TEST_CASE("more sessions than the cache of matches has entries are still distinguished") {
  Bench bench;
  std::vector<Session*> sessions;
  for (int i = 0; i < 600; ++i) sessions.push_back(&bench.session("s" + std::to_string(i)));
  Filter filter;
  filter.session = {"s?", "s5??"};
  bench.subscribe("a", filter);
  Names expected{"ready"};
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 600; ++i) {
      bench.event(*sessions[static_cast<std::size_t>(i)], i);
      if (i < 10 || i >= 500) expected.push_back(std::to_string(i));
    }
  }
  REQUIRE(bench.names() == expected);
}

TEST_CASE("a client that the log has evicted gets lagged, the changed sessions, and later events") {
  TwoSessions bench(4 * LiveLog::segment_bytes);
  bench.event(bench.two, 0);
  bench.subscribe("a", {}, true);
  bench.subscribe("b", only("s2"));
  REQUIRE(bench.names() == Names{"session", "session", "ready", "ready"});
  for (int i = 0; i < 3000; ++i) bench.event(bench.one, i, turn_started, 1000);
  const Names told = bench.names();
  REQUIRE(told == Names{"lagged", "lagged", "session"});  // s2 did not change: no frame for it
  bench.event(bench.one, 3000);
  REQUIRE(bench.names() == Names{"3000"});
}

TEST_CASE("a client that does not read holds no snapshot that the log has overtaken") {
  TwoSessions bench(4 * LiveLog::segment_bytes);
  bench.subscribe("a", {}, true);
  const std::weak_ptr<const std::string> snapshot = bench.two.frames[0];
  bench.two.frames[0].reset();
  REQUIRE_FALSE(snapshot.expired());
  for (int i = 0; i < 3000; ++i) bench.event(bench.one, i, turn_started, 1000);
  bench.subscriber.shed();
  REQUIRE(snapshot.expired());
  REQUIRE(bench.names() == Names{"lagged", "session", "session", "ready"});  // both: neither had been sent
}

TEST_CASE("with deliver: state only the newest frame is sent, once") {
  TwoSessions bench;
  bench.subscribe("a", only("s1"), true, true);
  REQUIRE(bench.names() == Names{"session", "ready"});
  for (int i = 0; i < 5; ++i) {
    bench.event(bench.one, i);
    bench.subscriber.session_changed(bench.one);
    bench.subscriber.session_changed(bench.two);
  }
  REQUIRE(bench.names() == Names{"session"});
  REQUIRE(bench.names() == Names{});
  REQUIRE(bench.context.logs.readers() == 0);
  REQUIRE(bench.context.state_connections == 1);
}

TEST_CASE("a refused subscription is an error, the others are unaffected") {
  Bench bench;
  bench.context.limits.subscriptions_max = 2;
  bench.subscribe("a");
  bench.subscribe("a");
  bench.subscribe("b");
  bench.subscribe("c");
  bench.subscriber.unsubscribe("nobody");
  bench.subscriber.unsubscribe("b");
  bench.context.limits.after_entries = 1;
  message::Subscribe resume;
  resume.id = "r";
  resume.after = {"claude/p/s:", "claude/p/t:"};
  bench.subscriber.subscribe(resume);
  std::vector<std::pair<std::string, std::string>> answers;  // the unsent `ready` of "b" is dropped
  for (const std::string& frame : bench.take_all())
    answers.emplace_back(at(frame, "/id"), at(frame, "/code"));
  REQUIRE(answers == std::vector<std::pair<std::string, std::string>>{{"\"a\"", "absent"},
                                                                      {"\"a\"", "\"bad_message\""},
                                                                      {"\"c\"", "\"limit\""},
                                                                      {"\"nobody\"", "\"bad_message\""},
                                                                      {"\"b\"", "absent"},
                                                                      {"\"r\"", "\"limit\""}});
}

TEST_CASE("with writes cut at random bytes, every frame arrives complete, once and in order") {
  const unsigned seed = GENERATE(1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u);
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Bench bench(4 * LiveLog::segment_bytes);
  std::vector<Session*> sessions;
  for (int i = 0; i < 5; ++i) sessions.push_back(&bench.session("s" + std::to_string(i)));
  Filter filter;
  if (seed % 2) filter.session = {"s0", "s2", "s3"};
  bench.subscribe("a", filter);
  std::vector<std::string> expected{R"({"type":"ready","id":"a"})"};
  int n = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::size_t which = below(5);
    if (below(3) > 0) {
      const std::size_t size = below(50) == 0 ? 40000 : below(400);
      bench.event(*sessions[which], n, turn_started, size);
      if (!(seed % 2) || which == 0 || which == 2 || which == 3) {
        expected.push_back(R"({"n":)" + std::to_string(n) + R"(,"x":")" + std::string(size, 'x') + "\"}");
      }
      ++n;
    } else if (below(40) == 0) {
      bench.subscriber.push_answer(R"({"answer":)" + std::to_string(step) + "}");
      expected.push_back(R"({"answer":)" + std::to_string(step) + "}");
    }
    if (below(2) == 0) bench.socket.take(below(8000));  // a little more than is produced on average
  }
  REQUIRE(bench.take_all() == expected);
}

TEST_CASE("unsent answers are counted, so that the next message can wait") {
  Bench bench;
  bench.context.limits.own_bytes_max = 1000;
  while (!bench.subscriber.is_congested()) bench.subscriber.push_answer(std::string(90, 'x'));
  bench.take_all();
  REQUIRE_FALSE(bench.subscriber.is_congested());
}

// --- Many sessions, slow filters, unread snapshots ---

namespace {

constexpr int many = 5000;

/// Sessions m0, m1, … of running processes, and a loop that matches them in slices.
struct ManySessions : Bench {
  explicit ManySessions(int count = many) : scans(io, context.sessions) {
    context.scans = &scans;
    status::Status status;
    status.source = "registry";
    status.state = "working";
    for (int i = 0; i < count; ++i) context.sessions.find_or_create("m" + std::to_string(i)).status = status;
  }
  ~ManySessions() { context.scans = nullptr; }  // the subscriber is destroyed later
  bool turn() {
    io.restart();
    return io.poll_one() > 0;
  }
  bool finish() {
    return test::run_until(io, [&] { return scans.pending() == 0; });
  }
  Session& find(int i) { return *context.sessions.find("m" + std::to_string(i)); }

  boost::asio::io_context io{1};
  SessionScans scans;
};

Filter slow_filter() {
  Filter filter;
  for (std::size_t i = 0; i + 1 < Filter::patterns_max; ++i) {
    filter.session.push_back("*a*b*c" + std::to_string(i));
    filter.host.push_back("*a*b*c" + std::to_string(i));
    filter.project.push_back("*a*b*c" + std::to_string(i));
  }
  filter.session.push_back("m*");
  filter.host.push_back("dev*");
  filter.project.push_back("*");
  return filter;
}

}  // namespace

TEST_CASE("fault 93: a snapshot of many sessions is matched in slices, and describes one moment") {
  ManySessions bench;
  Socket other(bench.context);
  other.subscriber->subscribe(request("other", false));
  bench.subscribe("a", slow_filter(), true);
  REQUIRE(bench.names() == Names{});
  int turns = 0;
  for (; bench.scans.pending() > 0; ++turns) {
    // Other clients receive events meanwhile. The snapshot includes these.
    bench.event(bench.find(0), turns);
    bench.event(bench.find(many - 1), turns);
    REQUIRE(other.take(1 << 30));
    bool posted = false;  // a turn of the loop
    boost::asio::post(bench.io, [&] { posted = true; });
    while (!posted) REQUIRE(bench.turn());
  }
  REQUIRE(turns >= many / static_cast<int>(SessionScans::slice_sessions_max));
  bench.event(bench.find(0), 0);
  Names expected(many, "session");
  expected.insert(expected.end(), {"ready", "0"});
  REQUIRE(bench.names() == expected);
}

TEST_CASE("fault 93: several clients that match many sessions take turns") {
  ManySessions bench;
  std::vector<std::unique_ptr<Socket>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<Socket>(bench.context));
    message::Subscribe asked = request("a");
    asked.filter = slow_filter();
    clients.back()->subscriber->subscribe(std::move(asked));
  }
  REQUIRE(bench.scans.pending() == clients.size());
  clients.front() = nullptr;  // disconnects
  REQUIRE(bench.scans.pending() == 3);
  REQUIRE(bench.finish());
  for (std::size_t i = 1; i < clients.size(); ++i) {
    while (clients[i]->take(1 << 30)) {
    }
    REQUIRE(test::unframe(clients[i]->received).size() == many + 1);
  }
}

TEST_CASE("fault 93: a subscription can end while its sessions are matched") {
  ManySessions bench;
  bench.subscribe("a", slow_filter(), true);
  bench.subscriber.unsubscribe("a");
  REQUIRE(bench.scans.pending() == 0);
  REQUIRE(bench.names() == Names{"unsubscribed"});
}

TEST_CASE("fault 93: after lagging, changed sessions are matched in slices, too") {
  ManySessions bench;
  bench.subscribe("a", slow_filter());
  REQUIRE(bench.names() == Names{"ready"});
  for (int i = 0; i < many; ++i) bench.event(bench.find(i), i, turn_started, 10'000);
  REQUIRE(bench.names() == Names{});
  REQUIRE(bench.scans.pending() == 1);
  REQUIRE(bench.finish());
  Names expected(many + 1, "session");
  expected.front() = "lagged";
  REQUIRE(bench.names() == expected);
  bench.event(bench.find(1), 1);
  REQUIRE(bench.names() == Names{"1"});
}

TEST_CASE("fault 89: snapshots that are not read are bounded, and then requests wait") {
  ManySessions bench(20'000);
  bench.context.limits.own_bytes_max = 64 << 10;
  bench.context.limits.subscriptions_max = 4;
  std::size_t most = 0;
  for (int round = 0; round < 3000 && !bench.subscriber.is_congested(); ++round) {
    bench.subscribe("a" + std::to_string(round), {}, true);
    if (round % 2) bench.subscriber.unsubscribe("a" + std::to_string(round));
    REQUIRE(bench.finish());
    bench.event(bench.find(round), round);  // each snapshot has a frame of its own
    bench.socket.take(1);
    most = std::max(most, bench.subscriber.snapshot_bytes());
    REQUIRE(bench.subscriber.subscriptions() <= bench.context.limits.subscriptions_max);
  }
  REQUIRE(bench.subscriber.is_congested());  // its connection reads no further message
  std::size_t one_snapshot = 0;
  bench.context.sessions.for_each([&](Session& session) {
    one_snapshot += bench.context.sessions.frame(session, Audience::full)->size();
  });
  REQUIRE(most <= one_snapshot + (4 << 20));
  // A client that reads receives everything.
  for (bool more = true; more;) {
    more = bench.socket.take(1 << 30);
    REQUIRE(bench.finish());
    more |= bench.socket.take(1 << 30);
    bench.socket.received.clear();
  }
  REQUIRE_FALSE(bench.subscriber.is_congested());
  REQUIRE(bench.subscriber.snapshot_bytes() == 0);
}

}  // namespace subscriber_test
