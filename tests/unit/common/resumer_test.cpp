#include "common/resumer.hpp"

#include <catch2/catch.hpp>

#include "base/quantities.hpp"

using namespace earshot::common;

namespace {

// Frames as the daemon sends them to a resumer that handles each at once.
class Connection {
 public:
  explicit Connection(StreamResumer& resumer) : resumer_(resumer), request(resumer.begin()) {}
  void receive(std::string_view json) {
    const auto frame = parser_.parse(json);
    REQUIRE(frame);
    resumer_.receive(*frame);
    resumer_.handled(*frame);
  }
  bool requests(const std::string& text) const { return request.find(text) != std::string::npos; }

 private:
  StreamResumer& resumer_;
  FrameParser parser_;

 public:
  const std::string request;
};

std::string event(const std::string& stream, const std::string& cursor) {
  return R"({"type":"turn.started","stream":")" + stream + R"(","cursor":")" + cursor + R"("})";
}

std::string session(const std::string& cursors) {
  return R"({"type":"session","session":"s","cursors":[)" + cursors + "]}";
}

const char* const ready = R"({"type":"ready","id":"cli"})";
const char* const complete = R"({"type":"bookmark","id":"cli","cursors":["b:4.1.x"],"complete":true})";
const std::int64_t noon = *earshot::parse_time("2026-11-24T12:00:00Z");
using Phase = StreamResumer::Phase;

}  // namespace

TEST_CASE("a plain word in a filter is a name") {
  CHECK(project_pattern("api") == "*/api");
  CHECK(project_pattern("/home/u/api") == "/home/u/api");
  CHECK(project_pattern("a*") == "a*");
  CHECK(session_pattern("2eaa") == "2eaa*");
  const std::string whole = "2eaa1c04-0000-4000-8000-000000000000";
  CHECK(session_pattern(whole) == whole + "*");  // a hub appends its host
  CHECK(session_pattern("2eaa@dev7") == "2eaa*@dev7");
  CHECK(session_pattern(whole + "@dev7") == whole + "@dev7");
  CHECK(session_pattern("2e?a@*") == "2e?a@*");
  CHECK(type_pattern("turn") == "turn.*");
  CHECK(type_pattern("turn.started") == "turn.started");
}

TEST_CASE("a subscription contains only what was requested") {
  CHECK(subscribe_request({}, {}) ==
        R"({"type":"subscribe","id":"cli","filter":{},"deliver":"events","snapshot":true})");
  CHECK(
      subscribe_request({.project = {"api", "/x/\"y"}, .type = {"turn"}}, {.snapshot = false, .all = true}) ==
      R"({"type":"subscribe","id":"cli","filter":{"project":["*/api","/x/\"y"],"type":["turn.*"]},"deliver":"events","snapshot":false,"all":true})");
}

TEST_CASE("a subscription can resume streams and request the recent past of others") {
  const std::string request =
      subscribe_request({.program = {"codex"}}, {.after = {"a:1.1.x", "b:"}, .since_ms = noon});
  CHECK(request.find(R"("program":["codex"])") != request.npos);
  CHECK(request.find(R"("after":["a:1.1.x","b:"],"since":"2026-11-24T12:00:00.000Z"})") != request.npos);
}

TEST_CASE("the first connection requests a snapshot and is live after it") {
  StreamResumer resumer({});
  Connection first(resumer);
  CHECK(first.requests(R"("snapshot":true,"on_lag":"catch_up"})"));
  first.receive(session("\"a:1.1.x\""));
  CHECK(resumer.phase() == Phase::snapshot);
  first.receive(ready);
  CHECK(resumer.phase() == Phase::live);
}

TEST_CASE("later connections resume known streams, and request what is new since the connection was lost") {
  StreamResumer resumer({});
  Connection first(resumer);
  first.receive(session("\"a:1.1.x\",\"b:1.1.x\""));
  first.receive(ready);
  first.receive(event("a", "2.1.x"));
  resumer.end(noon);
  Connection second(resumer);
  CHECK(second.requests(R"("after":["a:2.1.x","b:1.1.x"],"since":"2026-11-24T11:58:35.000Z")"));
  second.receive(session("\"a:9.1.x\",\"b:4.1.x\",\"c:3.1.x\""));
  second.receive(ready);
  CHECK(resumer.phase() == Phase::catching_up);
  second.receive(event("a", "9.1.x"));
  // Lost before the bookmark: b is still where it was, and the time does not advance.
  resumer.end(noon + 60'000);
  Connection third(resumer);
  CHECK(third.requests(R"("after":["a:9.1.x","b:1.1.x"],"since":"2026-11-24T11:58:35.000Z")"));
  third.receive(ready);
  third.receive(complete);
  CHECK(resumer.phase() == Phase::live);
  CHECK(*resumer.cursors().find("b") == "4.1.x");
}

TEST_CASE("a rewritten stream resumes at its new history, a removed one is forgotten") {
  StreamResumer resumer({});
  Connection first(resumer);
  first.receive(session("\"a:1.1.x\",\"b:1.1.x\",\"c:1.1.x\",\"d:1.1.x\""));
  first.receive(ready);
  first.receive(R"({"type":"reset","stream":"a","reason":"rewritten"})");
  first.receive(R"({"type":"stream.removed","stream":"c"})");
  resumer.end(noon);
  Connection second(resumer);
  CHECK(second.requests(R"("after":["a:","b:1.1.x","d:1.1.x"])"));
  second.receive(ready);
  second.receive(R"({"type":"reset","id":"cli","stream":"b","reason":"unknown"})");
  second.receive(R"({"type":"reset","id":"cli","stream":"d","reason":"rewritten"})");
  second.receive(session("\"a:3.1.x\",\"d:8.1.y\""));
  resumer.end(noon);
  CHECK(Connection(resumer).requests(R"("after":["a:","d:8.1.y"])"));
}

TEST_CASE("fault 125: a renamed stream keeps its cursor, unless the new name has one") {
  StreamResumer resumer({});
  Connection first(resumer);
  first.receive(session("\"a:1.1.x\",\"b:1.1.x\",\"c:1.1.x\""));
  first.receive(ready);
  first.receive(R"({"type":"stream.renamed","session":"s","from":"a","to":"d"})");
  first.receive(R"({"type":"stream.renamed","session":"s","from":"b","to":"c"})");
  first.receive(R"({"type":"stream.renamed","session":"s","from":"x","to":"y"})");
  first.receive(event("d", "2.1.x"));
  resumer.end(noon);
  Connection second(resumer);
  CHECK(second.requests(R"("after":["c:1.1.x","d:2.1.x"])"));
}

TEST_CASE("a bookmark advances the cursors of streams without matching events") {
  StreamResumer resumer({});
  Connection first(resumer);
  first.receive(session("\"a:1.1.x\""));
  first.receive(ready);
  first.receive(R"({"type":"bookmark","cursors":["a:6.0.x"]})");
  resumer.end(noon);
  CHECK(Connection(resumer).requests(R"("after":["a:6.0.x"])"));
}

TEST_CASE("with a start time the first connection requests the past, without sessions it is live at once") {
  StreamResumer resumer({.since_ms = noon});
  Connection first(resumer);
  CHECK(first.requests(R"("since":"2026-11-24T12:00:00.000Z")"));
  CHECK_FALSE(first.requests("after"));
  first.receive(ready);
  CHECK(resumer.phase() == Phase::live);
}
