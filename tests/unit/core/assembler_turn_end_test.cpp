// The end of a turn and its outcome.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

Lines ends(const Feed& feed) {
  return feed.fields("turn.finished", {"turn", "outcome", "inferred", "stop_reason"});
}

TEST_CASE("text with a final stop reason completes the turn") {
  for (const char* stop : {"end_turn", "stop_sequence", "max_tokens"}) {
    Records r;
    CHECK(ends(Feed({r.user("go"), r.text("done", as_json(stop))})) ==
          Lines{"1 completed - " + std::string(stop)});
  }
}

TEST_CASE("a refusal fails the turn") {
  Records r;
  CHECK(ends(Feed({r.user("go"), r.text("no", "\"refusal\"")})) == Lines{"1 failed - refusal"});
}

TEST_CASE("other stop reasons end nothing") {
  for (const char* stop :
       {"null", "\"pause_turn\"", "\"tool_use\"", "\"model_context_window_exceeded\"", "\"\""}) {
    Records r;
    CHECK(ends(Feed({r.user("go"), r.text("hm", stop)})).empty());
  }
}

TEST_CASE("a thinking line with end_turn ends nothing, its text line does") {
  Records r;
  Feed feed({r.user("go"), r.thinking("hm", "\"end_turn\"")});
  CHECK(ends(feed).empty());
  feed.write(r.text("done", "\"end_turn\""));
  CHECK(ends(feed) == Lines{"1 completed - end_turn"});
}

TEST_CASE("end_turn ends nothing while a call is open") {
  Records r;
  CHECK(ends(Feed({r.user("go"), r.call("c1", "Bash"), r.text("done", "\"end_turn\"")})).empty());
}

TEST_CASE("a call in the final record itself is open") {
  Records r;
  CHECK(ends(Feed({r.user("go"),
                   r.assistant(
                       R"({"type":"text","text":"x"},{"type":"tool_use","id":"c1","name":"Bash","input":{}})",
                       "\"end_turn\"")}))
            .empty());
}

TEST_CASE("an open call of a sidechain does not hold the turn") {
  Records r;
  const Feed feed({r.user("go"), r.user("do", R"("isSidechain":true,"parentUuid":null)"),
                   r.call("s1", "Bash", "{}", R"("isSidechain":true,"parentUuid":"u2")"),
                   r.text("done", "\"end_turn\"")});
  CHECK(ends(feed) == Lines{"1 completed - end_turn"});
}

TEST_CASE("end_turn of a sidechain ends nothing") {
  Records r;
  CHECK(ends(Feed({r.user("go"), r.text("mine", "\"end_turn\"", R"("isSidechain":true,"parentUuid":null)")}))
            .empty());
}

TEST_CASE("later blocks of the same message still belong to the finished turn") {
  Records r;
  const char* message =
      R"("message":{"id":"one","content":[{"type":"text","text":"more"}],"stop_reason":"end_turn"})";
  const Feed feed(
      {r.user("go"), r.record("assistant", "", message), r.record("assistant", "", message), r.user("next")});
  CHECK(feed.fields("message.added", {"turn"}) == Lines{"1", "1"});
  CHECK(feed.fields("turn.started", {"turn"}) == Lines{"1", "2"});
  CHECK(ends(feed) == Lines{"1 completed - end_turn"});
}

// ---- the program's own signals

TEST_CASE("turn_duration completes the turn, with its duration") {
  Records r;
  const Feed feed({r.user("go"), r.text("done"), r.system("turn_duration", R"("durationMs":61326)")});
  CHECK(ends(feed) == Lines{"1 completed - -"});
  CHECK(feed.fields("turn.finished", {"duration_ms"}) == Lines{"61326"});
}

TEST_CASE("a turn is finished once by several signals") {
  Records r;
  const Feed feed({r.user("go"), r.text("done", "\"end_turn\""),
                   r.system("stop_hook_summary", R"("hookErrors":[],"preventedContinuation":false)"),
                   r.system("turn_duration", R"("durationMs":5)"), r.interruption()});
  CHECK(ends(feed) == Lines{"1 completed - end_turn"});
}

TEST_CASE("stop_hook_summary completes the turn") {
  Records r;
  CHECK(ends(Feed({r.user("go"), r.text("done"),
                   r.system("stop_hook_summary", R"("hookErrors":[],"preventedContinuation":false)")})) ==
        Lines{"1 completed - -"});
}

TEST_CASE("a stop hook that prevented the end, or failed, ends nothing") {
  Records r;
  CHECK(ends(Feed({r.user("go"), r.text("done"),
                   r.system("stop_hook_summary", R"("hookErrors":[],"preventedContinuation":true)")}))
            .empty());
  CHECK(ends(Feed({r.user("go"), r.text("done"),
                   r.system("stop_hook_summary", R"("hookErrors":["no"],"preventedContinuation":false)")}))
            .empty());
}

TEST_CASE("a signal older than the turn's start is that of an earlier turn") {
  for (const char* late :
       {R"("subtype":"turn_duration","durationMs":5)",
        R"("subtype":"stop_hook_summary","hookErrors":[],"preventedContinuation":false)"}) {
    Records r;
    const Feed feed({r.user("one"), r.text("done"), r.user("two"), r.text("almost"),
                     r.record("system", late, R"("timestamp":"2026-02-03T00:00:02.500Z")")});
    CHECK(ends(feed) == Lines{"1 completed true -"});
  }
}

TEST_CASE("a signal right after a call or its result ends nothing") {
  for (const char* late :
       {R"("subtype":"turn_duration","durationMs":5)",
        R"("subtype":"stop_hook_summary","hookErrors":[],"preventedContinuation":false)"}) {
    Records r;
    CHECK(ends(Feed({r.user("go"), r.call("c1", "Bash"), r.record("system", late)})).empty());
    CHECK(ends(Feed({r.user("go"), r.call("c2", "Bash"), r.result("c2", "ok"), r.record("system", late)}))
              .empty());
  }
}

TEST_CASE("signals without a turn are ignored") {
  Records r;
  CHECK(ends(Feed({r.system("turn_duration", R"("durationMs":5)"), r.interruption()})).empty());
}

// ---- interruption, failure, limits

TEST_CASE("an interruption notice interrupts open calls and the turn") {
  for (const char* notice : {"[Request interrupted by user]", "[Request interrupted by user for tool use]"}) {
    Records r;
    const Feed feed({r.user("go"), r.call("c1", "Bash"), r.call("c2", "Read"), r.interruption(notice)});
    CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 Bash",
                                  "tool.invoked 1 c2 Read", "tool.finished 1 c1 interrupted",
                                  "tool.finished 1 c2 interrupted", "turn.finished 1 interrupted"});
  }
}

TEST_CASE("an interruption notice is not a prompt, nor as a string") {
  Records r;
  CHECK(Feed({r.user("go"), r.user("[Request interrupted by user]")}).count("turn.started") == 1);
}

TEST_CASE("the API's last error fails the turn") {
  Records r;
  const Feed feed(
      {r.user("go"), r.api_error("The limit is reached", R"("error":"rate_limit","apiErrorStatus":429,)",
                                 R"("stop_sequence")")});
  const Lines story = feed.summary();
  REQUIRE(story.size() == 4);
  CHECK(feed.fields("message.added", {"text"}) == Lines{"The limit is reached"});
  CHECK(story[1].starts_with("message.added 1 "));
  CHECK(story[2] == "api.failed 1 429 fatal");
  CHECK(story[3].starts_with("turn.finished 1 failed"));
}

TEST_CASE("the answer \"No response requested.\" is ignored") {
  Records r;
  const Feed feed(
      {r.user("go"), r.text("done"),
       r.record(
           "assistant", "",
           R"("isApiErrorMessage":false,"message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}],"stop_reason":"stop_sequence"})")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "message.added 1 assistant text done"});
}

TEST_CASE("a hook that stopped the operation fails the turn") {
  Records r;
  const Feed feed({r.user("go"), r.user("Operation stopped by hook: another session is active")});
  CHECK(ends(feed) == Lines{"1 failed - hook"});
  CHECK(feed.count("turn.started") == 1);
}

TEST_CASE("the limit of turns completes the turn") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", "ok"),
                   r.attachment(R"({"type":"max_turns_reached","maxTurns":3,"turnCount":4})")});
  CHECK(ends(feed) == Lines{"1 completed - max_turns"});
}

TEST_CASE("an aborted record emits its events, then interrupts") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.text("half a sen", "null", R"("isAborted":true)")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 Bash",
                                "message.added 1 assistant text half a sen", "tool.finished 1 c1 interrupted",
                                "turn.finished 1 interrupted"});
}

TEST_CASE("an aborted result is interrupted") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", "half", R"("isAborted":true)")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 Bash",
                                "tool.finished 1 c1 interrupted", "turn.finished 1 interrupted"});
}

// ---- the next start

TEST_CASE("the next start after assistant text infers completion") {
  Records r;
  CHECK(ends(Feed({r.user("one"), r.text("done"), r.user("two")})) == Lines{"1 completed true -"});
}

TEST_CASE("metadata between the text and the next start changes nothing") {
  Records r;
  const Feed feed(
      {r.user("one"), r.text("done"),
       R"({"type":"file-history-snapshot","messageId":"x","snapshot":{"trackedFileBackups":{}},"isSnapshotUpdate":false})"
       "\n",
       r.queue("dequeue"),
       R"({"type":"last-prompt","lastPrompt":"x","sessionId":"t"})"
       "\n",
       r.user("two")});
  CHECK(ends(feed) == Lines{"1 completed true -"});
}

TEST_CASE("a local command between the text and the next start changes nothing") {
  Records r;
  const Feed feed({r.user("one"), r.text("done"),
                   r.user("<local-command-caveat>Caveat: local</local-command-caveat>", R"("isMeta":true)"),
                   r.user("<command-name>/cost</command-name>\n<command-message>cost</"
                          "command-message>\n<command-args></command-args>"),
                   r.user("<local-command-stdout>much</local-command-stdout>"), r.user("two")});
  CHECK(ends(feed) == Lines{"1 completed true -"});
}

TEST_CASE("any other open turn is superseded by the next start") {
  {
    Records r;
    CHECK(ends(Feed({r.user("one"), r.user("two")})) == Lines{"1 superseded - -"});
  }
  {
    Records r;
    CHECK(ends(Feed({r.user("one"), r.thinking("hm"), r.user("two")})) == Lines{"1 superseded - -"});
  }
  {
    Records r;
    CHECK(ends(Feed({r.user("one"), r.call("c1", "Bash"), r.result("c1", "ok"), r.user("two")})) ==
          Lines{"1 superseded - -"});
  }
  {
    Records r;
    CHECK(ends(Feed({r.user("one"), r.call("c1", "Bash"), r.text("meanwhile"), r.user("two")})) ==
          Lines{"1 superseded - -"});
  }
}

TEST_CASE("a sidechain's text does not complete the turn") {
  Records r;
  CHECK(ends(Feed({r.user("one"), r.call("c1", "Task"), r.result("c1", "ok"),
                   r.text("of another", "null", R"("isSidechain":true,"parentUuid":null)"),
                   r.user("two")})) == Lines{"1 superseded - -"});
}

TEST_CASE("every turn that another follows has exactly one end") {
  Records r;
  const Feed feed({r.user("1"), r.user("2"), r.text("x"), r.user("3"), r.text("x", "\"end_turn\""),
                   r.user("4"), r.interruption(), r.user("5")});
  CHECK(feed.fields("turn.finished", {"turn"}) == Lines{"1", "2", "3", "4"});
}

// ---- the fields of the end

TEST_CASE("the duration is from the first to the last timestamp") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", "ok"), r.text("done", "\"end_turn\"")});
  CHECK(feed.fields("turn.finished", {"duration_ms"}) == Lines{"3000"});
}

TEST_CASE("the duration is never negative") {
  Records r;
  const Feed feed(
      {r.user("go"), r.text("done", "\"end_turn\"", R"("timestamp":"2026-02-02T23:00:00.000Z")")});
  CHECK(feed.fields("turn.finished", {"duration_ms"}) == Lines{"0"});
}

TEST_CASE("when the next start ends it, the last user or assistant record is the last") {
  Records r;
  const Feed feed({r.user("one"), r.text("done"), r.system("away_summary", R"("content":"a recap")"),
                   r.queue("dequeue"), r.user("two")});
  CHECK(feed.fields("turn.finished", {"duration_ms"}) == Lines{"1000"});
}

TEST_CASE("without timestamps there is no duration") {
  const Feed feed({R"({"type":"user","uuid":"a","message":"one"})"
                   "\n",
                   R"({"type":"assistant","uuid":"b","message":"done"})"
                   "\n",
                   R"({"type":"user","uuid":"c","message":"two"})"
                   "\n"});
  CHECK(feed.fields("turn.finished", {"outcome", "duration_ms", "time"}) == Lines{"completed - -"});
}

TEST_CASE("the end counts the calls of the own chain") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Task"),
                   r.user("do", R"("isSidechain":true,"parentUuid":null)"),
                   r.call("s1", "Bash", "{}", R"("isSidechain":true,"parentUuid":"u3")"),
                   r.result("s1", "ok", R"("isSidechain":true,"parentUuid":"u4")"), r.result("c1", "ok"),
                   r.call("c2", "Read"), r.result("c2", "ok"), r.text("done", "\"end_turn\""), r.user("next"),
                   r.text("ok", "\"end_turn\"")});
  CHECK(feed.fields("turn.finished", {"tools"}) == Lines{"2", "0"});
}

TEST_CASE("the end's usage is the growth of the totals in the turn") {
  Records r;
  const auto spent = [&](int output) {
    return r.record(
        "assistant", "",
        R"("message":{"id":"m)" + std::to_string(output) +
            R"(","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":)" +
            std::to_string(output) + "}}");
  };
  const Feed feed({r.user("one"), spent(10), r.user("two"), spent(200)});
  CHECK(feed.fields("turn.finished", {"usage"}) ==
        Lines{R"({"input":1,"output":10,"cache_read":0,"cache_write":0})",
              R"({"input":1,"output":200,"cache_read":0,"cache_write":0})"});
}

TEST_CASE("a result after the end keeps the current turn's number") {
  Records r;
  const Feed feed({r.user("go"), r.text("done", "\"end_turn\""), r.result("never-seen", "late")});
  CHECK(feed.fields("tool.finished", {"turn", "call", "tool"}) == Lines{"1 never-seen -"});
  CHECK(feed.count("turn.started") == 1);
}

TEST_CASE("the state shows the turn") {
  Records r;
  Feed feed({r.user("go")});
  CHECK(feed.state().turn_open);
  CHECK(feed.state().turn_started == Records::at(1));
  feed.write(r.text("done", "\"end_turn\""));
  CHECK_FALSE(feed.state().turn_open);
  CHECK(feed.state().last_outcome == "completed");
  CHECK(feed.state().last_finished == Records::at(2));
  CHECK(feed.state().last_text == "done");
  CHECK(feed.state().last_activity == Records::at(2));
}

}  // namespace
}  // namespace earshot::test
