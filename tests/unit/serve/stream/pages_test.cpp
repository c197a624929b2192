// Snapshots by page.
#include <catch2/catch.hpp>

#include "serve/stream/session_pages.hpp"
#include "unit/serve/stream/subscriber_fixture.hpp"

namespace pages_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::serve::test_subscriber;

namespace {

using Names = std::vector<std::string>;

/// Sessions of running processes, in a daemon that reports each change at once; and a client.
struct Bench {
  Bench() : context("dev7", 2 * LiveLog::segment_bytes), scans(io, context.sessions), socket(context) {
    context.scans = &scans;
  }
  ~Bench() {
    socket.subscriber.reset();
    context.scans = nullptr;
  }

  Session& set(const std::string& name, const std::string& state,
               const std::string& project = "/home/u/api") {
    Session& session = context.sessions.find_or_create(name);
    status::Status status;
    status.source = "registry";
    status.state = state;
    session.status = status;
    session.project = project;
    ++session.generation;
    context.sessions.note_change(session, context.logs.head());
    if (context.state_connections > 0) socket.subscriber->session_changed(session);
    return session;
  }
  void remove(const std::string& name) {
    Session& session = *context.sessions.find(name);
    session.status->state = "ended";
    session.retired = 0;
    context.sessions.purge(1);
    REQUIRE_FALSE(context.sessions.find(name));
  }
  void subscribe(std::size_t page, const std::string& id = "a", Filter filter = {}) {
    message::Subscribe asked = request(id);
    asked.state = true;
    asked.page = page;
    asked.filter = std::move(filter);
    socket.subscriber->subscribe(std::move(asked));
  }
  void next(const std::string& continuation, const std::string& id = "a") {
    socket.subscriber->next_page({id, continuation});
  }
  /// What the client received since the last call: the sessions' names and the types of other frames.
  Names take() {
    for (int quiet = 0; quiet < 3;) {
      quiet = socket.take(1 << 30) ? 0 : quiet + 1;
      io.restart();
      while (io.poll() > 0) {
      }
    }
    Names names;
    for (const std::string& frame : test::unframe(std::exchange(socket.received, {}))) {
      const std::string type = unquoted(at(frame, "/type"));
      names.push_back(type == "session" ? unquoted(at(frame, "/session")) : type);
      if (type == "page") page = frame;
      if (type == "error") error = unquoted(at(frame, "/code"));
    }
    return names;
  }
  std::string continuation() const { return unquoted(at(page, "/next")); }
  std::string rest(const std::string& name) const { return at(page, "/rest/" + name); }

  boost::asio::io_context io{1};
  ServerContext context;
  SessionScans scans;
  Socket socket;
  std::string page, error;
};

}  // namespace

TEST_CASE("pages begin with what waits for the user, then what works, and state what is left") {
  Bench bench;
  bench.set("idle", "idle");
  bench.set("w1", "working");
  bench.set("asks", "waiting");
  bench.set("w2", "working");
  bench.set("w3", "working");
  bench.subscribe(2);
  REQUIRE(bench.take() == Names{"asks", "w1", "page"});
  REQUIRE(bench.rest("sessions") == "3");
  REQUIRE(bench.rest("waiting") == "0");
  REQUIRE(bench.rest("working") == "2");
  REQUIRE(bench.rest("unseen") == "0");
  REQUIRE(bench.rest("day") == "absent");
  bench.next(bench.continuation());
  REQUIRE(bench.take() == Names{"w2", "w3", "page"});
  REQUIRE(bench.rest("sessions") == "1");
  REQUIRE(bench.rest("working") == "0");
  bench.next(bench.continuation());
  REQUIRE(bench.take() == Names{"idle", "page", "ready"});
  REQUIRE(bench.rest("sessions") == "0");
  REQUIRE(at(bench.page, "/next") == "absent");
}

TEST_CASE("all sessions on one page are followed by ready, and none by an empty page") {
  Bench bench;
  bench.subscribe(10);
  REQUIRE(bench.take() == Names{"page", "ready"});
  bench.set("s1", "working");
  REQUIRE(bench.take() == Names{"s1"});
  bench.subscribe(1, "b");
  REQUIRE(bench.take() == Names{"s1", "page", "ready"});
}

TEST_CASE("a session that changes between two pages is sent at once, and not again by a later page") {
  Bench bench;
  for (const char* name : {"s1", "s2", "s3", "s4", "s5", "s6"}) bench.set(name, "working");
  bench.subscribe(2);
  REQUIRE(bench.take() == Names{"s1", "s2", "page"});
  bench.set("s5", "waiting");  // its place would now be on the first page
  bench.set("s1", "idle");     // its place would now be on the last page
  bench.set("new", "working");
  bench.remove("s4");
  REQUIRE(bench.take() == Names{"s1", "s5", "new"});
  bench.next(bench.continuation());
  REQUIRE(bench.take() == Names{"s3", "s6", "page", "ready"});
}

TEST_CASE("the figures of the rest are without a session that changed meanwhile") {
  Bench bench;
  for (const char* name : {"s1", "s2", "s3", "s4"}) bench.set(name, "working");
  bench.subscribe(1);
  REQUIRE(bench.take() == Names{"s1", "page"});
  REQUIRE(bench.rest("working") == "3");
  bench.set("s4", "idle");
  REQUIRE(bench.take() == Names{"s4"});
  bench.next(bench.continuation());
  REQUIRE(bench.take() == Names{"s2", "page"});
  REQUIRE(bench.rest("sessions") == "1");
  REQUIRE(bench.rest("working") == "1");
}

TEST_CASE("a continuation is valid once, for its subscription") {
  Bench bench;
  for (const char* name : {"s1", "s2", "s3"}) bench.set(name, "working");
  bench.subscribe(1);
  bench.subscribe(1, "b");
  REQUIRE(bench.take() == Names{"s1", "page", "s1", "page"});
  const std::string of_b = bench.continuation();
  for (const std::string& wrong :
       {std::string(), std::string("0123456789abcdef"), of_b, std::string(5000, 'x')}) {
    bench.next(wrong);
    REQUIRE(bench.take() == Names{"error"});
    REQUIRE(bench.error == "bad_page");
  }
  bench.next(of_b, "b");
  REQUIRE(bench.take() == Names{"s2", "page"});
  bench.next(of_b, "b");  // stale
  REQUIRE(bench.take() == Names{"error"});
  REQUIRE(bench.error == "bad_page");
  bench.next(bench.continuation(), "c");
  REQUIRE(bench.take() == Names{"error"});
  REQUIRE(bench.error == "bad_message");
  bench.next(bench.continuation(), "b");
  REQUIRE(bench.take() == Names{"s3", "page", "ready"});
  bench.next(bench.continuation(), "b");  // complete: there is none
  REQUIRE(bench.take() == Names{"error"});
  bench.socket.subscriber->unsubscribe("a");
  REQUIRE(bench.take() == Names{"unsubscribed"});
  message::Subscribe whole = request("whole");
  whole.state = true;
  bench.socket.subscriber->subscribe(std::move(whole));
  REQUIRE(bench.take() == Names{"s1", "s2", "s3", "ready"});
  bench.next("x", "whole");
  REQUIRE(bench.take() == Names{"error"});
  REQUIRE(bench.error == "bad_page");
}

TEST_CASE("a restricted client's pages and figures contain only what it may see") {
  Bench bench;
  for (int n = 0; n < 5; ++n) {
    bench.set("mine" + std::to_string(n), "working");
    bench.set("other" + std::to_string(n), "waiting", "/home/u/secret");
  }
  Filter allowed;
  allowed.project = {"/home/u/api"};
  bench.socket.subscriber->restrict_to(&allowed);
  bench.subscribe(2);
  REQUIRE(bench.take() == Names{"mine0", "mine1", "page"});
  REQUIRE(bench.rest("sessions") == "3");
  REQUIRE(bench.rest("waiting") == "0");
  bench.set("other3", "working", "/home/u/secret");
  REQUIRE(bench.take() == Names{});
  bench.next(bench.continuation());
  REQUIRE(bench.take() == Names{"mine2", "mine3", "page"});
  bench.next(bench.continuation());
  REQUIRE(bench.take() == Names{"mine4", "page", "ready"});
}

TEST_CASE(
    "pages of many sessions are found in slices, each session is sent once, and a scan can be abandoned") {
  constexpr int many = 5000;
  constexpr std::size_t size = message::Subscribe::page_max;
  Bench bench;
  for (int n = 0; n < many; ++n)
    bench.set("m" + std::to_string(10'000 + n), n % 1000 == 7 ? "waiting" : "working");
  bench.subscribe(size);
  REQUIRE(bench.scans.pending() == 1);  // not in one call
  bench.socket.subscriber->unsubscribe("a");
  REQUIRE(bench.scans.pending() == 0);
  REQUIRE(bench.take() == Names{"unsubscribed"});

  bench.subscribe(size);
  bench.set("m10000", "idle");  // visited already
  bench.set("m14999", "idle");  // not yet
  std::set<std::string> seen;
  std::size_t frames = 0;
  for (int pages = 0;; ++pages) {
    REQUIRE(pages < 6);
    const Names names = bench.take();
    const bool is_complete = names.back() == "ready";
    std::size_t sessions = 0;
    for (const std::string& name : names)
      if (name.front() == 'm') ++sessions, seen.insert(name);
    const auto first_unchanged = std::find_if(names.begin(), names.end(), [](const std::string& name) {
      return name != "m10000" && name != "m14999";
    });
    if (pages == 0) REQUIRE(*first_unchanged == "m10007");
    frames += sessions;
    REQUIRE(sessions <= size + 2);  // with those that changed
    if (is_complete) break;
    REQUIRE(std::stoul(bench.rest("sessions")) + frames >= many);
    bench.next(bench.continuation());
  }
  REQUIRE(seen.size() == many);
  REQUIRE(frames <= many + 2);
}

TEST_CASE("a client that does not read gets no further page, and its queue does not grow") {
  Bench bench;
  for (int n = 0; n < 3000; ++n) bench.set("m" + std::to_string(10'000 + n), "working");
  bench.subscribe(message::Subscribe::page_max);
  for (int turn = 0; turn < 100; ++turn) {
    bench.io.restart();
    while (bench.io.poll() > 0) {
    }
    Batch batch;
    bench.socket.subscriber->gather(batch);  // nothing of it is sent
    REQUIRE_FALSE(batch.empty());
  }
  REQUIRE(bench.socket.subscriber->snapshot_bytes() < (1 << 20));
}

TEST_CASE("the order of pages: unseen sessions follow those that wait, each by their newest activity") {
  const PageKey keys[] = {{0, 5, 9}, {1, 9, 1}, {1, 7, 2}, {1, 7, 3}, {2, 99, 4}};
  for (std::size_t a = 0; a < std::size(keys); ++a)
    for (std::size_t b = 0; b < std::size(keys); ++b) REQUIRE((keys[a] < keys[b]) == (a < b));
}

}  // namespace pages_test
