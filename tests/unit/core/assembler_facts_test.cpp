// API errors, file checkpoints, the queue, system messages, and a transcript's counters.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

// ---- API errors

TEST_CASE("each failed attempt is an event that is not fatal") {
  Records r;
  const Feed feed(
      {r.user("go"),
       r.system(
           "api_error",
           R"("level":"error","error":{"status":529,"error":{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}},"retryInMs":602.9423501106984,"retryAttempt":1,"maxRetries":10)"),
       r.system("api_error", R"("error":{},"retryInMs":1500.0,"retryAttempt":2,"maxRetries":10)")});
  CHECK(feed.fields("api.failed", {"status", "attempt", "max_attempts", "fatal"}) ==
        Lines{"529 1 10 false", "- 2 10 false"});
  const Lines waits = feed.fields("api.failed", {"retry_in_ms"});
  CHECK((waits[0] == "602" || waits[0] == "603"));
  CHECK(waits[1] == "1500");
  CHECK(feed.count("turn.finished") == 0);
}

TEST_CASE("the last attempt is fatal, with status and error") {
  Records r;
  const Feed feed({r.user("go"), r.api_error("limit", R"("error":"rate_limit","apiErrorStatus":429,)")});
  CHECK(feed.fields("api.failed", {"status", "error", "fatal"}) == Lines{"429 rate_limit true"});
  CHECK(feed.fields("message.added", {"text"}) == Lines{"limit"});
  CHECK(feed.fields("turn.finished", {"outcome"}) == Lines{"failed"});
}

TEST_CASE("an API error while a call is open leaves one end of it") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.api_error("API Error: 500"), r.user("next")});
  CHECK(feed.count("tool.finished") == 1);
  CHECK(feed.fields("turn.finished", {"turn", "outcome"}) == Lines{"1 failed"});
}

// ---- files

TEST_CASE("a checkpoint is an event only if it names files") {
  const auto snapshot = [](std::string_view files) {
    return R"({"type":"file-history-snapshot","messageId":"m7","snapshot":{"messageId":"m7","trackedFileBackups":)" +
           std::string(files) +
           R"(,"timestamp":"2026-02-03T00:00:00.000Z"},"isSnapshotUpdate":true})"
           "\n";
  };
  Records r;
  const Feed feed(
      {r.user("go"), snapshot("{}"),
       snapshot(
           R"({"a.cpp":{"backupFileName":"x@v1","version":1},"b c.hpp":{"backupFileName":null,"version":1}})")});
  CHECK(feed.fields("files.snapshotted", {"message", "files"}) == Lines{R"(m7 ["a.cpp","b c.hpp"])"});
}

TEST_CASE("a delta is one file") {
  Records r;
  const Feed feed(
      {r.user("go"),
       R"({"type":"file-history-delta","messageId":"m7","snapshotMessageId":"m6","trackingPath":"src/a.ts","backup":{"version":1},"timestamp":"2026-02-03T00:00:09.000Z"})"
       "\n"});
  CHECK(feed.fields("files.snapshotted", {"message", "files", "time"}) ==
        Lines{R"(m7 ["src/a.ts"] 2026-02-03T00:00:09.000Z)"});
}

// ---- the queue

TEST_CASE("each operation on the queue is an event, with its text if any") {
  Records r;
  const Feed feed({r.user("go"), r.queue("enqueue", "then this"), r.queue("dequeue"),
                   r.queue("remove", "that"), r.queue("popAll", "these")});
  CHECK(feed.fields("queue.changed", {"operation", "text"}) ==
        Lines{"enqueue then this", "dequeue -", "remove that", "popAll these"});
}

// ---- system messages

TEST_CASE("system records with content are messages of the system") {
  Records r;
  const Feed feed(
      {r.user("go"), r.record("system", R"("content":"the larger model is at its limit","level":"warning")"),
       r.system("away_summary", R"("content":"a recap")"),
       r.system("informational", R"("content":"disconnected")"),
       r.system("bridge_status", R"("content":"is active","url":"https://example.invalid/x")"),
       r.system("model_refusal_fallback", R"("content":"flagged","originalModel":"a","fallbackModel":"b")")});
  CHECK(feed.fields("message.added", {"role", "kind", "text"}) ==
        Lines{"system text the larger model is at its limit", "system text a recap",
              "system text disconnected", "system text is active", "system text flagged"});
}

TEST_CASE("other system records emit nothing") {
  Records r;
  const Feed feed({r.user("go"), r.system("local_command",
                                          R"("content":"<local-command-stdout>x</local-command-stdout>")")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go"});
  CHECK(feed.counts().unknown_types.empty());
}

TEST_CASE("an unknown kind of system record or attachment is counted by its name") {
  Records r;
  const Feed feed({r.user("go"), r.system("weather_report", R"("content":"rain")"),
                   r.attachment(R"({"type":"weather"})")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go"});
  CHECK(feed.counts().unknown_types.size() == 2);
  CHECK(feed.counts().unknown_types.count("system/weather_report") == 1);
}

// ---- odd shapes

TEST_CASE("records of unexpected shapes are harmless") {
  for (
      const char* odd :
      {R"({"type":"user","uuid":"x"})",
       R"({"type":"user","uuid":"x","message":null})",
       R"({"type":"user","uuid":"x","message":7})",
       R"({"type":"user","uuid":"x","message":[]})",
       R"({"type":"user","uuid":"x","message":{}})",
       R"({"type":"user","uuid":"x","message":{"content":null}})",
       R"({"type":"user","uuid":"x","message":{"content":{}}})",
       R"({"type":"user","uuid":"x","message":{"content":[null,1,"s",[],{}]}})",
       R"({"type":"user","uuid":"x","message":{"content":[{"type":"text"}]}})",
       R"({"type":"user","uuid":"x","message":{"content":[{"type":"tool_result"}]}})",
       R"({"type":"user","uuid":"x","message":{"content":[{"type":"tool_result","tool_use_id":7}]}})",
       R"({"type":"user","uuid":"x","message":{"content":[{"type":"image"}]}})",
       R"({"type":"user","uuid":"x","message":{"content":[{"type":7}]}})",
       R"({"type":"user","uuid":"x","message":{"content":""}})",
       R"({"type":"assistant","uuid":"x"})",
       R"({"type":"assistant","uuid":"x","message":null})",
       R"({"type":"assistant","uuid":"x","message":{"content":"text"}})",
       R"({"type":"assistant","uuid":"x","message":{"content":[{"type":"tool_use"}]}})",
       R"({"type":"assistant","uuid":"x","message":{"content":[{"type":"tool_use","id":7,"name":[],"input":1}]}})",
       R"({"type":"assistant","uuid":"x","message":{"content":[{"type":"text","text":null}],"usage":[],"model":7,"id":null,"stop_reason":{}}})",
       R"({"type":"assistant","uuid":"x","message":{"content":[{"type":"fallback","from":{},"to":{}}]}})",
       R"({"type":"system","uuid":"x"})",
       R"({"type":"system","uuid":"x","subtype":7})",
       R"({"type":"system","uuid":"x","subtype":"turn_duration","durationMs":"long"})",
       R"({"type":"system","uuid":"x","subtype":"api_error"})",
       R"({"type":"system","uuid":"x","subtype":"api_error","error":"text"})",
       R"({"type":"system","uuid":"x","subtype":"compact_boundary","compactMetadata":[]})",
       R"({"type":"attachment","uuid":"x"})",
       R"({"type":"attachment","uuid":"x","attachment":null})",
       R"({"type":"attachment","uuid":"x","attachment":{"type":"queued_command"}})",
       R"({"type":"attachment","uuid":"x","attachment":{"type":"task_reminder","content":"x"}})",
       R"({"type":"attachment","uuid":"x","attachment":{"type":"task_reminder","content":[null,7,{}]}})",
       R"({"type":"progress","uuid":"x"})",
       R"({"type":"progress","uuid":"x","data":{"type":"agent_progress"}})",
       R"({"type":"queue-operation"})",
       R"({"type":"queue-operation","operation":7,"content":{}})",
       R"({"type":"summary"})",
       R"({"type":"ai-title","aiTitle":7})",
       R"({"type":"cost-state"})",
       R"({"type":"file-history-snapshot"})",
       R"({"type":"file-history-snapshot","snapshot":{"trackedFileBackups":[]}})",
       R"({"type":"file-history-delta"})",
       R"({"type":7})",
       R"({"type":null,"uuid":"x"})",
       R"({"type":"user","uuid":7,"message":{"content":"x"}})",
       R"({"type":"user","uuid":"x","parentUuid":7,"isSidechain":"yes","cwd":[],"version":1,"message":{"content":"x"}})",
       "{}"}) {
    INFO(odd);
    Feed feed;
    feed.write(R"({"type":"user","uuid":"first","message":{"role":"user","content":"hi"}})"
               "\n");
    feed.write(std::string(odd) + "\n");
    feed.write(R"({"type":"user","uuid":"last","message":{"role":"user","content":"the next"}})"
               "\n");
    CHECK(feed.fields("turn.started", {"prompt"}).back() == "the next");
    CHECK(feed.counts().lines == 3);
    CHECK(feed.counts().skipped_lines == 0);
  }
}

TEST_CASE("an assistant's content may be a string") {
  Records r;
  CHECK(Feed({r.user("go"), r.record("assistant", "", R"("message":{"id":"m","content":"as a string"})")})
            .fields("message.added", {"role", "kind", "text"}) == Lines{"assistant text as a string"});
}

// ---- counters

TEST_CASE("counts: lines, records, events, types") {
  Records r;
  const Feed feed({r.user("go"), "\n", r.text("x"), r.system("away_summary", R"("content":"y")")});
  CHECK(feed.counts().lines == 4);
  CHECK(feed.counts().empty_lines == 1);
  CHECK(feed.counts().records == 3);
  CHECK(feed.counts().events == feed.events().size());
  CHECK(feed.counts().types.at("user") == 1);
  CHECK(feed.counts().types.at("assistant") == 1);
  CHECK(feed.counts().types.at("system/away_summary") == 1);
}

TEST_CASE("one workspace serves many transcripts in turn") {
  Records r;
  Workspace workspace;
  struct Sink final : EventSink {
    std::vector<std::string> events;
    void on_event(const Event& event) override {
      events.emplace_back();
      append_event(events.back(), event, {"h", "s", "t"});
    }
  };
  const std::string bytes =
      joined({r.user("go"), r.call("c1", "Bash"), r.result("c1", "ok"), r.text("done", "\"end_turn\"")});
  std::string padded = bytes + std::string(feed_padding, ' ');
  Sink a;
  Sink b;
  Transcript first{claude_code_options()};
  Transcript second{claude_code_options()};
  for (std::size_t i = 0; i < bytes.size(); i += 10) {
    const std::size_t size = std::min<std::size_t>(10, bytes.size() - i);
    first.feed({padded.data() + i, size}, workspace, a);
    second.feed({padded.data() + i, size}, workspace, b);
  }
  Feed whole({bytes});
  CHECK(a.events == whole.events());
  CHECK(b.events == whole.events());
}

TEST_CASE("a transcript moves with what it holds") {
  Records r;
  Workspace workspace;
  struct Sink final : EventSink {
    std::size_t events = 0;
    void on_event(const Event&) override { ++events; }
  } sink;
  const std::string line = r.user("go");
  std::string padded = line + std::string(feed_padding, ' ');
  Transcript one{claude_code_options()};
  one.feed({padded.data(), 20}, workspace, sink);
  Transcript two(std::move(one));
  two.feed({padded.data() + 20, line.size() - 20}, workspace, sink);
  CHECK(sink.events == 2);
  one = std::move(two);
  CHECK(one.state().turn == 1);
  CHECK(one.bytes_read() == line.size());
}

TEST_CASE("the event's time in milliseconds is that of its text") {
  struct Sink final : EventSink {
    std::int64_t time_ms = -1;
    void on_event(const Event& event) override { time_ms = event.time_ms; }
  };
  for (const auto& [text, ms] : std::initializer_list<std::pair<const char*, std::int64_t>>{
           {"\"2025-01-29T14:15:30.123Z\"", 1738160130123},
           {"\"2025-01-29T14:15:30Z\"", 1738160130000},
           {"\"2025-01-29T15:15:30.5+01:00\"", 1738160130500},
           {"\"2024-02-29T00:00:00Z\"", 1709164800000},
           {"\"no\"", 0}}) {
    Workspace workspace;
    Sink sink;
    Transcript transcript{claude_code_options()};
    const std::string line = R"({"type":"user","uuid":"u","timestamp":)" + std::string(text) +
                             R"(,"message":{"content":"x"}})"
                             "\n";
    const std::string padded = line + std::string(feed_padding, ' ');
    transcript.feed({padded.data(), line.size()}, workspace, sink);
    CHECK(sink.time_ms == ms);
  }
}

}  // namespace
}  // namespace earshot::test
