#include "tail/host_names.hpp"

#include <catch2/catch.hpp>
#include <random>
#include <set>

using namespace earshot;

TEST_CASE("an escaped name is one token and can be reversed") {
  struct Row {
    std::string text, escaped;
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
    CHECK(tail::escape(row.text) == row.escaped);
    CHECK(tail::unescape(row.escaped) == row.text);
  }
  for (const char* wrong : {"a.b", "=4", "=zz", "=41", "=2f", "a b", "=="})
    CHECK_FALSE(tail::unescape(wrong));
}

TEST_CASE("the length of an escaped name is limited, and long names with the same prefix differ") {
  const std::string first(400, 'x'), second = first + "y", spaces(100, ' ');
  for (const std::string& text : {first, second, spaces}) {
    CHECK(tail::escape(text).size() == tail::escaped_bytes_max);
    CHECK_FALSE(tail::unescape(tail::escape(text)));
  }
  CHECK(tail::escape(first) != tail::escape(second));
}

TEST_CASE("100,000 similar names have different escaped names") {
  std::mt19937_64 dice(7);
  const std::string alphabet = "a=.2F/E0 \xc3";
  std::set<std::string> names, escaped;
  while (names.size() < 100'000) {
    std::string name;
    for (auto n = dice() % 9; n > 0; --n) name += alphabet[dice() % alphabet.size()];
    names.insert(name);
  }
  for (const std::string& name : names) escaped.insert(tail::escape(name));
  CHECK(escaped.size() == names.size());
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
