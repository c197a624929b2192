#include "team/host_registry.hpp"

#include <catch2/catch.hpp>
#include <map>

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

  void beat(const std::string& host, std::int64_t time_ms, bool is_replayed = false) {
    hosts.on_message({heartbeat_subject(host),
                      R"({"type":"host","host":")" + host + R"(","owner":"o","instance":"i"})", time_ms,
                      is_replayed});
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
  team.beat("ada", 5000);  // redelivered
  CHECK_FALSE(team.hosts.online("ada"));
  team.beat("ada", 6000);
  CHECK(team.hosts.online("ada"));
  CHECK(team.state("s@ada") == "waiting");
  team.status("ada", "s", "working");
  CHECK(team.state("s@ada") == "working");
  REQUIRE(team.hosts.hosts().size() == 1);
  CHECK(team.hosts.hosts()[0].last_seen == "1970-01-01T00:00:06.000Z");
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
  CHECK(team.shown.size() == HostRegistry::sessions_max - 1);
  CHECK(team.state(name(0) + "@ada").empty());
  CHECK(team.state(name(5) + "@ada").empty());
  CHECK(team.state(name(6) + "@ada") == "working");
}
