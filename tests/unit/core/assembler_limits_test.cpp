// Fault 85: what a session without end makes the assembler keep is bounded, and what is dropped is counted.
#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "core/assembler.hpp"
#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"
#include "unit/support/transcript_summary.hpp"

namespace earshot::test {
namespace {

struct Flood {
  const char* name;
  std::function<std::string(Records&, const std::string& number)> line;
};

const std::vector<Flood>& floods() {
  static const std::string text(300, 'x');
  static const std::vector<Flood> all = {
      {"subagents",
       [](Records& r, const std::string& n) {
         return r.call("c" + n, "Agent",
                       R"({"description":")" + text + R"(","prompt":"go","subagent_type":")" + text + "\"}");
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
      {"open calls", [](Records& r, const std::string& n) { return r.call("c" + n + text, "Bash" + text); }},
      {"sidechains",
       [](Records& r, const std::string& n) {
         return r.user(text, R"("isSidechain":true,"parentUuid":null,"uuid":"s)" + n + text + "\"");
       }},
      {"todo lists of sidechains",
       [](Records& r, const std::string& n) {
         const std::string todo = R"({"content":")" + text + n + R"(","status":"pending","activeForm":"x"})";
         return r.call("c" + n, "TodoWrite", R"({"todos":[)" + todo + "]}",
                       R"("isSidechain":true,"parentUuid":null)") +
                r.result(
                    "c" + n, "ok",
                    R"("isSidechain":true,"parentUuid":"u)" + std::to_string(2 * std::stoi(n) + 1) + "\"");
       }},
  };
  return all;
}

std::string flood(const Flood& kind, int lines) {
  Records r;
  std::string bytes;
  for (int i = 0; i < lines; ++i) bytes += kind.line(r, std::to_string(i));
  return bytes;
}

TEST_CASE("fault 85: a session's memory grows by its hashes only, and what is dropped is counted") {
  constexpr int few = 5000, many = 15'000;
  constexpr std::size_t bytes_per_record_max = 100;
  for (const Flood& kind : floods()) {
    CAPTURE(kind.name);
    Feed small, large;
    small.write(flood(kind, few));
    large.write(flood(kind, many));
    CHECK(large.counts().forgotten > 0);
    CHECK(large.transcript().memory_bytes() <
          small.transcript().memory_bytes() + (many - few) * 2 * bytes_per_record_max);
    CHECK(large.transcript().memory_bytes() < std::size_t{32} << 20);
    CHECK(large.state().agents.size() <= Assembler::agents_max);
    CHECK(large.state().tools.size() <= StreamState::open_tools_max);
  }
}

TEST_CASE("fault 85: dropping does not depend on how the bytes are split") {
  for (const Flood& kind : floods()) {
    CAPTURE(kind.name);
    const std::string bytes = flood(kind, 4500);
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
  CHECK(feed.counts().forgotten == 10);
  feed.write(r.result("c0", "late"));
  CHECK(feed.counts().late_results == 1);
  for (int i = 10; i < calls; ++i) feed.write(r.result("c" + std::to_string(i), "ok"));
  feed.write(r.text("done", "\"end_turn\""));
  CHECK(feed.count("tool.finished") == static_cast<std::size_t>(calls));
  CHECK(feed.fields("turn.finished", {"outcome"}) == Lines{"completed"});
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
  CHECK(feed.counts().forgotten >= 1);
  CHECK(feed.fields("tool.finished", {"call", "outcome"}) ==
        Lines{id.substr(0, Assembler::id_bytes_max) + " ok"});
  CHECK(feed.count("agent.finished") == 1);
}

}  // namespace
}  // namespace earshot::test
