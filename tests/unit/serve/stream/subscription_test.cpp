#include "serve/stream/subscription.hpp"

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

namespace subscription_test {

using namespace earshot;
using namespace earshot::serve;

TEST_CASE("patterns of a key are ORed, keys are ANDed") {
  Filter filter;
  REQUIRE(filter.matches_session({"dev7", "s1", "/home/u/api"}));
  filter.project = {"/home/u/web", "/home/u/api*"};
  REQUIRE(filter.matches_session({"dev7", "s1", "/home/u/api"}));
  REQUIRE_FALSE(filter.matches_session({"dev7", "s1", "/srv"}));
  filter.session = {"s2"};
  REQUIRE_FALSE(filter.matches_session({"dev7", "s1", "/home/u/api"}));
  REQUIRE(filter.matches_session({"dev7", "s2", "/home/u/api"}));
  filter.host = {"other"};
  REQUIRE_FALSE(filter.matches_session({"dev7", "s2", "/home/u/api"}));
  filter.host.clear();
  filter.program = {"claude-*"};
  REQUIRE(filter.matches_session({"dev7", "s2", "/home/u/api", "claude-code"}));
  REQUIRE_FALSE(filter.matches_session({"dev7", "s2", "/home/u/api", "codex"}));
  filter.program = {"*"};
  REQUIRE_FALSE(filter.matches_session({"dev7", "s2", "/home/u/api", ""}));  // unknown: an empty list only
  filter.type = {"turn.*", "tool.*"};
  REQUIRE(filter.matches_type("tool.invoked"));
  REQUIRE_FALSE(filter.matches_type("usage.updated"));
}

TEST_CASE("every event type has its own name") {
  const auto& names = event_type_names();
  REQUIRE(names[type_of(event::SessionStarted{})] == "session.started");
  REQUIRE(names[type_of(event::LineSkipped{})] == "line.skipped");
  for (std::size_t i = 0; i < names.size(); ++i) {
    REQUIRE_FALSE(names[i].empty());
    for (std::size_t j = i + 1; j < names.size(); ++j) REQUIRE(names[i] != names[j]);
  }
}

namespace {

std::string code_of(const std::string& text) {
  const message::Message message = message::parse(text);
  const auto* bad = std::get_if<message::Invalid>(&message);
  return bad ? bad->code : "fine";
}

std::string with_patterns(std::size_t count, std::size_t size, const std::string& begin = "") {
  std::string list;
  for (std::size_t i = 0; i < count; ++i)
    list += (i ? ",\"" : "\"") + begin + std::string(size - begin.size(), 'x') + "\"";
  return R"({"type":"subscribe","id":"a","filter":{"type":[)" + list + "]}}";
}

}  // namespace

TEST_CASE("all fields of a subscription are parsed") {
  const message::Message message = message::parse(
      R"({"type":"subscribe","id":"a","filter":{"project":["/p*"],"session":["*"],"host":["h"],"type":["turn.*","tool.*"]},)"
      R"("deliver":"state","snapshot":false,"all":true,"something":"new"})");
  const auto& subscribe = std::get<message::Subscribe>(message);
  REQUIRE(subscribe.id == "a");
  REQUIRE(subscribe.filter.project == std::vector<std::string>{"/p*"});
  REQUIRE(subscribe.filter.type == std::vector<std::string>{"turn.*", "tool.*"});
  REQUIRE(subscribe.state);
  REQUIRE_FALSE(subscribe.snapshot);
  REQUIRE(subscribe.all);
  REQUIRE_FALSE(subscribe.after);
}

TEST_CASE("any invalid message is an error with a code") {
  struct Row {
    std::string text, code;
  };
  const Row rows[] = {
      {"", "bad_message"},
      {"hello", "bad_message"},
      {"[]", "bad_message"},
      {"{}", "bad_message"},
      {R"({"type":7})", "bad_message"},
      {R"({"type":"dance","id":"a"})", "bad_message"},
      {R"({"type":"subscribe"})", "bad_message"},
      {R"({"type":"subscribe","id":7})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"pizza"})", "bad_message"},
      {R"({"type":"subscribe","id":"a","snapshot":"yes"})", "bad_message"},
      {R"({"type":"subscribe","id":")" + std::string(257, 'i') + "\"}", "bad_message"},
      {R"({"type":"subscribe","id":"a","filter":[]})", "bad_filter"},
      {R"({"type":"subscribe","id":"a","filter":{"typo":["x"]}})", "bad_filter"},
      {R"({"type":"subscribe","id":"a","filter":{"type":"x"}})", "bad_filter"},
      {R"({"type":"subscribe","id":"a","filter":{"type":[7]}})", "bad_filter"},
      {with_patterns(64, 256), "fine"},
      {with_patterns(65, 1), "bad_filter"},
      {with_patterns(1, 257), "bad_filter"},
      {R"({"type":"subscribe","id":"a","filter":{"host":["*)" + std::string(255, '?') + "\"]}}", "fine"},
      {with_patterns(5, 256, "*?"), "bad_filter"},
      {R"({"type":"subscribe","id":"a","filter":{}})", "fine"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":1})", "fine"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":1000})", "fine"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":0})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":1001})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":-1})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":"1"})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":null})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"state","page":99999999999999999999})", "bad_message"},
      {R"({"type":"subscribe","id":"a","page":1})", "bad_message"},
      {R"({"type":"subscribe","id":"a","deliver":"state","snapshot":false,"page":1})", "bad_message"},
      {R"({"type":"next_page","id":"a","next":"0123"})", "fine"},
      {R"({"type":"next_page","id":"a"})", "bad_message"},
      {R"({"type":"next_page","next":"0123"})", "bad_message"},
      {R"({"type":"next_page","id":"a","next":7})", "bad_message"},
      {R"({"type":"unsubscribe","id":"a"})", "fine"},
      {R"({"type":"hello","token":7})", "bad_message"},
      {std::string(2000, '[') + std::string(2000, ']'), "bad_message"},
      {std::string("{\"type\":\"hello\0\"}", 17), "bad_message"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text.substr(0, 100));
    REQUIRE(code_of(row.text) == row.code);
  }
}

}  // namespace subscription_test
