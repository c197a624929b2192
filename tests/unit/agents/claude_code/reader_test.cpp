// Detection of dialects, and the rules of each. Complete examples are in
// tests/golden/seeds.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

Lines dialect_of(std::string_view line) {
  Feed feed;
  feed.write(line);
  feed.write("\n");
  return feed.fields("session.started", {"dialect"});
}

TEST_CASE("a numeric timestamp shows claude-messages") {
  CHECK(
      dialect_of(
          R"({"type":"assistant","uuid":"u","timestamp":1738160130123,"message":{"type":"message","content":"x"}})") ==
      Lines{"claude-messages"});
}

TEST_CASE("each of the types that only claude-messages has shows it") {
  for (const char* type : {"human", "tool_result", "compact_prelude", "compact_recap"}) {
    CHECK(dialect_of(R"({"type":")" + std::string(type) +
                     R"(","uuid":"u","message":{"type":"message","content":"x"}})") ==
          Lines{"claude-messages"});
  }
}

TEST_CASE("a message that is a string shows claude-flat") {
  CHECK(dialect_of(R"({"type":"user","uuid":"u","message":"x"})") == Lines{"claude-flat"});
}

TEST_CASE("a tool at the top of a record shows claude-flat") {
  CHECK(dialect_of(R"({"type":"assistant","uuid":"u","subtype":"tool_use","toolName":"Read"})") ==
        Lines{"claude-flat"});
  CHECK(dialect_of(R"({"type":"assistant","uuid":"u","toolArguments":{}})") == Lines{"claude-flat"});
}

TEST_CASE("compact_system shows claude-flat") {
  CHECK(dialect_of(R"({"type":"compact_system","uuid":"u","message":"conversation_compacted"})") ==
        Lines{"claude-flat"});
}

TEST_CASE("a known type with a uuid, a sessionId or an object for a message shows claude-code") {
  CHECK(dialect_of(R"({"type":"user","uuid":"u","message":{"role":"user","content":"x"}})") ==
        Lines{"claude-code"});
  CHECK(dialect_of(R"({"type":"system","uuid":"u","subtype":"informational","content":"x"})") ==
        Lines{"claude-code"});
  Feed feed;
  feed.write(R"({"type":"user","message":{"role":"user","content":"x"}})"
             "\n");
  CHECK(feed.summary() == Lines{"turn.started 1 human x"});
  CHECK(feed.state().dialect == "claude-code");
}

TEST_CASE("numeric timestamps come out as RFC 3339") {
  const Feed feed(
      {R"({"type":"human","uuid":"u","timestamp":1738160130123,"message":{"type":"message","content":"x"}})"
       "\n"});
  CHECK(feed.fields("turn.started", {"time"}) == Lines{"2025-01-29T14:15:30.123Z"});
}

TEST_CASE("string timestamps come out as they stood") {
  for (const char* time :
       {"2025-01-27T10:00:00Z", "2025-07-03T15:50:07.874310Z", "2025-07-03T15:50:07+02:00"}) {
    const Feed feed({R"({"type":"user","uuid":"u","timestamp":")" + std::string(time) +
                     R"(","message":"x"})"
                     "\n"});
    CHECK(feed.fields("turn.started", {"time"}) == Lines{time});
  }
}

TEST_CASE("an invalid timestamp is left out") {
  for (const char* time : {R"("yesterday")", "true", "{}", R"("")", "null"}) {
    const Feed feed({R"({"type":"user","uuid":"u","timestamp":)" + std::string(time) +
                     R"(,"message":{"role":"user","content":"x"}})"
                     "\n"});
    CHECK(feed.fields("turn.started", {"prompt", "time"}) == Lines{"x -"});
  }
}

TEST_CASE("other programs' lines are counted without events") {
  const Feed feed({R"({"type":"session_meta","payload":{"cwd":"/x"},"timestamp":"2026-01-01T00:00:00Z"})"
                   "\n",
                   R"({"type":"response_item","payload":{"type":"message","role":"user"}})"
                   "\n",
                   R"({"type":"started","key":"k","agentId":"a"})"
                   "\n",
                   R"({"hello":"world"})"
                   "\n"});
  CHECK(feed.events().empty());
  CHECK(feed.counts().undecided_records == 4);
  CHECK(feed.counts().types.at("session_meta") == 1);
}

TEST_CASE("metadata before the first sign is read as claude-code and does not decide") {
  const Feed feed(
      {R"({"type":"summary","summary":"before","leafUuid":"x"})"
       "\n",
       R"({"type":"user","uuid":"u1","timestamp":"2025-01-27T10:00:00Z","sessionId":"t","message":"flat after all"})"
       "\n"});
  CHECK(feed.fields("session.started", {"dialect", "continues"}) == Lines{"claude-flat x"});
}

TEST_CASE("lines before the first sign are counted, later ones are read") {
  Records r;
  const Feed feed({R"({"type":"novelty","a":1})"
                   "\n",
                   r.user("hi")});
  CHECK(feed.summary() == Lines{"turn.started 1 human hi"});
  CHECK(feed.counts().undecided_records == 1);
}

TEST_CASE("the first sign decides for the whole file") {
  Records r;
  const Feed feed({R"({"type":"user","uuid":"a","message":"flat"})"
                   "\n",
                   r.user("an object now")});
  CHECK(feed.fields("session.started", {"dialect"}) == Lines{"claude-flat"});
}

TEST_CASE("a path decides nothing: an agent's file is of the dialect of its lines") {
  TranscriptOptions options;
  options.own_agent = "abc";
  const Feed feed(
      {R"({"type":"human","uuid":"u","timestamp":1738160130123,"message":{"type":"message","content":"x"}})"
       "\n"},
      options);
  CHECK(feed.fields("session.started", {"dialect", "agent"}) == Lines{"claude-messages abc"});
}

// ---- claude-messages

std::string messages(std::string_view type, std::string_view uuid, int second, std::string_view content,
                     std::string_view extra = "") {
  return R"({"uuid":")" + std::string(uuid) + R"(","sessionId":"t","type":")" + std::string(type) +
         R"(","timestamp":)" + std::to_string(1738160130000 + 1000LL * second) +
         R"(,"message":{"type":"message","content":)" + std::string(content) + "}" +
         (extra.empty() ? "" : "," + std::string(extra)) + "}\n";
}

TEST_CASE("claude-messages: the next prompt proves the end, inferred after the assistant's text") {
  const Feed feed({messages("human", "a", 0, "\"one\""), messages("assistant", "b", 2, "\"yes\""),
                   messages("human", "c", 9, "\"two\"")});
  CHECK(feed.summary() == Lines{"turn.started 1 human one", "message.added 1 assistant text yes",
                                "turn.finished 1 completed inferred", "turn.started 2 human two"});
}

TEST_CASE("claude-messages: an error result has outcome error") {
  const Feed feed(
      {messages("human", "a", 0, "\"one\""),
       messages("assistant", "b", 1, R"([{"type":"tool_use","id":"c1","name":"Read","input":{}}])"),
       messages("tool_result", "c", 2,
                R"([{"type":"tool_result","tool_use_id":"c1","content":"no","is_error":true}])")});
  CHECK(feed.fields("tool.finished", {"call", "outcome", "output", "duration_ms"}) ==
        Lines{"c1 error no 1000"});
}

TEST_CASE("claude-messages: a prelude starts a compaction, the recap ends it and is the summary") {
  const Feed feed({messages("human", "a", 0, "\"one\""), messages("compact_prelude", "p", 1, "\"old\""),
                   messages("compact_recap", "q", 2, "\"in short\"")});
  CHECK(feed.summary() == Lines{"turn.started 1 human one", "compaction.started 1",
                                "compaction.finished 1 full", "message.added 1 summary text in short"});
}

// ---- claude-flat

std::string flat(std::string_view type, std::string_view extra) {
  return R"({"type":")" + std::string(type) + R"(",)" + std::string(extra) + "}\n";
}

TEST_CASE("claude-flat: a call answers to the record that names it as its parent") {
  const Feed feed(
      {flat("user", R"("uuid":"a","message":"go")"),
       flat("assistant",
            R"("uuid":"b","parentUuid":"a","subtype":"tool_use","toolName":"Read","toolArguments":{})"),
       flat("assistant",
            R"("uuid":"c","parentUuid":"b","subtype":"tool_use","toolName":"Grep","toolArguments":{})"),
       flat("system", R"("uuid":"d","parentUuid":"b","message":"read")"),
       flat("system", R"("uuid":"e","parentUuid":"c","message":"found")")});
  CHECK(feed.fields("tool.finished", {"call", "tool", "outcome", "output"}) ==
        Lines{"b Read ok read", "c Grep ok found"});
}

TEST_CASE("claude-flat: without parentUuid the last open call of the chain is answered") {
  const Feed feed(
      {flat("user", R"("uuid":"a","message":"go")"),
       flat("assistant", R"("uuid":"b","subtype":"tool_use","toolName":"Read","toolArguments":{})"),
       flat("assistant", R"("uuid":"c","subtype":"tool_use","toolName":"Grep","toolArguments":{})"),
       flat("system", R"("uuid":"d","message":"found")"), flat("system", R"("uuid":"e","message":"read")")});
  CHECK(feed.fields("tool.finished", {"call", "output"}) == Lines{"c found", "b read"});
}

TEST_CASE("claude-flat: an answer of a sidechain never finishes a call of the main chain") {
  const Feed feed(
      {flat("user", R"("uuid":"a","message":"go")"),
       flat("assistant", R"("uuid":"b","subtype":"tool_use","toolName":"Task","toolArguments":{})"),
       flat("user", R"("uuid":"s","parentUuid":"b","isSidechain":true,"message":"do")"),
       flat("system", R"("isSidechain":true,"message":"noise")"), flat("system", R"("message":"done")")});
  CHECK(feed.fields("tool.finished", {"agent", "call", "output"}) == Lines{"- b done"});
  CHECK(feed.fields("message.added", {"agent", "role", "text"}) == Lines{"s user do", "s system noise"});
}

TEST_CASE("claude-flat: a system record that answers no call is a message") {
  const Feed feed({flat("user", R"("uuid":"a","message":"go")"),
                   flat("system", R"("uuid":"b","parentUuid":"a","message":"notice")")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "message.added 1 system text notice"});
}

TEST_CASE("claude-flat: a second answer to one call is a message") {
  const Feed feed(
      {flat("user", R"("uuid":"a","message":"go")"),
       flat("assistant", R"("uuid":"b","subtype":"tool_use","toolName":"Read","toolArguments":{})"),
       flat("system", R"("uuid":"c","parentUuid":"b","message":"one")"),
       flat("system", R"("uuid":"d","parentUuid":"b","message":"two")")});
  CHECK(feed.count("tool.finished") == 1);
}

TEST_CASE("claude-flat: calls and sidechains without a uuid are called by their line's offset") {
  const std::string first = flat("user", R"("message":"go")");
  const std::string second =
      flat("assistant", R"("subtype":"tool_use","toolName":"Read","toolArguments":{})");
  const std::string third = flat("user", R"("isSidechain":true,"message":"do")");
  const Feed feed({first, second, third});
  CHECK(feed.fields("tool.invoked", {"call"}) == Lines{"@" + std::to_string(first.size())});
  CHECK(feed.fields("message.added", {"agent"}) == Lines{"@" + std::to_string(first.size() + second.size())});
  CHECK(feed.count("session.started") == 0);
}

TEST_CASE("claude-flat: an aborted call emits its text, then is interrupted with its turn") {
  const Feed feed(
      {flat("user", R"("uuid":"a","message":"go")"),
       flat("assistant",
            R"("uuid":"b","subtype":"tool_use","toolName":"Bash","isAborted":true,"message":"cancelled")")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "message.added 1 assistant text cancelled",
                                "tool.invoked 1 b Bash", "tool.finished 1 b interrupted",
                                "turn.finished 1 interrupted"});
}

}  // namespace
}  // namespace earshot::test
