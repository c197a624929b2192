#include "team/host_registry.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/quantities.hpp"
#include "team/payload.hpp"

using namespace earshot;
using namespace earshot::team;

namespace {

struct Team {
  boost::asio::io_context io;
  std::map<std::string, status::Status> shown;
  std::map<std::string, int> times;  // how often each was passed on
  HostRegistry hosts{io,
                     [this](const std::string& session, const status::Status& status) {
                       shown[session] = status;
                       ++times[session];
                     },
                     [](const status::HostStatuses&) {}};

  void beat(const std::string& host, std::int64_t time_ms, bool is_replayed = false) {
    hosts.on_message({heartbeat_subject(host),
                      R"({"type":"host","host":")" + host + R"(","owner":"o","instance":"i"})", time_ms,
                      is_replayed});
  }
  /// A heartbeat of a host whose clock is `behind_ms` behind.
  void beat_late(std::int64_t time_ms, std::int64_t behind_ms, bool is_replayed = false) {
    const std::string time = format_time(wall_now_ms() - behind_ms);
    hosts.on_message(
        {heartbeat_subject("ada"), heartbeat_payload({"ada", "o", "i", false, time}), time_ms, is_replayed});
  }
  void numbers(const std::string& session, const serve::ReportedNumbers& numbers, bool is_replayed = false) {
    const status::Status value{"idle", "", "", "registry", ""};
    hosts.on_message(
        {status_subject("ada", session), status_payload("ada", session, value, numbers), 1, is_replayed});
  }
  void status(const std::string& host, const std::string& session, const std::string& state) {
    const status::Status value{state, "", "", "registry", ""};
    hosts.on_message({status_subject(host, session), status_payload(host, session, value), 1, false});
  }
  std::string state(const std::string& session) const {
    const auto found = shown.find(session);
    return found == shown.end() ? "" : found->second.state;
  }
};

}  // namespace

TEST_CASE("a host is online after a new heartbeat, not after a replayed one") {
  Team team;
  team.beat("ada", 5000, true);
  team.status("ada", "s", "waiting");
  CHECK_FALSE(team.hosts.online("ada"));
  CHECK(team.shown.empty());
  team.beat("ada", 6000);
  CHECK(team.hosts.online("ada"));
  CHECK(team.state("s@ada") == "waiting");
  team.status("ada", "s", "working");
  CHECK(team.state("s@ada") == "working");
  REQUIRE(team.hosts.hosts().size() == 1);
  CHECK(team.hosts.hosts()[0].last_seen == "1970-01-01T00:00:06.000Z");
}

TEST_CASE(
    "fault 145: a new heartbeat counts though the broker's clock was set back, a replayed one does not") {
  Team team;
  team.beat("ada", 9000, true);
  team.status("ada", "s", "waiting");
  team.beat("ada", 5000, true);  // the subscription began anew
  CHECK_FALSE(team.hosts.online("ada"));
  CHECK(team.shown.empty());
  team.beat("ada", 5000);
  CHECK(team.hosts.online("ada"));
  CHECK(team.state("s@ada") == "waiting");
  team.beat("ada", 4000);
  CHECK(team.hosts.hosts()[0].last_seen == "1970-01-01T00:00:04.000Z");
  team.status("ada", "s", "idle");
  CHECK(team.state("s@ada") == "idle");
}

TEST_CASE("fault 145: heartbeats show the offset of the host's clock whatever the broker's clock says") {
  Team team;
  std::vector<std::int64_t> offsets;
  team.hosts.on_clock = [&](const std::string&, std::int64_t offset_ms) { offsets.push_back(offset_ms); };
  team.beat_late(9000, 0);
  team.beat_late(8000, -600'000);
  CHECK(offsets.size() == 1);
}

TEST_CASE("a hub tells once what a prompt led to, and not what had ended before it saw the session") {
  Team team;
  const auto send = [&](const std::string& state, std::uint32_t turn, bool is_replayed = false,
                        const std::string& detail = {}) {
    status::Status value{state, "", detail, "registry", ""};
    if (turn) value.done = status::Done{"completed", turn, 1, "2026-03-14T09:27:01.020Z", 1000, 0, false};
    team.hosts.on_message({status_subject("ada", "s"), status_payload("ada", "s", value), 1, is_replayed});
    return team.shown["s@ada"].tells_done;
  };
  team.beat("ada", 1);
  CHECK_FALSE(send("idle", 2));  // seen for the first time
  CHECK(team.shown["s@ada"].done->turn == 2);
  CHECK_FALSE(send("working", 0));
  CHECK(send("idle", 3));
  CHECK_FALSE(send("idle", 3, false, "refined"));
  CHECK_FALSE(send("working", 0));
  CHECK_FALSE(send("idle", 3, false, "after the turn of a task"));
  CHECK_FALSE(send("idle", 4, true));
  CHECK_FALSE(send("ended", 4));
}

TEST_CASE("a message under the subject of another host is ignored") {
  Team team;
  team.beat("ada", 1), team.beat("eve", 1);
  const status::Status lie{"idle", "", "", "registry", ""};
  for (const std::string& subject : {status_subject("eve", "s"), heartbeat_subject("eve"),
                                     heartbeat_subject("ada"), status_subject("ada", "other")})
    team.hosts.on_message({subject, status_payload("ada", "s", lie), 2, false});
  team.hosts.on_message({heartbeat_subject("eve"), R"({"type":"host","host":"bob"})", 2, false});
  for (const char* text : {"", "{", "[]", "7", R"({"type":"host","host":"a/b"})"})
    team.hosts.on_message({heartbeat_subject("eve"), text, 2, false});
  CHECK(team.shown.empty());
  CHECK(team.hosts.hosts().size() == 2);
}

TEST_CASE("the sessions of a host are limited, and ended ones are not stored") {
  Team team;
  const auto name = [](std::size_t n) { return "s" + std::to_string(n); };
  for (std::size_t n = 0; n <= HostRegistry::sessions_max; ++n) team.status("ada", name(n), "working");
  team.status("ada", name(5), "ended");
  team.beat("ada", 1);
  team.io.run();
  CHECK(team.shown.size() == HostRegistry::sessions_max - 1);
  CHECK(team.state(name(0) + "@ada").empty());
  CHECK(team.state(name(5) + "@ada").empty());
  CHECK(team.state(name(6) + "@ada") == "working");
}

TEST_CASE("fault 88: a host with a million sessions is limited and does not affect the sessions of another") {
  Team team;
  team.beat("ada", 1), team.beat("eve", 1);
  team.status("ada", "s", "working");
  for (std::size_t n = 0; n < 3 * HostRegistry::sessions_max; ++n)
    team.status("eve", "s" + std::to_string(n), "working");
  std::size_t alive = 0;
  for (const auto& [session, status] : team.shown) alive += status.state == "working";
  CHECK(alive == HostRegistry::sessions_max + 1);
  CHECK(team.state("s@ada") == "working");
  CHECK(team.state("s0@eve") == "unknown");
  team.status("eve", std::string(HostRegistry::session_bytes_max + 1, 'x'), "working");
  CHECK(team.state(std::string(HostRegistry::session_bytes_max + 1, 'x') + "@eve").empty());
  for (std::size_t n = 0; n < 2 * HostRegistry::evictions_burst; ++n)
    team.status("eve", "t" + std::to_string(n), "working");
  CHECK(team.shown.size() < 2 * HostRegistry::evictions_burst);
}

TEST_CASE("fault 148: the statuses of a host with many sessions are passed on in slices, each once") {
  Team team;
  for (std::size_t n = 0; n < HostRegistry::sessions_max; ++n)
    team.status("ada", std::to_string(n + 1000), "working");
  team.beat("ada", 1000);
  CHECK(team.shown.size() <= serve::Slice::steps_max);
  const std::size_t shown = team.shown.size();
  team.status("ada", "1000", "waiting");  // was passed on
  team.status("ada", "2999", "waiting");  // will be
  CHECK(team.state("1000@ada") == "waiting");
  CHECK(team.shown.size() == shown);
  team.io.run();
  CHECK(team.shown.size() == HostRegistry::sessions_max);
  CHECK(team.state("2999@ada") == "waiting");
  CHECK(team.times["2999@ada"] == 1);
  CHECK(team.times["1001@ada"] == 1);
  CHECK(team.times["1000@ada"] == 2);
}

TEST_CASE("the queue of statuses keeps the newest message of each subject, and limits each host") {
  const auto message = [](const std::string& host, std::size_t session, const char* text) {
    return StatusMessage{status_subject(host, std::to_string(session)), text, 1, false};
  };
  using Put = StatusQueue::Put;
  StatusQueue queue;
  CHECK(queue.put(message("ada", 1, "old")) == Put::first);
  CHECK(queue.put(message("ada", 1, "new")) == Put::more);
  for (std::size_t n = 0; n < StatusQueue::host_max; ++n)
    REQUIRE(queue.put(message("eve", n, "x")) == Put::more);
  CHECK(queue.put(message("eve", StatusQueue::host_max, "x")) == Put::host_full);
  CHECK(queue.put(message("eve", 7, "y")) == Put::more);
  CHECK(queue.put(message("ada", 2, "other")) == Put::more);
  const auto all = queue.take();
  CHECK(all.size() == 2);
  CHECK(all.at("eve").size() == StatusQueue::host_max);
  CHECK(all.at("ada").size() == 2);
  CHECK(all.at("ada").begin()->second.payload == "new");
  CHECK(queue.put(message("ada", 3, "x")) == Put::more);  // as long as they are being taken
  CHECK(queue.take().size() == 1);
  CHECK(queue.take().empty());
  CHECK(queue.put(message("ada", 3, "x")) == Put::first);
}

TEST_CASE("the clock of a host is compared with this machine's when a heartbeat arrives") {
  Team team;
  std::vector<std::int64_t> offsets;
  team.hosts.on_clock = [&](const std::string& host, std::int64_t offset_ms) {
    CHECK(host == "ada");
    offsets.push_back(offset_ms);
  };
  const auto about = [](std::int64_t offset_ms, std::int64_t expected) {
    return offset_ms >= expected && offset_ms < expected + 30'000;  // later on a loaded machine
  };
  team.beat_late(1, 600'000, true);  // stored earlier: proves nothing
  team.beat_late(2, 0);
  CHECK(offsets.empty());
  team.beat_late(3, 90'000);  // may have been delayed
  CHECK(offsets.empty());
  team.beat_late(4, 90'000);
  CHECK(offsets.empty());
  team.beat_late(5, 90'000);
  REQUIRE(offsets.size() == 1);
  CHECK(about(offsets[0], 90'000));
  team.beat_late(6, -600'000);  // set forward: no delay looks like that
  REQUIRE(offsets.size() == 2);
  CHECK(about(offsets[1], -600'000));
  for (std::int64_t time = 7; time < 10; ++time) team.beat_late(time, 0);
  REQUIRE(offsets.size() == 3);
  CHECK(offsets[2] == 0);
  team.beat("ada", 20);  // of an earlier version: without a time
  CHECK(offsets.size() == 3);
}

TEST_CASE("the numbers of a session are passed on when they change, replayed ones too") {
  Team team;
  std::vector<std::pair<std::string, serve::ReportedNumbers>> received;
  team.hosts.on_numbers = [&](const std::string& session, const serve::ReportedNumbers& numbers) {
    received.emplace_back(session, numbers);
  };
  serve::ReportedNumbers numbers;
  numbers.context_window = 200'000;
  team.numbers("s", numbers, true);
  CHECK(team.shown.empty());  // not online yet
  REQUIRE(received.size() == 1);
  CHECK(received[0].first == "s@ada");
  CHECK(received[0].second == numbers);
  team.numbers("s", numbers);
  CHECK(received.size() == 1);
  numbers.cost_usd = 1.5;
  numbers.cost_source = "estimated";
  team.numbers("s", numbers);
  REQUIRE(received.size() == 2);
  CHECK(received[1].second == numbers);
  team.status("ada", "other", "idle");  // without numbers
  CHECK(received.size() == 2);
}
