// Calls and their results: pairing, outcomes, output.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

/// The outcome of a call with an error result of this text and these further members.
std::string outcome_of(std::string_view text, std::string_view extra = "",
                       std::string_view prompt_extra = "") {
  Records r;
  const Feed feed({r.user("go", prompt_extra), r.call("c1", "Bash"), r.error("c1", text, extra)});
  const Lines told = feed.fields("tool.finished", {"outcome"});
  return told.size() == 1 ? told[0] : "told " + std::to_string(told.size()) + " times";
}

// ---- pairing

TEST_CASE("a call and its result are paired by id") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash", R"({"command":"ls"})"), r.call("c2", "Read"),
                   r.result("c2", "two"), r.result("c1", "one")});
  CHECK(feed.fields("tool.invoked", {"call", "tool", "input"}) ==
        Lines{R"(c1 Bash {"command":"ls"})", "c2 Read {}"});
  CHECK(feed.fields("tool.finished", {"call", "tool", "outcome", "output", "duration_ms"}) ==
        Lines{"c2 Read ok two 1000", "c1 Bash ok one 3000"});
}

TEST_CASE("a result may come before the line of its sibling call") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", "one"), r.call("c2", "Read"),
                   r.result("c2", "two")});
  CHECK(feed.fields("tool.", {"type", "call"}) ==
        Lines{"tool.invoked c1", "tool.finished c1", "tool.invoked c2", "tool.finished c2"});
}

TEST_CASE("one tool.invoked per id") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.call("c1", "Bash"), r.result("c1", "ok"),
                   r.call("c1", "Bash"), r.user("next"), r.call("c1", "Bash")});
  CHECK(feed.count("tool.invoked") == 1);
  CHECK(feed.count("tool.finished") == 1);
}

TEST_CASE("one tool.finished per id") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", "ok"), r.result("c1", "again")});
  CHECK(feed.fields("tool.finished", {"output"}) == Lines{"ok"});
}

TEST_CASE("a result of an unknown call has no tool") {
  Records r;
  CHECK(Feed({r.user("go"), r.result("x1", "ok")})
            .fields("tool.finished", {"call", "tool", "outcome", "duration_ms"}) == Lines{"x1 - ok -"});
}

TEST_CASE("a call that follows its own result is not open") {
  Records r;
  const Feed feed({r.user("go"), r.result("c1", "ok"), r.call("c1", "Bash"), r.text("done", "\"end_turn\""),
                   r.user("next")});
  CHECK(feed.fields("tool.finished", {"call", "outcome"}) == Lines{"c1 ok"});
  CHECK(feed.fields("turn.finished", {"outcome", "stop_reason"}) == Lines{"completed end_turn"});
  CHECK(feed.state().tools.empty());
}

TEST_CASE("the state shows open calls, in order of invocation") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Bash", R"({"command":"ls"})"), r.call("c2", "Read")});
  REQUIRE(feed.state().tools.size() == 2);
  CHECK(feed.state().tools[0].call == "c1");
  CHECK(feed.state().tools[0].tool == "Bash");
  CHECK(feed.state().tools[0].input == R"({"command":"ls"})");
  CHECK(feed.state().tools[0].started == Records::at(2));
  feed.write(r.result("c1", "ok"));
  REQUIRE(feed.state().tools.size() == 1);
  CHECK(feed.state().tools[0].call == "c2");
}

TEST_CASE("the state shows no more open calls than its limit, and pairs them all") {
  Records r;
  Feed feed({r.user("go")});
  const std::size_t many = StreamState::open_tools_max + 50;
  for (std::size_t i = 0; i < many; ++i) feed.write(r.call("c" + std::to_string(i), "Bash"));
  CHECK(feed.state().tools.size() <= StreamState::open_tools_max);
  for (std::size_t i = 0; i < many; ++i) feed.write(r.result("c" + std::to_string(i), "ok"));
  CHECK(feed.count("tool.finished") == many);
  CHECK(feed.state().tools.empty());
}

// ---- outcomes, in order of precedence

TEST_CASE("a result is ok without is_error or with a false one") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Bash"), r.result("c1", "ok"), r.call("c2", "Bash"),
       r.user_blocks(R"([{"type":"tool_result","tool_use_id":"c2","content":"ok","is_error":false}])")});
  CHECK(feed.fields("tool.finished", {"outcome"}) == Lines{"ok", "ok"});
}

TEST_CASE("is_error is an error, and its text is the output") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"), r.error("c1", "Exit code 1\nno"), r.call("c2", "Read"),
                   r.error("c2", "<tool_use_error>no file</tool_use_error>")});
  CHECK(feed.fields("tool.finished", {"outcome", "output"}) ==
        Lines{"error Exit code 1\nno", "error <tool_use_error>no file</tool_use_error>"});
}

TEST_CASE("each kind of denial is denied") {
  for (const char* kind : {"user-rejected", "permission-rule", "automode-blocked", "automode-unavailable"}) {
    CHECK(outcome_of("whatever", R"("toolDenialKind":")" + std::string(kind) + '"') == "denied");
  }
}

TEST_CASE("the denial kind interrupted is an interruption") {
  CHECK(outcome_of("whatever", R"("toolDenialKind":"interrupted")") == "interrupted");
}

TEST_CASE("the denial kind has precedence over texts and flags") {
  CHECK(outcome_of("[Request interrupted by user for tool use]", R"("toolDenialKind":"permission-rule")") ==
        "denied");
  CHECK(outcome_of("x", R"("toolDenialKind":"permission-rule","toolUseResult":{"interrupted":true})") ==
        "denied");
  CHECK(outcome_of("Permission to use Bash has been denied", R"("toolDenialKind":"interrupted")") ==
        "interrupted");
}

TEST_CASE("interruption texts and the flag are interruptions") {
  CHECK(outcome_of("[Request interrupted by user for tool use]") == "interrupted");
  CHECK(outcome_of("[Tool call interrupted: the session ended before the tool returned]") == "interrupted");
  CHECK(outcome_of("x", R"("toolUseResult":{"interrupted":true})") == "interrupted");
  CHECK(outcome_of("Permission to use Bash has been denied", R"("toolUseResult":{"interrupted":true})") ==
        "interrupted");
}

TEST_CASE("the flag interrupts a result that is no error") {
  Records r;
  CHECK(Feed({r.user("go"), r.call("c1", "Bash"),
              r.result("c1", "half", R"("toolUseResult":{"interrupted":true,"stdout":"half"})")})
            .fields("tool.finished", {"outcome"}) == Lines{"interrupted"});
}

TEST_CASE("each text of a denial is denied") {
  CHECK(outcome_of("The user doesn't want to proceed with this tool use. The tool use was rejected") ==
        "denied");
  CHECK(outcome_of("The user doesn't want to take this action right now. STOP") == "denied");
  CHECK(outcome_of("Permission to use Bash with command ls has been denied.") == "denied");
  CHECK(outcome_of("Permission for this action was denied by the classifier") == "denied");
  CHECK(outcome_of("Claude requested permissions to write to /x, but you haven't granted it yet.") ==
        "denied");
}

TEST_CASE("texts refine only a result with is_error") {
  for (const char* text :
       {"[Request interrupted by user for tool use]", "The user doesn't want to proceed with this tool use.",
        "Permission to use Bash has been denied", "Claude requested permissions to write"}) {
    Records r;
    CHECK(Feed({r.user("go"), r.call("c1", "Bash"), r.result("c1", text)})
              .fields("tool.finished", {"outcome"}) == Lines{"ok"});
  }
}

TEST_CASE("a text that only mentions a denial is an error") {
  CHECK(outcome_of("Exit code 1\nPermission denied") == "error");
  CHECK(outcome_of("grep: The user doesn't want to proceed with this tool use") == "error");
  CHECK(outcome_of("Permission to use the port is missing") == "error");
}

TEST_CASE("rejecting a running call is an interruption if the stream has turn positions") {
  const char* position = R"("turnPosition":{"promptIndex":0,"turnIndex":1})";
  CHECK(outcome_of("x", R"("toolDenialKind":"user-rejected")", position) == "interrupted");
  CHECK(
      outcome_of(
          "x",
          R"("toolDenialKind":"user-rejected","permissionDecision":{"decision":"accept","source":"config"})",
          position) == "interrupted");
  CHECK(outcome_of("x", R"("toolDenialKind":"user-rejected","toolDenialBeforeRun":true)", position) ==
        "denied");
  CHECK(outcome_of(
            "x",
            R"("toolDenialKind":"user-rejected","permissionDecision":{"decision":"reject","source":"user"})",
            position) == "denied");
  CHECK(outcome_of("x", R"("toolDenialKind":"permission-rule")", position) == "denied");
}

// ---- abandoned

TEST_CASE("an open call is abandoned when the next turn starts") {
  Records r;
  const Feed feed({r.user("one"), r.call("c1", "Bash"), r.user("two")});
  CHECK(feed.fields("tool.finished", {"turn", "call", "tool", "outcome", "output"}) ==
        Lines{"1 c1 Bash abandoned -"});
}

TEST_CASE("a result of an abandoned call is counted without an event") {
  Records r;
  const Feed feed({r.user("one"), r.call("c1", "Bash"), r.user("two"), r.result("c1", "late")});
  CHECK(feed.count("tool.finished") == 1);
  CHECK(feed.counts().late_results == 1);
}

TEST_CASE("an open call of an inline sidechain is abandoned as well, as its agent's") {
  Records r;
  const Feed feed({r.user("one"), r.user("do", R"("isSidechain":true,"parentUuid":null)"),
                   r.call("s1", "Bash", "{}", R"("isSidechain":true,"parentUuid":"u2")"), r.user("two")});
  CHECK(feed.fields("tool.finished", {"agent", "call", "outcome"}) == Lines{"u2 s1 abandoned"});
}

TEST_CASE("a full compaction abandons open calls before its event, a micro one does not") {
  Records r;
  const Feed full({r.user("one"), r.call("c1", "Bash"),
                   r.system("compact_boundary", R"("compactMetadata":{"trigger":"auto","preTokens":5})")});
  CHECK(full.summary() == Lines{"turn.started 1 human one", "tool.invoked 1 c1 Bash",
                                "tool.finished 1 c1 abandoned", "compaction.finished 1 auto full"});
  Records m;
  const Feed micro(
      {m.user("one"), m.call("c1", "Bash"),
       m.system("microcompact_boundary", R"("microcompactMetadata":{"trigger":"auto","preTokens":5})"),
       m.result("c1", "ok")});
  CHECK(micro.fields("tool.finished", {"outcome"}) == Lines{"ok"});
}

TEST_CASE("a call launched in the background is finished with its task, and never abandoned") {
  Records r;
  const Feed feed(
      {r.user("one"), r.call("c1", "Bash"),
       r.result("c1", "running",
                R"("toolUseResult":{"stdout":"","stderr":"","interrupted":false,"backgroundTaskId":"b1"})"),
       r.user("two")});
  CHECK(feed.fields("tool.finished", {"call", "outcome", "background"}) == Lines{"c1 ok b1"});
}

TEST_CASE("a call in the foreground has no background field") {
  Records r;
  CHECK(Feed({r.user("one"), r.call("c1", "Bash"), r.result("c1", "ok")})
            .fields("tool.finished", {"background"}) == Lines{"-"});
}

// ---- output

TEST_CASE("the output is the result's text, of a string or of its text blocks") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Bash"), r.result("c1", "plain"), r.call("c2", "Bash"),
       r.user_blocks(
           R"([{"type":"tool_result","tool_use_id":"c2","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}])")});
  const Lines outputs = feed.fields("tool.finished", {"output"});
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0] == "plain");
  CHECK(outputs[1].starts_with("one"));
  CHECK(outputs[1].ends_with("two"));
}

TEST_CASE("images in a result are listed by kind and size") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Read"),
       r.user_blocks(
           R"([{"type":"tool_result","tool_use_id":"c1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJDRA=="}}]}])")});
  CHECK(feed.fields("tool.finished", {"outcome", "media"}) ==
        Lines{R"(ok [{"kind":"image","media_type":"image/png","bytes":4}])"});
  CHECK(feed.events().back().find("QUJDRA") == std::string::npos);
}

TEST_CASE("a result without content, or with unexpected content, is a result") {
  for (const char* content : {"", R"(,"content":null)", R"(,"content":[])", R"(,"content":7)",
                              R"(,"content":{"a":1})", R"(,"content":[1,"x",null])"}) {
    Records r;
    const Feed feed(
        {r.user("go"), r.call("c1", "Bash"),
         r.user_blocks(R"([{"type":"tool_result","tool_use_id":"c1")" + std::string(content) + "}]")});
    CHECK(feed.fields("tool.finished", {"call", "outcome"}) == Lines{"c1 ok"});
  }
}

TEST_CASE("the outcome does not depend on the form of toolUseResult") {
  for (const char* form : {R"("Error: text")", R"([{"type":"text","text":"x"}])", "{}", "null", "7"}) {
    Records r;
    const Feed feed({r.user("go"), r.call("c1", "Bash"),
                     r.error("c1", "no", R"("toolUseResult":)" + std::string(form)), r.call("c2", "Bash"),
                     r.result("c2", "yes", R"("toolUseResult":)" + std::string(form))});
    CHECK(feed.fields("tool.finished", {"outcome"}) == Lines{"error", "ok"});
  }
}

TEST_CASE("a tool of any name is emitted, escaped") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Task\" >\n<parameter")});
  CHECK(feed.fields("tool.invoked", {"tool"}) == Lines{"Task\" >\n<parameter"});
}

TEST_CASE("input of any form is emitted unchanged") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "X", R"({"z":1,"a":[true,null,{"k":"v"}],"e":"\u00fc"})"),
                   r.call("c2", "X", "[]"), r.call("c3", "X", "\"s\"")});
  CHECK(feed.fields("tool.invoked", {"input"}) ==
        Lines{"{\"z\":1,\"a\":[true,null,{\"k\":\"v\"}],\"e\":\"\xC3\xBC\"}", "[]", "s"});
}

TEST_CASE("the blocks of one assistant record keep their order") {
  Records r;
  const Feed feed(
      {r.user("go"),
       r.assistant(
           R"({"type":"thinking","thinking":"hm"},{"type":"text","text":"so"},{"type":"tool_use","id":"c1","name":"A","input":{}},)"
           R"({"type":"text","text":"and"},{"type":"tool_use","id":"c2","name":"B","input":{}})")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "message.added 1 assistant thinking hm",
                                "message.added 1 assistant text so", "tool.invoked 1 c1 A",
                                "message.added 1 assistant text and", "tool.invoked 1 c2 B"});
}

TEST_CASE("calls and texts name their message") {
  Records r;
  const Feed feed({r.user("go"), r.text("a"), r.call("c1", "A")});
  CHECK(feed.fields("message.added", {"message"}) == Lines{"m2"});
  CHECK(feed.fields("tool.invoked", {"message"}) == Lines{"m3"});
}

}  // namespace
}  // namespace earshot::test
