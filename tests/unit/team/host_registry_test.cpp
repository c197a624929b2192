#include "team/host_registry.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "base/conflating_queue.hpp"
#include "team/payload.hpp"
#include "team/subjects.hpp"

using namespace earshot;
using namespace earshot::team;

namespace {

struct Team {
  boost::asio::io_context io;
  std::map<std::string, status::Status> shown;
  HostRegistry hosts{
      io, [this](const std::string& session, const status::Status& status) { shown[session] = status; },
      [](const status::HostStatuses&) {}};

  void beat(const std::string& host, std::int64_t time_ms, bool old = false) {
    hosts.hear({beat_subject(host), R"({"type":"host","host":")" + host + R"(","owner":"o","instance":"i"})",
                time_ms, old});
  }
  void status(const std::string& host, const std::string& session, const std::string& state) {
    const status::Status said{state, "", "", "registry", ""};
    hosts.hear({status_subject(host, session), status_payload(host, session, said), 1, false});
  }
  std::string state(const std::string& session) const {
    const auto found = shown.find(session);
    return found == shown.end() ? "" : found->second.state;
  }
};

}  // namespace

TEST_CASE("a host is online when it is heard, not when an old word of it is read") {
  Team team;
  team.beat("ada", 5000, true);
  team.status("ada", "s", "waiting");
  CHECK_FALSE(team.hosts.online("ada"));
  CHECK(team.shown.empty());
  team.beat("ada", 5000);  // the same once more
  CHECK_FALSE(team.hosts.online("ada"));
  team.beat("ada", 6000);
  CHECK(team.hosts.online("ada"));
  CHECK(team.state("s@ada") == "waiting");
  team.status("ada", "s", "working");
  CHECK(team.state("s@ada") == "working");
  REQUIRE(team.hosts.seen().size() == 1);
  CHECK(team.hosts.seen()[0].heard == "1970-01-01T00:00:06.000Z");
}

TEST_CASE("a host is believed of itself alone") {
  Team team;
  team.beat("ada", 1), team.beat("eve", 1);
  const status::Status lie{"idle", "", "", "registry", ""};
  for (const std::string& subject :
       {status_subject("eve", "s"), beat_subject("eve"), beat_subject("ada"), status_subject("ada", "other")})
    team.hosts.hear({subject, status_payload("ada", "s", lie), 2, false});
  team.hosts.hear({beat_subject("eve"), R"({"type":"host","host":"bob"})", 2, false});
  for (const char* text : {"", "{", "[]", "7", R"({"type":"host","host":"a/b"})"})
    team.hosts.hear({beat_subject("eve"), text, 2, false});
  CHECK(team.shown.empty());
  CHECK(team.hosts.seen().size() == 2);
}

TEST_CASE("of one host only so many sessions are remembered, and none that has ended") {
  Team team;
  const auto name = [](std::size_t n) { return "s" + std::to_string(n); };
  for (std::size_t n = 0; n <= HostRegistry::sessions_max; ++n) team.status("ada", name(n), "working");
  team.status("ada", name(5), "ended");
  team.beat("ada", 1);
  CHECK(team.shown.size() == HostRegistry::sessions_max - 1);
  CHECK(team.state(name(0) + "@ada").empty());
  CHECK(team.state(name(5) + "@ada").empty());
  CHECK(team.state(name(6) + "@ada") == "working");
}

TEST_CASE("of each key the newest waits, the loop is told once, and of too many keys nothing is taken") {
  ConflatingQueue<int> latest(2);
  using Put = ConflatingQueue<int>::Put;
  CHECK(latest.put("a", 1) == Put::first);
  CHECK(latest.put("a", 2) == Put::more);
  CHECK(latest.put("b", 3) == Put::more);
  CHECK(latest.put("c", 4) == Put::full);
  CHECK(latest.put("b", 5) == Put::more);
  CHECK(latest.take() == std::vector<int>{2, 5});
  CHECK(latest.take().empty());
  CHECK(latest.put("c", 6) == Put::first);
}
