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

// ---- By model

std::string spent_by(Records& r, std::string_view model, std::string_view message, std::string_view usage,
                     std::string_view extra = "") {
  return r.record("assistant",
                  R"("message":{"id":")" + std::string(message) + R"(","model":")" + std::string(model) +
                      R"(","content":[{"type":"text","text":"x"}],"usage":)" + std::string(usage) + "}",
                  extra);
}

/// `model: usage; without cost; recorded`, each of the usages as `input output cache_read cache_write
/// cache_write_1h`.
Lines by_model(const Feed& feed) {
  const auto text = [](const Usage& usage) {
    return std::to_string(usage.input) + " " + std::to_string(usage.output) + " " +
           std::to_string(usage.cache_read) + " " + std::to_string(usage.cache_write) + " " +
           std::to_string(usage.cache_write_1h);
  };
  Lines lines;
  for (const ModelUsage& each : feed.state().used.models())
    lines.push_back(each.model + ": " + text(each.all.usage) + "; " + text(each.all.without_cost) + "; " +
                    std::to_string(each.all.recorded_usd).substr(0, 4));
  return lines;
}

TEST_CASE("each model's tokens are summed, once per message") {
  Records r;
  const Feed feed({r.user("go"), spent_by(r, "big", "m1", tokens(1, 2, 3, 4)),
                   spent_by(r, "big", "m1", tokens(1, 7, 3, 4)),
                   spent_by(r, "small", "m2", tokens(5, 5, 0, 0)),
                   spent_by(r, "big", "m3", tokens(1, 1, 1, 1))});
  CHECK(by_model(feed) == Lines{"big: 2 8 4 5 0; 2 8 4 5 0; 0.00", "small: 5 5 0 0 0; 5 5 0 0 0; 0.00"});
}

TEST_CASE("the part of a cache that is kept for an hour") {
  const std::string usage =
      R"({"input_tokens":1,"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":30,)"
      R"("ephemeral_1h_input_tokens":70}})";
  Records r;
  const Feed feed({r.user("go"), spent_by(r, "big", "m1", usage), spent_by(r, "big", "m1", usage)});
  CHECK(feed.state().usage == Usage{1, 0, 0, 100, 70});
  CHECK(by_model(feed) == Lines{"big: 1 0 0 100 70; 1 0 0 100 70; 0.00"});
  // It is not on the wire, and makes no event of its own.
  CHECK(totals(feed) == Lines{R"({"input":1,"output":0,"cache_read":0,"cache_write":100})"});
}

TEST_CASE("tokens with a recorded cost are kept apart, whenever it is recorded") {
  Records r;
  const Feed feed({r.user("go"), spent_by(r, "big", "m1", tokens(10, 0, 0, 0), R"("costUSD":0.5)"),
                   spent_by(r, "big", "m2", tokens(20, 0, 0, 0)),
                   spent_by(r, "big", "m3", tokens(7, 0, 0, 0)),
                   spent_by(r, "big", "m2", tokens(25, 0, 0, 0), R"("costUSD":0.25)"),
                   spent_by(r, "big", "m2", tokens(26, 0, 0, 0))});
  CHECK(by_model(feed) == Lines{"big: 43 0 0 0 0; 7 0 0 0 0; 0.75"});
}

TEST_CASE("a recorded total covers all tokens before it") {
  Records r;
  Feed feed({r.user("go"), spent_by(r, "big", "m1", tokens(10, 0, 0, 0)), cost("1.5")});
  CHECK(by_model(feed) == Lines{"big: 10 0 0 0 0; 0 0 0 0 0; 0.00"});
  CHECK(feed.state().cost_total_ms == feed.state().last_activity_ms);
  feed.write(spent_by(r, "big", "m2", tokens(4, 0, 0, 0)));
  CHECK(by_model(feed) == Lines{"big: 14 0 0 0 0; 4 0 0 0 0; 0.00"});
  // The same total again: what came between cost nothing.
  feed.write(cost("1.5"));
  CHECK(by_model(feed) == Lines{"big: 14 0 0 0 0; 0 0 0 0 0; 0.00"});
}

TEST_CASE("the number of models is bounded") {
  Records r;
  Feed feed({r.user("go")});
  for (std::size_t n = 0; n < 2 * StreamUsage::models_max; ++n)
    feed.write(spent_by(r, "model-" + std::to_string(n), "m" + std::to_string(n), tokens(1, 0, 0, 0)));
  const auto& models = feed.state().used.models();
  REQUIRE(models.size() == StreamUsage::models_max + 1);
  CHECK(models.back().model == StreamUsage::other_models);
  CHECK(models.back().all.usage.input == StreamUsage::models_max);
}

TEST_CASE("of a model the name's beginning is kept") {
  StreamUsage used;
  for (int n = 0; n < 2; ++n) used.add(0, std::string(10'000, 'x') + std::to_string(n), {1, 0, 0, 0});
  REQUIRE(used.models().size() == 1);
  CHECK(used.models().front().model.size() == 128);
  CHECK(used.models().front().all.usage.input == 2);
}

TEST_CASE("a total that the records state raises a model's tokens, and never lowers them") {
  StreamUsage used;
  used.add(0, "big", {5, 5, 0, 0}, 0.0);
  used.raise(0, "big", {9, 3, 1, 0}, {9, 9, 9, 9});
  CHECK(used.models().front().all.usage == Usage{9, 5, 1, 0});
  CHECK(used.models().front().all.without_cost == Usage{4, 0, 1, 0});
}

}  // namespace
}  // namespace earshot::test
