// Tokens, counted once per message, and recorded cost.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

std::string spent(Records& r, std::string_view message, std::string_view request, std::string_view usage,
                  std::string_view extra = "") {
  std::string all = R"("message":{"id":")" + std::string(message) +
                    R"(","model":"big","content":[{"type":"text","text":"x"}],"usage":)" +
                    std::string(usage) + "}";
  if (!request.empty()) all += R"(,"requestId":")" + std::string(request) + '"';
  if (!extra.empty()) all += "," + std::string(extra);
  return r.record("assistant", "", all);
}
std::string tokens(int in, int out, int read, int write) {
  return R"({"input_tokens":)" + std::to_string(in) + R"(,"output_tokens":)" + std::to_string(out) +
         R"(,"cache_read_input_tokens":)" + std::to_string(read) + R"(,"cache_creation_input_tokens":)" +
         std::to_string(write) + "}";
}
Lines usage(const Feed& feed) {
  return feed.fields("usage.updated", {"message", "model", "input", "output", "cache_read", "cache_write"});
}
Lines totals(const Feed& feed) { return feed.fields("usage.updated", {"total"}); }

TEST_CASE("a message's tokens and the stream's totals") {
  Records r;
  const Feed feed(
      {r.user("go"), spent(r, "m1", "q1", tokens(1, 2, 3, 4)), spent(r, "m2", "q2", tokens(10, 20, 30, 40))});
  CHECK(usage(feed) == Lines{"m1 big 1 2 3 4", "m2 big 10 20 30 40"});
  CHECK(totals(feed) == Lines{R"({"input":1,"output":2,"cache_read":3,"cache_write":4})",
                              R"({"input":11,"output":22,"cache_read":33,"cache_write":44})"});
  CHECK(feed.state().usage == Usage{11, 22, 33, 44});
}

TEST_CASE("usage repeated on each line of a message is counted once") {
  Records r;
  const Feed feed({r.user("go"), spent(r, "m1", "q1", tokens(1, 2, 3, 4)),
                   spent(r, "m1", "q1", tokens(1, 2, 3, 4)), spent(r, "m1", "q1", tokens(1, 2, 3, 4))});
  CHECK(usage(feed).size() == 1);
}

TEST_CASE("usage that grows is the element-wise maximum") {
  Records r;
  const Feed feed({r.user("go"), spent(r, "m1", "q1", tokens(5, 1, 3, 4)),
                   spent(r, "m1", "q1", tokens(2, 9, 3, 4)), spent(r, "m1", "q1", tokens(4, 8, 1, 1))});
  CHECK(usage(feed) == Lines{"m1 big 5 1 3 4", "m1 big 5 9 3 4"});
  CHECK(feed.state().usage == Usage{5, 9, 3, 4});
}

TEST_CASE("usage of a message is remembered while others come between") {
  Records r;
  const Feed feed({r.user("go"), spent(r, "m1", "q1", tokens(5, 1, 0, 0)),
                   spent(r, "m2", "q2", tokens(7, 7, 0, 0)), spent(r, "m1", "q1", tokens(5, 3, 0, 0)),
                   spent(r, "m2", "q2", tokens(7, 7, 0, 0))});
  CHECK(feed.state().usage == Usage{12, 10, 0, 0});
  CHECK(usage(feed).size() == 3);
}

TEST_CASE("one message of another request is counted again") {
  Records r;
  const Feed feed(
      {r.user("go"), spent(r, "m1", "q1", tokens(1, 1, 0, 0)), spent(r, "m1", "q2", tokens(1, 1, 0, 0))});
  CHECK(feed.state().usage == Usage{2, 2, 0, 0});
}

TEST_CASE("a message without an id is its record's uuid") {
  Records r;
  const char* usage_only =
      R"("message":{"content":[{"type":"text","text":"x"}],"usage":{"input_tokens":1,"output_tokens":1}})";
  const Feed feed(
      {r.user("go"), r.record("assistant", "", usage_only), r.record("assistant", "", usage_only)});
  CHECK(feed.fields("usage.updated", {"message", "input", "output"}) == Lines{"u2 1 1", "u3 1 1"});
}

TEST_CASE("the maximum starts at zero: nothing spent is no event") {
  Records r;
  CHECK(usage(Feed({r.user("go"), spent(r, "m1", "q1", tokens(0, 0, 0, 0)), spent(r, "m2", "q1", "{}"),
                    spent(r, "m3", "q1", "null")}))
            .empty());
}

TEST_CASE("cache writes are flat or nested: the larger, not the sum") {
  const auto write = [](std::string_view members) {
    Records r;
    return Feed({r.user("go"), spent(r, "m1", "q1", R"({"output_tokens":1,)" + std::string(members) + "}")})
        .fields("usage.updated", {"cache_write"});
  };
  CHECK(write(R"("cache_creation_input_tokens":50)") == Lines{"50"});
  CHECK(write(R"("cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":20})") ==
        Lines{"50"});
  CHECK(
      write(
          R"("cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":50,"ephemeral_1h_input_tokens":0})") ==
      Lines{"50"});
  CHECK(write(R"("cache_creation_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":7})") ==
        Lines{"7"});
  CHECK(write(R"("cache_creation_input_tokens":9,"cache_creation":null)") == Lines{"9"});
}

TEST_CASE("tokens that are no counts are none") {
  Records r;
  const Feed feed(
      {r.user("go"),
       spent(
           r, "m1", "q1",
           R"({"input_tokens":-5,"output_tokens":"12","cache_read_input_tokens":null,"cache_creation_input_tokens":2})")});
  CHECK(feed.fields("usage.updated", {"input", "output", "cache_read", "cache_write"}) == Lines{"0 0 0 2"});
}

TEST_CASE("a sidechain's tokens count for the stream") {
  Records r;
  const Feed feed({r.user("go"), spent(r, "m1", "q1", tokens(1, 1, 0, 0)),
                   spent(r, "m2", "q2", tokens(2, 2, 0, 0), R"("isSidechain":true,"parentUuid":null)")});
  CHECK(feed.state().usage == Usage{3, 3, 0, 0});
  CHECK(feed.fields("usage.updated", {"agent"}) == Lines{"-", "u3"});
}

TEST_CASE("the context is what the own chain's last message read") {
  Records r;
  const Feed feed({r.user("go"), spent(r, "m1", "q1", tokens(1, 9, 20, 300)),
                   spent(r, "s1", "q2", tokens(5000, 1, 0, 0), R"("isSidechain":true,"parentUuid":null)")});
  CHECK(feed.state().context_tokens == 321);
}

TEST_CASE("usage.updated is emitted after the record's blocks and before the end of the turn") {
  Records r;
  const Feed feed(
      {r.user("go"),
       r.record(
           "assistant", "",
           R"("message":{"id":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"output_tokens":1}})")});
  REQUIRE(feed.events().size() == 5);
  CHECK(field(feed.events()[2], "type") == "message.added");
  CHECK(field(feed.events()[3], "type") == "usage.updated");
  CHECK(field(feed.events()[4], "type") == "turn.finished");
}

// ---- cost

std::string cost(std::string_view dollars) {
  return R"({"type":"cost-state","sessionId":"t","totalCostUSD":)" + std::string(dollars) +
         R"(,"totalDuration":3462,"modelUsage":{}})"
         "\n";
}

TEST_CASE("a cost record gives the total and the cost only") {
  Records r;
  const Feed feed({r.user("go"), spent(r, "m1", "q1", tokens(1, 2, 3, 4)), cost("0.25")});
  CHECK(feed.events().back().find(
            R"("total":{"input":1,"output":2,"cache_read":3,"cache_write":4},"cost_usd":0.25})") !=
        std::string::npos);
  CHECK(feed.fields("usage.updated", {"message", "input", "cost_usd"}).back() == "- - 0.25");
  CHECK(feed.state().cost_usd == 0.25);
}

TEST_CASE("an unchanged cost makes no event, a fallen one does") {
  Records r;
  const Feed feed({r.user("go"), cost("0.5"), cost("0.5"), cost("0.125"), cost("0.125")});
  CHECK(feed.fields("usage.updated", {"cost_usd"}) == Lines{"0.5", "0.125"});
  CHECK(feed.state().cost_usd == 0.125);
}

TEST_CASE("a whole number is a cost as well") {
  Records r;
  CHECK(Feed({r.user("go"), cost("2")}).state().cost_usd == 2.0);
}

TEST_CASE("a cost that is no number is none") {
  Records r;
  const Feed feed({r.user("go"), cost("null"), cost("\"1\"")});
  CHECK(feed.count("usage.updated") == 0);
  CHECK_FALSE(feed.state().cost_usd.has_value());
}

}  // namespace
}  // namespace earshot::test
