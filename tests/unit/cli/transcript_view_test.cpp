#include "cli/transcript_view.hpp"

#include <stdlib.h>
#include <time.h>

#include <catch2/catch.hpp>

using namespace earshot;
using namespace earshot::cli;

namespace {

struct Utc {
  Utc() {
    setenv("TZ", "UTC", 1);
    tzset();
  }
  ~Utc() {
    unsetenv("TZ");
    tzset();
  }
};

const char* const common =
    R"("host":"h","stream":"m","session":"s","cursor":"1.1.x","time":"2026-11-24T10:00:00Z","turn":1)";

std::string event(const std::string& type, const std::string& more) {
  return R"({"type":")" + type + "\"," + common + (more.empty() ? "" : "," + more) + "}";
}

std::string shown(const std::vector<std::string>& events, bool verbose = false, std::size_t columns = 0,
                  Charset charset = Charset::utf8) {
  const Utc here;
  Timeline timeline;
  FrameParser parser;
  for (const std::string& json : events) timeline.add(*parser.parse(json), json);
  TranscriptView view({charset, Palette::none, columns}, verbose);
  std::string out;
  timeline.walk(
      0,
      [&](const Timeline::Step& step) {
        view.write(step, timeline, out);
        return true;
      },
      [&](std::string_view agent, std::size_t depth) { view.write_unlinked_agent(agent, depth, out); });
  return out;
}

}  // namespace

TEST_CASE("the heading of a turn shows its time, origin, duration and outcome") {
  CHECK(
      shown(
          {event("turn.started", R"("prompt":"Fix it","origin":"queued")"),
           event(
               "turn.finished",
               R"("outcome":"interrupted","duration_ms":2000,"tools":3,"usage":{"input":10,"output":5,"cache_read":0,"cache_write":0})")}) ==
      "\nTue 24 Nov 2026\n── turn 1 · 10:00:00 · queued · interrupted · 2.0s · 3 tools · 15 tokens\n  › Fix "
      "it\n");
  CHECK(shown({event("turn.started", R"("origin":"human")")}) ==
        "\nTue 24 Nov 2026\n── turn 1 · 10:00:00 · open\n");
}

TEST_CASE("a call and its result are one line, the error is below") {
  const std::string call =
      event("tool.invoked", R"("call":"c","tool":"Bash","input":{"command":"npm test"})");
  CHECK(shown({call}) == "  ⚙ Bash  npm test  no result yet\n");
  CHECK(
      shown({call, event("tool.finished",
                         R"("call":"c","tool":"Bash","outcome":"ok","duration_ms":900,"output":"fine")")}) ==
      "  ⚙ Bash  npm test  ✓ 0.9s\n");
  CHECK(
      shown({call, event("tool.finished", R"("call":"c","outcome":"error","output":"1 failed\nsee log")")}) ==
      "  ⚙ Bash  npm test  ✗\n    ✗ 1 failed\n      see log\n");
  CHECK(shown({call, event("tool.finished", R"("call":"c","outcome":"denied")")}) ==
        "  ⚙ Bash  npm test  ⊘ denied\n");
  CHECK(shown({call, event("tool.finished", R"("call":"c","outcome":"ok","output":"fine")")}, true) ==
        "  ⚙ Bash  npm test  ✓\n    · fine\n");
}

TEST_CASE("a long command is cut so that its outcome still shows") {
  const std::string line = shown({event("tool.invoked", R"("call":"c","tool":"Bash","input":{"command":")" +
                                                            std::string(300, 'x') + "\"}"),
                                  event("tool.finished", R"("call":"c","outcome":"ok","duration_ms":900)")},
                                 false, 40);
  CHECK(line.ends_with("…  ✓ 0.9s\n"));
  CHECK(display_width(line.substr(0, line.size() - 1)) == 40);
}

TEST_CASE("messages are wrapped and indented") {
  CHECK(
      shown(
          {event(
              "message.added",
              R"("role":"assistant","kind":"text","text":"one two three four five six seven\n\n\n  code  here")")},
          false, 24) == "  “ one two three four\n    five six seven\n\n      code  here\n");
  CHECK(shown({event("message.added", R"("role":"assistant","kind":"thinking","text":"hm")")}).empty());
  CHECK(shown({event("message.added", R"("role":"assistant","kind":"thinking","text":"hm")")}, true) ==
        "  “ thinking\n  “ hm\n");
}

TEST_CASE("a truncated text shows its complete size") {
  CHECK(shown({event("message.added",
                     R"("role":"assistant","kind":"text","text":"begin","truncated":{"text":12345})")}) ==
        "  “ begin\n    … 12.3 kB in total\n");
}

TEST_CASE("a subagent's lines are below its call, with a vertical rule") {
  CHECK(
      shown(
          {event("agent.started",
                 R"("call":"c","agent_type":"Explore","description":"DisplayOptions around")"),
           R"({"type":"message.added","stream":"sub","session":"s","agent":"x","cursor":"1.1.x","turn":1,"role":"assistant","kind":"text","text":"found"})",
           event("agent.finished",
                 R"("call":"c","subagent":"x","outcome":"failed","duration_ms":1500,"tools":1)")}) ==
      "  ↳ Explore  DisplayOptions around  ✗  failed · 1.5s · 1 tool\n  │ “ found\n");
}

TEST_CASE("control characters of a transcript do not reach the terminal") {
  const std::string evil = R"(\u001b]0;owned\u0007\u001b[2J\u202e\u009b31m\r)";
  const std::string out = shown(
      {event("turn.started", R"("origin":")" + evil + R"(","prompt":")" + evil + "\""),
       event("message.added", R"("role":"user","kind":")" + evil + R"(","text":")" + evil + "\""),
       event("tool.invoked", R"("call":"c","tool":")" + evil + R"(","input":{"command":")" + evil + "\"}"),
       event("tool.finished", R"("call":"c","outcome":"error","output":")" + evil + R"(\n)" + evil + "\""),
       event("agent.started", R"("call":"d","agent_type":")" + evil + R"(","description":")" + evil + "\""),
       event("todo.updated", R"("todos":[{"content":")" + evil + R"(","status":"in_progress"}])"),
       event("turn.finished", R"("outcome":")" + evil + R"(","stop_reason":")" + evil + "\"")},
      true);
  for (const char* bad : {"\x1b", "\x07", "\r", "\xe2\x80\xae", "\xc2\x9b"})
    CHECK(out.find(bad) == std::string::npos);
  CHECK(out.find("\\x1b]0;owned") != std::string::npos);
}

TEST_CASE("in ASCII every glyph has a replacement") {
  const std::string out =
      shown({event("turn.started", R"("prompt":"täst")"),
             event("tool.invoked", R"("call":"c","tool":"Bash","input":{"command":"ls"})")},
            false, 0, Charset::ascii);
  CHECK(std::all_of(out.begin(), out.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}
