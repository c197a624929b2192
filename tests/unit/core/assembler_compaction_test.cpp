// Context compaction.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

std::string boundary(Records& r, std::string_view metadata = R"({"trigger":"auto","preTokens":155159})") {
  return r.system(
      "compact_boundary",
      R"("parentUuid":null,"content":"Conversation compacted","compactMetadata":)" + std::string(metadata));
}
std::string summary(Records& r) {
  return r.user("So far: half done", R"("isCompactSummary":true,"isVisibleInTranscriptOnly":true)");
}

TEST_CASE("the boundary finishes a full compaction with the recorded fields") {
  Records r;
  const Feed feed(
      {r.user("go"),
       boundary(
           r,
           R"({"trigger":"manual","preTokens":155159,"postTokens":9000,"durationMs":42000,"preservedMessages":{"uuids":[]}})")});
  CHECK(feed.fields("compaction.finished", {"trigger", "pre_tokens", "post_tokens", "duration_ms", "kind"}) ==
        Lines{"manual 155159 9000 42000 full"});
}

TEST_CASE("fields that the boundary does not have are left out") {
  Records r;
  CHECK(Feed({r.user("go"), boundary(r)})
            .fields("compaction.finished", {"trigger", "pre_tokens", "post_tokens", "duration_ms", "kind"}) ==
        Lines{"auto 155159 - - full"});
  Records s;
  CHECK(Feed({s.user("go"), s.system("compact_boundary")})
            .fields("compaction.finished", {"trigger", "pre_tokens", "kind"}) == Lines{"- - full"});
}

TEST_CASE("fault 130: after a compaction the context is what the record says, else unknown until an answer") {
  Records r;
  Feed feed({r.user("go"),
             r.record("assistant", R"("message":{"id":"m1","content":[],"usage":{"input_tokens":150030}})")});
  REQUIRE(feed.state().context_tokens == 150030);
  feed.write(boundary(r, R"({"trigger":"manual","preTokens":150030,"postTokens":9000})"));
  CHECK(feed.state().context_tokens == 9000);
  feed.write(boundary(r));
  CHECK(feed.state().context_tokens == 0);
}

TEST_CASE("the summary after a boundary is a message and no second compaction") {
  Records r;
  const Feed feed({r.user("go"), boundary(r), summary(r)});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "compaction.finished 1 auto full",
                                "message.added 1 summary text So far: half done"});
}

TEST_CASE("records may stand between the boundary and its summary") {
  Records r;
  const Feed feed({r.user("go"), boundary(r), r.attachment(R"({"type":"date","date":"2026-01-01"})"),
                   r.attachment(R"({"type":"compact_file_reference","filename":"/a"})"), summary(r)});
  CHECK(feed.count("compaction.finished") == 1);
  CHECK(feed.fields("message.added", {"role"}) == Lines{"summary"});
}

TEST_CASE("a summary without a boundary is a compaction of its own, without a trigger") {
  Records r;
  const Feed feed({r.user("go"), summary(r), r.user("on"), summary(r)});
  CHECK(feed.fields("compaction.finished", {"trigger", "kind"}) == Lines{"- full", "- full"});
  CHECK(feed.count("message.added") == 2);
}

TEST_CASE("one boundary covers one summary") {
  Records r;
  CHECK(
      Feed({r.user("go"), boundary(r), summary(r), r.user("on"), summary(r)}).count("compaction.finished") ==
      2);
}

TEST_CASE("a summary without a boundary abandons open calls, as it is a full compaction") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), summary(r)});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 Bash",
                                "tool.finished 1 c1 abandoned", "compaction.finished 1 full",
                                "message.added 1 summary text So far: half done"});
}

TEST_CASE("a summary is not a prompt, as a string or as blocks") {
  Records r;
  const Feed feed(
      {summary(r), r.user_blocks(R"([{"type":"text","text":"So far"}])", R"("isCompactSummary":true)")});
  CHECK(feed.count("turn.started") == 0);
  CHECK(feed.fields("message.added", {"role", "kind", "text"}) ==
        Lines{"summary text So far: half done", "summary text So far"});
}

TEST_CASE("a micro compaction is a compaction of kind micro") {
  Records r;
  const Feed feed(
      {r.user("go"),
       r.system(
           "microcompact_boundary",
           R"("microcompactMetadata":{"trigger":"auto","preTokens":60497,"tokensSaved":21279,"compactedToolIds":[]})")});
  CHECK(feed.fields("compaction.finished", {"trigger", "pre_tokens", "kind"}) == Lines{"auto 60497 micro"});
}

TEST_CASE("a micro compaction does not cover a summary") {
  Records r;
  const Feed feed(
      {r.user("go"),
       r.system("microcompact_boundary", R"("microcompactMetadata":{"trigger":"auto","preTokens":1})"),
       summary(r)});
  CHECK(feed.fields("compaction.finished", {"kind"}) == Lines{"micro", "full"});
}

TEST_CASE("a compaction does not end the turn") {
  Records r;
  const Feed feed({r.user("go"), boundary(r), summary(r), r.text("on", "\"end_turn\"")});
  CHECK(feed.fields("turn.finished", {"turn", "outcome"}) == Lines{"1 completed"});
  CHECK(feed.count("turn.started") == 1);
}

TEST_CASE("records that a compaction appends again are read once") {
  Records r;
  const std::string prompt = r.user("go");
  const std::string call = r.call("c1", "Bash");
  const std::string result = r.result("c1", "ok");
  const Feed feed({prompt, call, result, boundary(r), summary(r), prompt, call, result, r.text("on")});
  CHECK(feed.count("tool.invoked") == 1);
  CHECK(feed.count("turn.started") == 1);
  CHECK(feed.counts().duplicates == 3);
}

TEST_CASE("claude-flat: compacting starts, compacted finishes, restored is ignored") {
  Feed feed;
  for (const char* message : {"conversation_compacting", "conversation_compacted", "conversation_restored"}) {
    feed.write(R"({"type":"compact_system","message":")" + std::string(message) + "\"}\n");
  }
  CHECK(feed.summary() == Lines{"compaction.started 0", "compaction.finished 0 full"});
}

TEST_CASE("claude-flat: a full compaction abandons open calls") {
  const Feed feed(
      {R"({"type":"user","uuid":"a","message":"go"})"
       "\n",
       R"({"type":"assistant","uuid":"b","subtype":"tool_use","toolName":"Bash","toolArguments":{}})"
       "\n",
       R"({"type":"compact_system","message":"conversation_compacted"})"
       "\n"});
  CHECK(feed.fields("tool.finished", {"call", "outcome"}) == Lines{"b abandoned"});
}

}  // namespace
}  // namespace earshot::test
