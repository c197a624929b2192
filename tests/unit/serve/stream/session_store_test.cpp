#include "serve/stream/session_store.hpp"

#include <catch2/catch.hpp>

#include "serve/server_context.hpp"
#include "unit/serve/support.hpp"

namespace session_store_test {

using namespace earshot;
using namespace earshot::serve;
using test::at;
using test::FakeStream;
using test::payload_of;

TEST_CASE("a session frame is encoded once until the session changes") {
  FakeStream stream("claude/p/s1", "s1");
  stream.write(test::prompt(0, "hello"), nullptr);
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  const Frame first = sessions.frame(session, Audience::full);
  REQUIRE(sessions.frame(session, Audience::full) == first);
  session.frames = {};
  stream.write(test::answer(1, "done"), nullptr);
  const std::string later = payload_of(sessions, session);
  REQUIRE(at(later, "/turn/open") == "false");
  REQUIRE(at(later, "/turn/outcome") == "\"completed\"");
  REQUIRE(at(later, "/last_text") == "\"done\"");
  REQUIRE(at(test::unframe(*first).front(), "/turn/open") == "true");  // the old frame is unchanged
}

TEST_CASE("a stream without a session joins the session that its lines name") {
  FakeStream stream("claude/p/agent-a1", "", "a1");
  SessionStore sessions("h");
  Session& nameless = sessions.session_of(stream);
  REQUIRE(nameless.name.empty());
  REQUIRE(sessions.find("") == nullptr);
  stream.session_ = "s1";
  Session& named = sessions.session_of(stream);
  REQUIRE(named.name == "s1");
  REQUIRE(named.members.size() == 1);
  REQUIRE(nameless.members.empty());
  REQUIRE(&sessions.session_of(stream) == &named);
}

TEST_CASE("the project is the first working directory, before that the name of its directory") {
  FakeStream stream("claude/-home-u-api/s1", "s1");
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  REQUIRE(session.project_or_directory() == "-home-u-api");
  const auto generation = session.generation;
  stream.write(test::prompt(0, "x", "/home/u/api"), nullptr);
  sessions.refresh(session);
  REQUIRE(session.project_or_directory() == "/home/u/api");
  REQUIRE(session.generation != generation);
  const auto known = session.generation;
  stream.write(test::prompt(1, "y", "/elsewhere"), nullptr);
  sessions.refresh(session);
  REQUIRE(session.project_or_directory() == "/home/u/api");
  REQUIRE(session.generation == known);
}

TEST_CASE("a session is live while its transcript is recent or its process is running") {
  FakeStream stream("claude/p/s1", "s1");
  SessionStore sessions("h");
  Session& session = sessions.session_of(stream);
  const auto recent = std::chrono::hours(24);
  REQUIRE(is_live(session, recent));
  stream.modified_ms_ -= std::chrono::milliseconds(std::chrono::hours(25)).count();
  REQUIRE_FALSE(is_live(session, recent));
  status::Status status;
  status.source = "registry";
  for (const std::string_view state : {"working", "waiting", "idle"}) {
    status.state = state;
    session.status = status;
    REQUIRE(is_live(session, recent));
  }
  status.state = "ended";
  session.status = status;
  REQUIRE_FALSE(is_live(session, recent));
}

TEST_CASE("a session without streams is purged when no frame in the log refers to it") {
  FakeStream stream("claude/p/s1", "s1");
  SessionStore sessions("h");
  const std::uint32_t id = sessions.session_of(stream).id;
  REQUIRE(sessions.remove_stream(stream, 10) != nullptr);
  REQUIRE(sessions.remove_stream(stream, 10) == nullptr);
  REQUIRE(sessions.purge(10) == 1);
  REQUIRE(sessions.find(id) != nullptr);
  REQUIRE(sessions.purge(11) == 0);
  REQUIRE(sessions.find(id) == nullptr);
  REQUIRE(sessions.find("s1") == nullptr);
  REQUIRE(sessions.session_of(stream).id != id);
}

}  // namespace session_store_test
