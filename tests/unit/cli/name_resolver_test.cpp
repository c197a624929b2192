#include "cli/name_resolver.hpp"

#include <catch2/catch.hpp>

namespace name_resolver_test {

using namespace earshot;
using namespace earshot::cli;

namespace {

SessionSelector candidates(const std::vector<std::string>& frames) {
  SessionSelector all;
  FrameParser parser;
  for (const std::string& json : frames) all.add(*parser.parse(json), json);
  return all;
}

std::string session(const std::string& id, const std::string& activity, const std::string& host = "h") {
  return R"({"type":"session","host":")" + host + R"(","session":")" + id +
         R"(","project":"/home/u/a\u001bpi","last_activity":"2026-11-24T)" + activity + "Z\"}";
}

}  // namespace

TEST_CASE("the only session whose id begins with the name is selected, an exact id takes precedence") {
  CHECK(candidates({session("2eaa1c04", "10:00:00")}).named("2e").frame == session("2eaa1c04", "10:00:00"));
  CHECK(candidates({session("2e", "10:00:00"), session("2eaa", "11:00:00")}).named("2e").frame ==
        session("2e", "10:00:00"));
}

TEST_CASE("several matching sessions are listed, the latest first") {
  const Selection choice = candidates({session("2eaa", "10:00:00"), session("2ebb", "11:00:00")}).named("2e");
  CHECK(choice.frame.empty());
  CHECK(choice.ambiguous);
  CHECK(choice.error.find("2ebb") < choice.error.find("2eaa"));
  CHECK(choice.error.find('\x1b') == std::string::npos);
}

TEST_CASE("long titles of matching sessions are cut") {
  std::string long_title = session("2eaa", "10:00:00");
  long_title.insert(long_title.size() - 1, R"(,"title":")" + std::string(100, 'x') + "\"");
  const std::string error = candidates({long_title, session("2ebb", "11:00:00")}).named("2e").error;
  CHECK(error.find(std::string(40, 'x')) != error.npos);
  CHECK(error.find(std::string(60, 'x')) == error.npos);
}

TEST_CASE("the same id on two hosts requires --host") {
  const Selection choice =
      candidates({session("2e", "10:00:00", "one"), session("2e", "10:00:00", "two")}).named("2e");
  CHECK(choice.ambiguous);
  CHECK(choice.error.find("--host") != std::string::npos);
}

TEST_CASE("a newer frame of a session replaces the older one") {
  CHECK(candidates({session("2e", "10:00:00"), session("2e", "11:00:00")}).named("2e").frame ==
        session("2e", "11:00:00"));
}

TEST_CASE("the last session is that with the latest activity") {
  CHECK(candidates({session("a", "10:00:00"), session("b", "12:00:00"), session("c", "11:00:00")})
            .last()
            .frame == session("b", "12:00:00"));
  CHECK_FALSE(candidates({}).last().error.empty());
  CHECK_FALSE(candidates({}).named("x").ambiguous);
}

TEST_CASE("the activity of a host whose clock is off counts by the clock of the hub") {
  std::string slow = session("a", "10:00:00", "slow");
  slow.insert(slow.size() - 1, R"(,"clock_offset_ms":7200000)");
  CHECK(candidates({slow, session("b", "11:00:00")}).last().frame == slow);
}

}  // namespace name_resolver_test
