#include "team/subjects.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tail/host_names.hpp"
#include "team/broker_config.hpp"

using namespace earshot;
using namespace earshot::team;

TEST_CASE("where() omits the credentials of a URL") {
  BrokerConfig config;
  CHECK(config.where() == "NATS");
  config.urls = {"nats://ada:sec@ret@broker.example:4222", "nats://b"};
  CHECK(config.where() == "nats://broker.example:4222");
  config.urls = {"tls://broker.example"};
  CHECK(config.where() == "tls://broker.example");
  config.urls = {"token@broker.example:4222"};
  CHECK(config.where() == "broker.example:4222");
}

TEST_CASE("an escaped name is one token and can be reversed") {
  struct Row {
    std::string text, word;
  };
  const Row rows[] = {
      {"dev7", "dev7"},
      {"ada.example", "ada=2Eexample"},
      {"claude/-home-ada/6f0c", "claude=2F-home-ada=2F6f0c"},
      {"a b*>\t", "a=20b=2A=3E=09"},
      {"=", "=3D"},
      {"", "="},
      {"Grüße", "Gr=C3=BC=C3=9Fe"},
      {std::string("\0\xff", 2), "=00=FF"},
  };
  for (const Row& row : rows) {
    CHECK(tail::escape(row.text) == row.word);
    CHECK(tail::unescape(row.word) == row.text);
  }
  for (const char* wrong : {"a.b", "=4", "=zz", "=41", "=2f", "a b", "=="})
    CHECK_FALSE(tail::unescape(wrong));
}

TEST_CASE("the length of an escaped name is limited, and long names with the same prefix differ") {
  const std::string one(400, 'x'), other = one + "y", spaces(100, ' ');
  for (const std::string& text : {one, other, spaces}) {
    CHECK(tail::escape(text).size() == tail::escaped_bytes_max);
    CHECK_FALSE(tail::unescape(tail::escape(text)));
  }
  CHECK(tail::escape(one) != tail::escape(other));
}

TEST_CASE("100,000 similar names have different escaped names") {
  std::mt19937_64 dice(7);
  const std::string alphabet = "a=.2F/E0 \xc3";
  std::set<std::string> names, words;
  while (names.size() < 100'000) {
    std::string name;
    for (auto n = dice() % 9; n > 0; --n) name += alphabet[dice() % alphabet.size()];
    names.insert(name);
  }
  for (const std::string& name : names) words.insert(tail::escape(name));
  CHECK(words.size() == names.size());
}

TEST_CASE("a subject has host, project, session and stream") {
  const std::string main = "earshot.v1.dev7.claude=2F-home-ada.6f0c";
  CHECK(event_subject("dev7", "6f0c", "claude/-home-ada/6f0c") == main);
  CHECK(event_subject("dev7", "6f0c", "claude/conversations/x/6f0c") ==
        "earshot.v1.dev7.claude=2Fconversations=2Fx.6f0c");
  // Streams other than the session's main one have their name as a token.
  CHECK(event_subject("dev7", "0c", "claude/-home-ada/6f0c") ==
        "earshot.v1.dev7.claude=2F-home-ada.0c.claude=2F-home-ada=2F6f0c");
  CHECK(event_subject("dev7", "6f0c", "claude/-home-ada/6f0c/subagents/agent-1") ==
        "earshot.v1.dev7.claude=2F-home-ada.6f0c.claude=2F-home-ada=2F6f0c=2Fsubagents=2Fagent-1");
  CHECK(event_subject("dev7", "", "claude/-home-ada/agent-1") ==
        "earshot.v1.dev7.claude=2F-home-ada.=.claude=2F-home-ada=2Fagent-1");
  CHECK(is_subject_of(main, "dev7", "claude/-home-ada/6f0c"));
  CHECK(is_subject_of(main + ".claude=2F-home-ada=2F6f0c", "dev7", "claude/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of(main, "dev8", "claude/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of(main, "dev7", "claude/-home-ada/6f0d"));
  CHECK_FALSE(is_subject_of(main, "dev7", "other/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of(main + ".x", "dev7", "claude/-home-ada/6f0c"));
  CHECK_FALSE(is_subject_of("", "dev7", "6f0c"));
  CHECK(event_subject("a.b", "", "claude/6f0c") == "earshot.v1.a=2Eb.=.=.claude=2F6f0c");
  const auto tokens = tokens_of("earshot.v1.a=2Eb.=.=.claude=2F6f0c");
  REQUIRE(tokens);
  CHECK(tokens->host == "a=2Eb");
  CHECK(tokens->stream == "claude=2F6f0c");
  for (const char* wrong :
       {"earshot.v1.a.b.c", "earshot.v1.a.b.c.d.e", "earshot.v1.a..c.d", "other.v1.a.b.c.d", ""})
    CHECK_FALSE(tokens_of(wrong));
}

TEST_CASE("a message id has stream, cursor and history for any stream name") {
  const std::string id = message_id("dev7", "claude/a/b#c", "12.1.00ff", "");
  const auto parts = parts_of_id("dev7", id);
  REQUIRE(parts);
  CHECK(parts->stream == "claude/a/b#c");
  CHECK(parts->cursor == "12.1.00ff");
  CHECK(parts->history.empty());
  const std::string renewed = message_id("dev7", "claude/a/b", "12.1.00ff", "1f2e");
  const auto again = parts_of_id("dev7", renewed);
  REQUIRE(again);
  CHECK(again->cursor == "12.1.00ff");
  CHECK(again->history == "1f2e");
  CHECK_FALSE(parts_of_id("dev", id));
  CHECK_FALSE(parts_of_id("dev7", "dev7/"));
}

TEST_CASE("a valid host name has only characters that subjects, files and session names allow") {
  for (const char* shorten_event : {"dev7", "ada.example", "a_b-c", "7"}) CHECK(is_host(shorten_event));
  for (const std::string& unfit :
       {std::string(), std::string("a@b"), std::string("a b"), std::string("ü"), std::string(65, 'x')})
    CHECK_FALSE(is_host(unfit));
}

TEST_CASE("the name of a stored file identifies host, session and agent") {
  const auto below = [](const std::string& host, const std::string& stream) {
    return tail::escape(host) + "/" + tail::escape(stream);
  };
  const StreamIdentity main = tail::relayed_identity(below("ada.example", "claude/-home-ada/6f0c"));
  CHECK(main.session == "6f0c@ada.example");
  CHECK(main.agent.empty());
  CHECK(main.directory == "-home-ada");
  const StreamIdentity agent = tail::relayed_identity(below("bob", "claude/-p/6f0c/subagents/agent-a1"));
  CHECK(agent.session == "6f0c@bob");
  CHECK(agent.agent == "a1");
  CHECK(tail::relayed_identity(below("bob", "claude/-p/agent-a1")).session.empty());
  CHECK(tail::relayed_identity(below("bob", "claude/" + std::string(300, 'x'))).session.empty());
  CHECK(tail::relayed_identity("nothing").session.empty());
}
