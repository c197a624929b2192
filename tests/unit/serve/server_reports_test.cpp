// What a status line and the user report about a session, in its frames.
#include <catch2/catch.hpp>

#include "unit/serve/server_fixture.hpp"

namespace server_reports_test {

using namespace earshot;
using namespace earshot::serve;
using namespace earshot::test;

namespace {

StatusLine status_line(const std::string& session, std::uint64_t window, double percent) {
  StatusLine line;
  line.session = session;
  line.context_window = window;
  line.limit = "claude";
  line.windows = {{"five_hour", percent, 300, "2026-11-24T12:00:00.000Z"}};
  return line;
}

std::string frame_of(ServerFixture& fixture, const std::string& session) {
  auto& sessions = const_cast<ServerContext&>(fixture.server.context()).sessions;
  Session* found = sessions.find(session);
  return found ? payload_of(sessions, *found) : std::string();
}

}  // namespace

TEST_CASE("a status line gives a session the size of its context and its account the limits") {
  ServerFixture fixture;
  fixture.stream("s1");
  fixture.stream("s2");
  auto client = fixture.listener(R"(,"filter":{"session":["s1"]})");
  REQUIRE(at(client->frames[1], "/usage/context_window") == "absent");
  fixture.server.on_status_line(status_line("s1", 200'000, 25));
  REQUIRE(fixture.until([&] { return count(client->types(), "session") == 2; }));
  const std::string& frame = client->frames.back();
  REQUIRE(at(frame, "/usage/context_window") == "200000");
  REQUIRE(at(frame, "/limits/0/limit") == "\"claude\"");
  REQUIRE(
      at(frame, "/limits/0/windows/0") ==
      R"({"name":"five_hour","used_percent":25,"window_minutes":300,"resets_at":"2026-11-24T12:00:00.000Z"})");
  REQUIRE(at(frame_of(fixture, "s2"), "/limits/0/windows/0/used_percent") == "25");  // the same account
  REQUIRE(at(frame_of(fixture, "s2"), "/usage/context_window") == "absent");

  fixture.server.on_status_line(status_line("s1", 200'000, 25));  // nothing new: no frame
  fixture.server.on_status_line(status_line("s1", 200'000, 26));
  REQUIRE(fixture.until([&] { return count(client->types(), "session") == 3; }));
  REQUIRE(at(client->frames.back(), "/limits/0/windows/0/used_percent") == "26");
}

TEST_CASE("a status line may come before the session's transcript") {
  ServerFixture fixture;
  fixture.server.on_status_line(status_line("s1", 1'000'000, 25));
  REQUIRE(frame_of(fixture, "s1").empty());
  fixture.stream("s1");
  REQUIRE(at(frame_of(fixture, "s1"), "/usage/context_window") == "1000000");
}

TEST_CASE("status lines of many unknown sessions are bounded") {
  ServerFixture fixture;
  for (std::size_t n = 0; n < SessionStore::reported_max + 1; ++n)
    fixture.server.on_status_line(status_line("s" + std::to_string(n), 1000 + n, 1));
  fixture.stream("s0");
  fixture.stream("s1");
  REQUIRE(at(frame_of(fixture, "s0"), "/usage/context_window") == "absent");
  REQUIRE(at(frame_of(fixture, "s1"), "/usage/context_window") == "1001");
}

TEST_CASE("a session is unseen from the end of a turn until it was seen or the next turn begins") {
  ServerFixture fixture;
  fixture.server.set_seen(SeenMarks(0));
  FakeStream& stream = fixture.stream("s1");
  auto client = fixture.listener();
  const auto shown = [&](std::size_t frames) {
    REQUIRE(fixture.until([&] { return count(client->types(), "session") == frames; }));
    for (auto frame = client->frames.rbegin();; ++frame)
      if (at(*frame, "/type") == "\"session\"") return at(*frame, "/unseen");
  };
  REQUIRE(shown(1) == "absent");
  fixture.turn(stream, 1);
  REQUIRE(shown(2) == "true");
  REQUIRE(fixture.server.mark_seen("s1"));
  REQUIRE(shown(3) == "absent");
  REQUIRE(fixture.server.mark_seen("s1"));  // again: nothing changes
  fixture.turn(stream, 2);
  REQUIRE(shown(4) == "true");
  stream.write(test::prompt(30, "go on"), &fixture.server);
  fixture.server.on_batch_end();
  REQUIRE(shown(5) == "absent");
  REQUIRE_FALSE(fixture.server.mark_seen("s2"));
}

TEST_CASE("marks are reported when they change, and turns before the beginning are seen") {
  ServerFixture fixture;
  int changes = 0;
  DaemonCallbacks callbacks;
  callbacks.seen_changed = [&] { ++changes; };
  fixture.server.set_callbacks(std::move(callbacks));
  fixture.server.set_seen(SeenMarks(0));
  FakeStream& stream = fixture.stream("s1");
  fixture.turn(stream, 1);
  REQUIRE(at(frame_of(fixture, "s1"), "/unseen") == "true");
  fixture.server.mark_seen("s1");
  fixture.server.mark_seen("s1");
  REQUIRE(changes == 1);
  const auto stored = SeenMarks::parse(fixture.server.seen().text());
  REQUIRE(stored);
  ServerFixture restarted;
  restarted.server.set_seen(*stored);
  restarted.turn(restarted.stream("s1"), 1);
  REQUIRE(at(frame_of(restarted, "s1"), "/unseen") == "absent");
  ServerFixture later;
  later.server.set_seen(SeenMarks(4'000'000'000'000));
  later.turn(later.stream("s1"), 1);
  REQUIRE(at(frame_of(later, "s1"), "/unseen") == "absent");
}

TEST_CASE("an unread session can be marked, too") {
  ServerFixture fixture;
  fixture.server.set_seen(SeenMarks(0));
  fixture.server.set_cold_session_reader([](const auto&, const auto& then) { then(); },
                                         [](const std::string& session) { return session == "old"; });
  REQUIRE(fixture.server.mark_seen("old"));
  REQUIRE_FALSE(fixture.server.mark_seen("other"));
  REQUIRE(fixture.server.seen().size() == 1);
}

TEST_CASE("at a hub the numbers of the host win over those of the events") {
  ServerFixture fixture;
  fixture.server.set_multi_host([](std::string_view) { return true; });
  ReportedNumbers numbers;
  numbers.context_window = 1'000'000;
  numbers.cost_usd = 1.5;
  numbers.cost_source = "mixed";
  numbers.times = TimeSpent{1000, 2000, 3000, 100, 200};
  numbers.limits = {{"2026-03-14T09:27:01.020Z", "claude", "", "", {{"five_hour", 5.0, 300, ""}}}};
  fixture.server.on_host_numbers("s1@ada", numbers);  // before its first event
  fixture.stream("s1@ada");
  auto client = fixture.listener();
  REQUIRE(at(client->frames[1], "/usage/context_window") == "1000000");
  REQUIRE(at(client->frames[1], "/limits/0/windows/0/used_percent") == "5");
  REQUIRE(at(client->frames[1], "/usage/cost_usd") == "1.5");
  REQUIRE(at(client->frames[1], "/usage/cost_source") == "\"mixed\"");
  REQUIRE(at(client->frames[1], "/times") ==
          R"({"waited_ms":1000,"worked_ms":2000,"idle_ms":3000,"turn":{"waited_ms":100,"worked_ms":200}})");
  numbers.context_window = 200'000;
  fixture.server.on_host_numbers("s1@ada", numbers);
  REQUIRE(fixture.until([&] { return count(client->types(), "session") == 2; }));
  REQUIRE(at(client->frames.back(), "/usage/context_window") == "200000");
}

TEST_CASE("sessions of a host whose clock is off show by how much") {
  ServerFixture fixture;
  fixture.server.set_multi_host([](std::string_view) { return true; });
  fixture.stream("s1@ada");
  fixture.stream("s2@bob");
  auto client = fixture.listener();
  fixture.server.on_host_clock("ada", 90'000);
  REQUIRE(fixture.until([&] { return count(client->types(), "session") == 3; }));
  REQUIRE(at(client->frames.back(), "/session") == "\"s1@ada\"");
  REQUIRE(at(client->frames.back(), "/clock_offset_ms") == "90000");
  REQUIRE(at(frame_of(fixture, "s2@bob"), "/clock_offset_ms") == "absent");
  fixture.stream("s3@ada");
  REQUIRE(at(frame_of(fixture, "s3@ada"), "/clock_offset_ms") == "90000");
  fixture.server.on_host_clock("ada", 0);
  REQUIRE(at(frame_of(fixture, "s1@ada"), "/clock_offset_ms") == "absent");
  REQUIRE(at(frame_of(fixture, "s3@ada"), "/clock_offset_ms") == "absent");
}

}  // namespace server_reports_test
