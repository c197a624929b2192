// Faults 139 and 140: of each program, what a session without end makes its reader keep is bounded.
#include <malloc.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agents/agent.hpp"
#include "core/assembler.hpp"
#include "core/transcript.hpp"

namespace earshot::test {
namespace {

constexpr std::size_t text_bytes = 300'000;
constexpr int lines = 100;

std::string timed(std::string_view type, const std::string& rest) {
  return R"({"timestamp":"2026-03-01T10:00:00.000Z","type":")" + std::string(type) + "\"," + rest + "}\n";
}
std::string codex_item(const std::string& payload) {
  return timed("response_item", R"("payload":{)" + payload + "}");
}

// A first line, and lines that each have a text or an id that is new and long.
struct Flood {
  const char* name;
  const char* program;
  std::string first;
  std::function<std::string(const std::string& number, const std::string& text)> line;
  bool drops = false;  // more than the ends of ids
};

std::vector<Flood> floods() {
  const std::string codex =
      timed("session_meta", R"("payload":{"id":"t","cwd":"/x","cli_version":"0.140.0"})");
  const std::string copilot = timed(
      "session.start", R"("id":"0","data":{"sessionId":"s","copilotVersion":"1","context":{"cwd":"/x"}})");
  const std::string pi = timed("session", R"("version":3,"id":"p","cwd":"/x")");
  return {
      {"ids of calls", "codex", codex,
       [](const auto& n, const auto& text) {
         return codex_item(R"("type":"function_call","name":"shell","arguments":"{}","call_id":")" + n +
                           text + "\"");
       }},
      {"plans without a result", "codex", codex,
       [](const auto& n, const auto& text) {
         return codex_item(R"("type":"function_call","name":"update_plan","call_id":")" + n +
                           R"(","arguments":"{\"plan\":[{\"step\":\")" + text + R"(\"}]}")");
       },
       true},
      {"ids of messages", "codex", codex,
       [](const auto& n, const auto& text) {
         return timed("event_msg",
                      R"("payload":{"type":"item_completed","item":{"type":"AgentMessage","id":")" + n +
                          text + R"(","content":[{"type":"Text","text":"hi"}]}})");
       }},
      {"threads of subagents", "codex", codex,
       [](const auto& n, const auto& text) {
         return timed("event_msg", R"("payload":{"type":"sub_agent_activity","kind":"started","event_id":")" +
                                       n + R"(","agent_path":"/root/)" + n + text +
                                       R"(","agent_thread_id":")" + n + text + "\"}");
       }},
      {"titles", "codex", codex,
       [](const auto& n, const auto& text) {
         return timed("event_msg",
                      R"("payload":{"type":"thread_name_updated","thread_name":")" + n + text + "\"}");
       },
       true},
      {"ids of requests", "copilot", copilot,
       [](const auto& n, const auto& text) {
         return timed("permission.requested", R"("id":")" + n + R"(","data":{"requestId":")" + n + text +
                                                  R"(","permissionRequest":{"kind":"shell","toolCallId":")" +
                                                  n + text + "\"}}");
       }},
      {"todo lists without a result", "copilot", copilot,
       [](const auto& n, const auto& text) {
         return timed("tool.execution_start", R"("id":")" + n +
                                                  R"(","data":{"toolName":"update_todo","toolCallId":")" + n +
                                                  R"(","arguments":{"todos":"- [ ] )" + text + "\"}}");
       },
       true},
      {"ids of agents", "copilot", copilot,
       [](const auto& n, const auto& text) {
         return timed("tool.execution_start", R"("id":")" + n + R"(","agentId":")" + n + text +
                                                  R"(","data":{"toolName":"bash","toolCallId":")" + n +
                                                  "\"}");
       }},
      {"tokens of messages", "copilot", copilot,
       [](const auto& n, const auto& text) {
         return timed("assistant.message", R"("id":")" + n + R"(","data":{"messageId":")" + n + text +
                                               R"(","content":"hi","outputTokens":5})");
       }},
      {"ids of calls", "pi", pi,
       [](const auto& n, const auto& text) {
         return timed("message",
                      R"("id":")" + n +
                          R"(","message":{"role":"assistant","content":[{"type":"toolCall","id":")" + n +
                          text + R"(","name":"bash","arguments":{}}],"stopReason":"toolUse"})");
       }},
  };
}

struct Sink final : EventSink {
  std::size_t events = 0;
  void on_event(const Event&) override { ++events; }
};

void feed(Transcript& transcript, std::string bytes, Workspace& workspace, Sink& sink) {
  bytes.reserve(bytes.size() + feed_padding);
  transcript.feed(bytes, workspace, sink);
}

std::unique_ptr<Transcript> transcript_of(const char* program) {
  TranscriptOptions options;
  options.format = &find_agent_program(program)->format();
  return std::make_unique<Transcript>(options);
}

// 0 with a sanitizer, whose allocator has no statistics.
std::size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

}  // namespace

TEST_CASE("fault 139: long ids and texts of every program are kept in part, and what is dropped is counted") {
  constexpr std::size_t bytes_max = 12 << 20;
  const std::string text(text_bytes, 'x');
  for (const Flood& flood : floods()) {
    CAPTURE(flood.program, flood.name);
    Workspace workspace;
    Sink sink;
    auto warm = transcript_of(flood.program);  // the workspace has its buffers afterwards
    feed(*warm, flood.first + flood.line("0", text), workspace, sink);
    const std::size_t before = heap_bytes(), events = sink.events;
    auto transcript = transcript_of(flood.program);
    feed(*transcript, flood.first, workspace, sink);
    for (int n = 0; n < lines; ++n) feed(*transcript, flood.line(std::to_string(n), text), workspace, sink);
    CHECK(transcript->counts().records == lines + 1u);
    CHECK(sink.events > events);
    CHECK(transcript->memory_bytes() < bytes_max);
    CHECK(heap_bytes() < before + bytes_max);
    CHECK((transcript->counts().dropped > 0) == flood.drops);
    for (const OpenTool& tool : transcript->state().tools) CHECK(tool.call.size() <= Assembler::id_bytes_max);
    CHECK(transcript->state().title.size() <= Assembler::text_bytes_max);
    CHECK(transcript->state().requests.size() <= Assembler::requests_max);
    for (const OpenRequest& request : transcript->state().requests)
      CHECK(std::max({request.id.size(), request.call.size(), request.subject.size()}) <=
            Assembler::id_bytes_max);
  }
}

TEST_CASE("fault 139: the oldest open call of every program is abandoned, and its subagent ends") {
  const std::string text(text_bytes, 'x');
  Workspace workspace;
  Sink sink;
  auto codex = transcript_of("codex");
  feed(*codex,
       floods()[0].first +
           codex_item(R"("type":"function_call","name":"spawn_agent","call_id":"a","arguments":"{}")"),
       workspace, sink);
  CHECK(codex->state().agents.size() == 1);
  for (int n = 0; n < lines; ++n) feed(*codex, floods()[1].line(std::to_string(n), text), workspace, sink);
  CHECK(codex->state().agents.empty());
  CHECK(codex->state().tools.size() < lines);
}

TEST_CASE("fault 140: an idle transcript keeps nothing of the JSON that a record has as text") {
  constexpr std::size_t transcripts = 100, bytes_max = 32 << 10;
  const std::string text(text_bytes, 'x');
  Workspace workspace;
  Sink sink;
  const auto feed_call = [&](Transcript& transcript) {
    feed(
        transcript,
        floods()[0].first +
            codex_item(R"("type":"function_call","name":"shell","call_id":"c","arguments":"{\"command\":\")" +
                       text + R"(\"}")") +
            codex_item(R"("type":"function_call_output","call_id":"c","output":"{\"output\":\")" + text +
                       R"(\",\"metadata\":{\"exit_code\":0}}")"),
        workspace, sink);
  };
  feed_call(*transcript_of("codex"));
  const std::size_t before = heap_bytes();
  std::vector<std::unique_ptr<Transcript>> all;
  for (std::size_t n = 0; n < transcripts; ++n) feed_call(*all.emplace_back(transcript_of("codex")));
  CHECK(heap_bytes() < before + transcripts * bytes_max);
}

}  // namespace earshot::test
