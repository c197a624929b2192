// Fault 85: what a session without end makes the assembler keep is bounded, and what is dropped is counted.
#include <catch2/catch.hpp>
#include <functional>

#include "agents/claude_code/records.hpp"
#include "core/assembler.hpp"
#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"
#include "unit/support/transcript_summary.hpp"

namespace earshot::test {

using namespace std::string_literals;
namespace {

// Lines that each make the assembler keep something more.
struct Flood {
  const char* name;
  std::function<std::string(Records&, const std::string& number)> line;
  int lines = 4500;  // beyond the limit
};

const std::vector<Flood>& floods() {
  static const std::string text(300, 'x');
  static const std::vector<Flood> all = {
      {"subagents",
       [](Records& r, const std::string& n) {
         return r.call("c" + n, "Agent",
                       R"({"description":")" + text + R"(","prompt":"go","subagent_type":")" + text + "\"}");
       }},
      {"background subagents",
       [](Records& r, const std::string& n) {
         return r.call("c" + n, "Agent", R"({"description":")" + text + R"(","prompt":"go"})") +
                r.result("c" + n, "x",
                         R"("toolUseResult":{"status":"async_launched","isAsync":true,"agentId":"a)" + n +
                             text + "\"}");
       }},
      {"titles",
       [](Records&, const std::string& n) {
         return R"({"type":"summary","summary":")" + text + R"(","leafUuid":"none-)" + n + "\"}\n";
       }},
      {"early results",
       [](Records& r, const std::string& n) {
         return r.result("c" + n, "x",
                         R"("toolUseResult":{"status":"completed","agentId":")" + text + n + "\"}");
       }},
      {"early reports",
       [](Records& r, const std::string& n) { return r.notification("task-" + text + n, "completed"); }},
      {"open calls", [](Records& r, const std::string& n) { return r.call("c" + n, "Bash" + text); }},
      {"open calls in bytes",
       [](Records& r, const std::string& n) { return r.call("c" + n, "Bash" + std::string(2000, 'x')); }},
      {"sidechains",
       [](Records& r, const std::string& n) {
         return r.user(text, R"("isSidechain":true,"parentUuid":null,"uuid":"s)" + n + text + "\"");
       }},
      {"todo lists of sidechains",
       [](Records& r, const std::string& n) {
         const std::string todo =
             R"({"content":")" + std::string(2500, 'x') + n + R"(","status":"pending","activeForm":"x"})";
         const std::string call = "\"u" + std::to_string(2 * std::stoi(n) + 1) + "\"";
         return r.call("c" + n, "TodoWrite", R"({"todos":[)" + todo + "]}",
                       R"("isSidechain":true,"parentUuid":null)") +
                r.result("c" + n, "ok", R"("isSidechain":true,"parentUuid":)" + call);
       }},
      {"tasks",
       [](Records& r, const std::string& n) {
         return r.call("c" + n, "TaskCreate", R"({"subject":")" + std::string(20'000, 'x') + "\"}") +
                r.result("c" + n, "ok", R"("toolUseResult":{"task":{"id":")" + n + "\"}}");
       },
       200},
  };
  return all;
}

std::string flood(const Flood& kind, int begin, int end) {
  Records r;
  std::string bytes;
  for (int i = 0; i < end; ++i) {
    const std::string line = kind.line(r, std::to_string(i));
    if (i >= begin) bytes += line;
  }
  return bytes;
}

// Feeds a transcript without encoding its events.
struct Reader final : EventSink {
  Transcript transcript{claude_code_options()};
  Workspace workspace;
  void write(std::string bytes) {
    bytes.reserve(bytes.size() + feed_padding);
    transcript.feed(bytes, workspace, *this);
  }
  void on_event(const Event&) override {}
};

TEST_CASE("fault 85: a session's memory grows by its hashes only, and what is dropped is counted") {
  constexpr std::size_t hash_bytes_per_record_max = 200, bytes_max = 32 << 20;
  for (const Flood& kind : floods()) {
    CAPTURE(kind.name);
    Reader reader;
    reader.write(flood(kind, 0, kind.lines));
    const std::uint64_t records = reader.transcript.counts().records;
    const std::uint64_t dropped = reader.transcript.counts().dropped;
    const std::size_t bytes = reader.transcript.memory_bytes();
    CHECK(dropped > 0);
    reader.write(flood(kind, kind.lines, 2 * kind.lines));
    CHECK(reader.transcript.counts().records == 2 * records);
    CHECK(reader.transcript.counts().dropped >= dropped + kind.lines);
    CHECK(reader.transcript.memory_bytes() < bytes + records * hash_bytes_per_record_max);
    CHECK(reader.transcript.memory_bytes() < bytes_max);
    CHECK(reader.transcript.state().agents.size() <= Assembler::agents_max);
    CHECK(reader.transcript.state().tools.size() <= StreamState::open_tools_max);
    CHECK(reader.transcript.state().todos.size() <= Assembler::todos_max);
  }
}

TEST_CASE("fault 85: dropping does not depend on how the bytes are split") {
  for (const Flood& kind : floods()) {
    CAPTURE(kind.name);
    const std::string bytes = flood(kind, 0, kind.lines);
    Feed whole, cut;
    whole.write(bytes);
    cut.write_cut(bytes, 7, 4096);
    CHECK(whole.events() == cut.events());
    CHECK(summary_of(whole.transcript()) == summary_of(cut.transcript()));
  }
}

TEST_CASE("fault 85: the oldest open call is abandoned, and the turn can still end") {
  Records r;
  std::string bytes = r.user("go");
  const int calls = Assembler::open_calls_max + 10;
  for (int i = 0; i < calls; ++i) bytes += r.call("c" + std::to_string(i), "Bash");
  Feed feed;
  feed.write(bytes);
  CHECK(feed.count("tool.invoked") == static_cast<std::size_t>(calls));
  CHECK(feed.fields("tool.finished", {"call", "outcome"}).front() == "c0 abandoned");
  CHECK(feed.count("tool.finished") == 10);
  CHECK(feed.counts().dropped == 10);
  feed.write(r.result("c0", "late"));
  CHECK(feed.counts().late_results == 1);
  for (int i = 10; i < calls; ++i) feed.write(r.result("c" + std::to_string(i), "ok"));
  feed.write(r.text("done", "\"end_turn\""));
  CHECK(feed.count("tool.finished") == static_cast<std::size_t>(calls));
  CHECK(feed.fields("turn.finished", {"outcome"}) == Lines{"completed"});
}

TEST_CASE("fault 85: of the ends read before their launch, the oldest is dropped") {
  Records r;
  Feed feed({r.user("go")});
  const auto launch = [&](const std::string& n) {
    feed.write(r.call("c" + n, "Agent", R"({"description":"dig","prompt":"go"})"));
    feed.write(
        r.result("c" + n, "x",
                 R"("toolUseResult":{"status":"async_launched","isAsync":true,"agentId":"a)" + n + "\"}"));
  };
  for (std::size_t i = 0; i <= claude_code::Records::early_reports_max; ++i)
    feed.write(r.notification("a" + std::to_string(i), "completed"));
  CHECK(feed.counts().dropped == 1);
  launch("0");
  launch("1");
  launch(std::to_string(claude_code::Records::early_reports_max));
  CHECK(feed.fields("agent.finished", {"call"}) ==
        Lines{"c1", "c" + std::to_string(claude_code::Records::early_reports_max)});
}

TEST_CASE("fault 85: the end of a todo list beyond its limits is dropped") {
  Records r;
  const auto list = [&](std::size_t items, const std::string& text) {
    std::string todos;
    for (std::size_t i = 0; i < items; ++i)
      todos += (i ? ",{" : "{") + R"("content":")"s + text + R"(","status":"pending","activeForm":"x"})";
    Feed feed({r.call("c", "TodoWrite", R"({"todos":[)" + todos + "]}"), r.result("c", "ok")});
    CHECK(feed.count("todo.updated") == 1);
    CHECK(feed.counts().dropped == (feed.state().todos.size() < items));
    return feed.state().todos.size();
  };
  CHECK(list(Assembler::todos_max, "x") == Assembler::todos_max);
  CHECK(list(Assembler::todos_max + 1, "x") == Assembler::todos_max);
  CHECK(list(10, std::string(Assembler::todo_list_bytes_max / 5, 'x')) == 4);
}

TEST_CASE("fault 85: long texts and ids are kept in part") {
  const std::string text(3 * Assembler::text_bytes_max, 'x'), id(3 * Assembler::id_bytes_max, 'y');
  Records r;
  Feed feed({r.user("go"),
             R"({"type":"custom-title","customTitle":")" + text +
                 R"(","sessionId":"t"})"
                 "\n",
             r.call(id, "Agent", R"({"description":")" + text + R"(","prompt":"x"})"), r.result(id, "ok")});
  CHECK(feed.state().title.size() <= Assembler::text_bytes_max);
  CHECK(feed.counts().dropped >= 2);
  CHECK(feed.fields("tool.finished", {"call", "outcome"}) ==
        Lines{id.substr(0, Assembler::id_bytes_max) + " ok"});
  CHECK(feed.count("agent.finished") == 1);
}

TEST_CASE("of a long input of an open call the beginning of its JSON is kept") {
  std::string numbers = "[1";
  while (numbers.size() < 2 * StreamState::input_bytes_max) numbers += ",1";
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Bash", R"({"list":)" + numbers + "]}"),
             r.call("c2", "Bash", R"({"list":[1,2]})")});
  REQUIRE(feed.state().tools.size() == 2);
  const OpenTool& cut = feed.state().tools[0];
  CHECK(cut.input.starts_with(R"("{\"list\":[1,1,)"));
  CHECK(cut.input.size() <= 2 * StreamState::input_preview_bytes);
  REQUIRE(cut.truncated.size() == 1);
  CHECK(cut.truncated[0].path == "input");
  CHECK(cut.truncated[0].bytes == numbers.size() + 10);
  CHECK(feed.state().tools[1].input == R"({"list":[1,2]})");
}

}  // namespace
}  // namespace earshot::test
