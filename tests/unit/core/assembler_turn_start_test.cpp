// The start of a turn and its origin.
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

TEST_CASE("a prompt starts a turn, and turns are numbered from 1") {
  Records r;
  const Feed feed({r.user("one"), r.user("two"), r.user_blocks(R"([{"type":"text","text":"three"}])")});
  CHECK(feed.fields("turn.started", {"turn", "prompt", "origin"}) ==
        Lines{"1 one human", "2 two human", "3 three human"});
  CHECK(feed.state().turn == 3);
  CHECK(feed.state().turn_open);
  CHECK(feed.state().turn_prompt == "three");
}

TEST_CASE("before the first turn events are of turn 0") {
  Records r;
  CHECK(Feed({r.queue("enqueue", "hi"), r.user("hi")}).fields("queue.changed", {"turn"}) == Lines{"0"});
}

TEST_CASE("a prompt of several text blocks is one prompt") {
  Records r;
  const Feed feed({r.user_blocks(R"([{"type":"text","text":"one"},{"type":"text","text":"two"}])")});
  REQUIRE(feed.count("turn.started") == 1);
  const std::string prompt = feed.fields("turn.started", {"prompt"}).front();
  CHECK(prompt.starts_with("one"));
  CHECK(prompt.ends_with("two"));
  CHECK(feed.count("message.added") == 0);
}

TEST_CASE("only the images and documents of a prompt are messages") {
  Records r;
  const Feed feed({r.user_blocks(
      R"([{"type":"text","text":"look"},)"
      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJDRA=="}},)"
      R"({"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}])")});
  CHECK(feed.summary() ==
        Lines{"turn.started 1 human look", "message.added 1 user image", "message.added 1 user document"});
  CHECK(feed.fields("message.added", {"media"}) ==
        Lines{R"({"kind":"image","media_type":"image/png","bytes":4})",
              R"({"kind":"document","media_type":"application/pdf","bytes":3})"});
}

TEST_CASE("an image alone is a prompt too") {
  Records r;
  const Feed feed({r.user_blocks(
      R"([{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"QUJD"}}])")});
  CHECK(feed.count("turn.started") == 1);
  CHECK(feed.fields("message.added", {"kind"}) == Lines{"image"});
}

TEST_CASE("a queued prompt has that origin, a merely enqueued one does not") {
  Records r;
  const Feed feed({r.queue("enqueue", "one"), r.queue("dequeue"), r.user("one", R"("promptSource":"sdk")"),
                   r.user("two", R"("promptSource":"queued")"),
                   r.user("three", R"("promptSource":"typed")")});
  CHECK(feed.fields("turn.started", {"origin"}) == Lines{"human", "queued", "human"});
}

TEST_CASE("the start of a turn gives its images after it and ends the turn before it first") {
  Records r;
  const Feed feed({r.user("one"), r.call("c1", "Bash"), r.call("c2", "Read"), r.user("two")});
  CHECK(feed.summary() == Lines{"turn.started 1 human one", "tool.invoked 1 c1 Bash",
                                "tool.invoked 1 c2 Read", "tool.finished 1 c1 abandoned",
                                "tool.finished 1 c2 abandoned", "turn.finished 1 superseded",
                                "turn.started 2 human two"});
}

// ---- texts that are not prompts

TEST_CASE("injected text is not a prompt") {
  Records r;
  CHECK(Feed({r.user("Base directory for this skill: /x", R"("isMeta":true)")}).count("turn.started") == 0);
}

TEST_CASE("isMeta that is false or null is a prompt") {
  Records r;
  CHECK(Feed({r.user("a", R"("isMeta":false)"), r.user("b", R"("isMeta":null)")}).count("turn.started") == 2);
}

TEST_CASE("text that the program writes in the user's name is not a prompt") {
  Records r;
  for (const char* text :
       {"<command-name>/clear</command-name>\\n<command-message>clear</command-message>",
        "<command-message>clear</command-message>", "<local-command-stdout>done</local-command-stdout>",
        "<local-command-stderr>bad</local-command-stderr>",
        "<local-command-caveat>Caveat: local</local-command-caveat>", "Caveat: The messages below were local",
        "<bash-input>ls</bash-input>", "<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>",
        "<system-reminder>be brief</system-reminder>"}) {
    INFO(text);
    const std::string block = R"([{"type":"text","text":")" + std::string(text) + "\"}]";
    CHECK(Feed({r.user_blocks('"' + std::string(text) + '"'), r.user_blocks(block)}).count("turn.started") ==
          0);
  }
}

TEST_CASE("a tag that begins a prompt of a person is a prompt") {
  Records r;
  CHECK(Feed({r.user("<div> is not centred"), r.user("<objective>do</objective>")}).count("turn.started") ==
        2);
}

TEST_CASE("fault 132: a prompt about a tag of the program is the user's words") {
  for (const char* text :
       {"<system-reminder> is a tag; what does it do?", "Why does <system-reminder> appear? Please explain.",
        "<bash-input> and <bash-stdout>: where are they read?", "<command-name> is missing",
        "<task-notification> never arrives", "<teammate-message is not shown"}) {
    INFO(text);
    Records r;
    CHECK(Feed({r.user(text)}).fields("turn.started", {"prompt", "origin"}) ==
          Lines{std::string(text) + " human"});
  }
}

TEST_CASE("a reminder inlined into a prompt is stripped and the prompt kept") {
  Records r;
  const Feed feed(
      {r.user("mend it\n<system-reminder>be brief</system-reminder>"),
       r.user_blocks(
           R"([{"type":"text","text":"<system-reminder>be brief</system-reminder>"},{"type":"text","text":"and now this"}])")});
  CHECK(feed.fields("turn.started", {"prompt", "origin"}) == Lines{"mend it human", "and now this human"});
}

TEST_CASE("text from an editor is removed: the prompt is the next block") {
  Records r;
  const Feed feed(
      {r.user_blocks(
           R"([{"type":"text","text":"<ide_opened_file>The user opened a.txt</ide_opened_file>"},{"type":"text","text":"mend it"}])"),
       r.user_blocks(
           R"([{"type":"text","text":"<ide_selection>lines 1 to 3</ide_selection>"},{"type":"text","text":"and this"}])")});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"mend it", "and this"});
}

// ---- slash commands

const char* command =
    "<command-name>/review</command-name>\n<command-message>review</command-message>\n<command-args>the "
    "diff</command-args>";

TEST_CASE("a slash command that expands starts a turn, as typed") {
  Records r;
  const std::string typed = r.user(command);
  const Feed feed({typed, r.user("Long instructions", R"("isMeta":true,"parentUuid":"u1")")});
  CHECK(feed.fields("turn.started", {"turn", "origin", "prompt"}) == Lines{"1 command /review the diff"});
}

TEST_CASE("the command's tags come in either order, and without arguments nothing follows the name") {
  Records r;
  const Feed feed(
      {r.user("<command-message>init is at work</command-message>\n<command-name>/init</command-name>"),
       r.user("Instructions", R"("isMeta":true,"parentUuid":"u1")"),
       r.user("<command-name>/init</command-name>\n<command-message>init</command-message>\n<command-args></"
              "command-args>"),
       r.user("Instructions", R"("isMeta":true,"parentUuid":"u3")")});
  CHECK(feed.fields("turn.started", {"origin", "prompt"}) == Lines{"command /init", "command /init"});
}

TEST_CASE("a local command starts nothing") {
  Records r;
  const Feed feed({r.user("Caveat: local", R"("isMeta":true)"), r.user(command, child_of("u1")),
                   r.user("<local-command-stdout>done</local-command-stdout>", child_of("u2"))});
  CHECK(feed.count("turn.started") == 0);
}

TEST_CASE("an injected record with another parent than a command starts no turn") {
  Records r;
  const Feed feed({r.user(command), r.user("<local-command-stdout>x</local-command-stdout>", child_of("u1")),
                   r.user("other", R"("isMeta":true,"parentUuid":"u2")"),
                   r.user("other", R"("isMeta":true)")});
  CHECK(feed.count("turn.started") == 0);
}

TEST_CASE("a command ends the turn before it") {
  Records r;
  const Feed feed(
      {r.user("go"), r.text("done"), r.user(command), r.user("Long", R"("isMeta":true,"parentUuid":"u3")")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "message.added 1 assistant text done",
                                "turn.finished 1 completed inferred",
                                "turn.started 2 command /review the diff"});
}

// ---- notifications and other injected prompts

TEST_CASE("a notification in a user record starts a turn after its own event") {
  Records r;
  const Feed feed({r.user("go"), r.text("done"), r.notification("b1", "completed")});
  const Lines story = feed.summary();
  REQUIRE(story.size() == 5);
  CHECK(story[2] == "task.finished 1 b1 completed");
  CHECK(story[3] == "turn.finished 1 completed inferred");
  CHECK(story[4].starts_with("turn.started 2 task"));
}

TEST_CASE("teammates, scheduled tasks and CI events start turns") {
  Records r;
  const Feed feed({r.user("<teammate-message teammate_id=\"lea\">come</teammate-message>"),
                   r.user("<scheduled-task name=\"sweep\" file=\"/x\">\nsweep</scheduled-task>"),
                   r.user("<ci-monitor-event>red</ci-monitor-event>")});
  CHECK(feed.fields("turn.started", {"origin"}) == Lines{"agent", "task", "task"});
}

TEST_CASE("a record with a task as its origin is a notification") {
  Records r;
  CHECK(Feed({r.user(Records::notice("b1", "completed"), R"("origin":{"kind":"task-notification"})")})
            .fields("turn.started", {"origin"}) == Lines{"task"});
}

TEST_CASE("a notification while a turn runs starts nothing as an attachment") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"),
                   r.attachment(R"({"type":"queued_command","commandMode":"task-notification","prompt":)" +
                                as_json(Records::notice("b1", "completed")) + "}")});
  CHECK(feed.count("turn.started") == 1);
  CHECK(feed.fields("task.finished", {"task"}) == Lines{"b1"});
  CHECK(feed.count("message.added") == 0);
}

TEST_CASE("a scheduled wake-up starts a turn without a prompt, and its injected child is a message") {
  Records r;
  const Feed feed({r.user("go"), r.text("done", "\"end_turn\""),
                   r.system("scheduled_task_fire", R"("content":"resuming")"),
                   r.user("look again", R"("isMeta":true,"parentUuid":"u3")")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "message.added 1 assistant text done",
                                "turn.finished 1 completed end_turn", "turn.started 2 task",
                                "message.added 2 user text look again"});
}

// ---- work outside a turn

TEST_CASE("work without a prompt is a turn of unknown origin") {
  Records r;
  const Feed feed({r.text("hello")});
  CHECK(feed.summary() == Lines{"turn.started 1 unknown", "message.added 1 assistant text hello"});
  CHECK(feed.fields("turn.started", {"prompt"}) == Lines{"-"});
}

TEST_CASE("after a stop hook's feedback work is a turn of the hook") {
  Records r;
  const Feed feed({r.user("go"), r.text("done", "\"end_turn\""),
                   r.user("Stop hook feedback:\nnot yet", R"("isMeta":true)"),
                   r.system("stop_hook_summary", R"("hookErrors":["not yet"],"preventedContinuation":false)"),
                   r.text("now", "\"end_turn\"")});
  CHECK(feed.fields("turn.started", {"turn", "origin"}) == Lines{"1 human", "2 hook"});
  CHECK(feed.count("turn.finished") == 2);
}

TEST_CASE("a hook's feedback counts for the next turn only") {
  Records r;
  const Feed feed({r.user("go"), r.text("done", "\"end_turn\""),
                   r.user("Stop hook feedback:\nnot yet", R"("isMeta":true)"), r.text("now", "\"end_turn\""),
                   r.text("by itself")});
  CHECK(feed.fields("turn.started", {"origin"}) == Lines{"human", "hook", "unknown"});
}

TEST_CASE("an automatic continuation after max_tokens is a new turn") {
  Records r;
  const Feed feed({r.user("go"), r.text("half", "\"max_tokens\""), r.text("the other half", "\"end_turn\"")});
  CHECK(feed.fields("turn.started", {"turn", "origin"}) == Lines{"1 human", "2 unknown"});
}

TEST_CASE("synthetic records start no turn") {
  Records r;
  const Feed feed(
      {r.record(
           "assistant", "",
           R"("message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]})"),
       r.record(
           "assistant", "",
           R"("isApiErrorMessage":true,"message":{"id":"y","model":"<synthetic>","content":[{"type":"text","text":"API Error: 500"}]})")});
  CHECK(feed.count("turn.started") == 0);
  CHECK(feed.count("turn.finished") == 0);
}

// ---- absorbed prompts

TEST_CASE("a prompt absorbed into a running turn is a message") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Bash"),
       r.attachment(R"({"type":"queued_command","commandMode":"prompt","prompt":"and quickly"})")});
  CHECK(feed.fields("message.added", {"turn", "role", "text"}) == Lines{"1 user and quickly"});
  CHECK(feed.count("turn.started") == 1);
}

TEST_CASE("text in a record with a tool result is a message after the result, in either order") {
  for (
      const char* blocks :
      {R"([{"type":"tool_result","tool_use_id":"c1","content":"ok"},{"type":"text","text":"and quickly"}])",
       R"([{"type":"text","text":"and quickly"},{"type":"tool_result","tool_use_id":"c1","content":"ok"}])"}) {
    Records r;
    const Feed feed({r.user("go"), r.call("c1", "Bash"), r.user_blocks(blocks)});
    CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 Bash",
                                  "tool.finished 1 c1 ok", "message.added 1 user text and quickly"});
  }
}

// ---- chains

TEST_CASE("an inline sidechain has no turns: its prompt is a message of its agent in the main turn") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Task"),
                   r.user("do this", R"("isSidechain":true,"parentUuid":null)"),
                   r.text("did it", "\"end_turn\"", R"("isSidechain":true,"parentUuid":"u3")")});
  CHECK(feed.fields("message.added", {"turn", "agent", "role", "text"}) ==
        Lines{"1 u3 user do this", "1 u3 assistant did it"});
  CHECK(feed.count("turn.started") == 1);
  CHECK(feed.count("turn.finished") == 0);
}

TEST_CASE("a sidechain's root is its first record with a parent that is null, unknown or outside") {
  for (const char* parent : {"null", "\"nobody\"", "\"u1\""}) {
    Records r;
    const Feed feed({r.user("go"),
                     r.user("root", R"("isSidechain":true,"parentUuid":)" + std::string(parent)),
                     r.text("child", "null", R"("isSidechain":true,"parentUuid":"u2")"),
                     r.text("grandchild", "null", R"("isSidechain":true,"parentUuid":"u3")")});
    CHECK(feed.fields("message.added", {"agent", "text"}) == Lines{"u2 root", "u2 child", "u2 grandchild"});
  }
}

TEST_CASE("two sidechains are kept apart, though their lines interleave") {
  Records r;
  const Feed feed({r.user("go"), r.user("A", R"("isSidechain":true,"parentUuid":null)"),
                   r.user("B", R"("isSidechain":true,"parentUuid":null)"),
                   r.text("a1", "null", R"("isSidechain":true,"parentUuid":"u2")"),
                   r.text("b1", "null", R"("isSidechain":true,"parentUuid":"u3")"),
                   r.text("a2", "null", R"("isSidechain":true,"parentUuid":"u4")")});
  CHECK(feed.fields("message.added", {"agent", "text"}) == Lines{"u2 A", "u3 B", "u2 a1", "u3 b1", "u2 a2"});
}

TEST_CASE("without parentUuid a record belongs to the sidechain seen last") {
  Records r;
  const Feed feed({r.user("go"), r.user("A", R"("isSidechain":true,"parentUuid":null)"),
                   r.user("B", R"("isSidechain":true,"parentUuid":null)"),
                   r.text("a1", "null", R"("isSidechain":true,"parentUuid":"u2")"),
                   r.text("of A", "null", R"("isSidechain":true)")});
  CHECK(feed.fields("message.added", {"agent", "text"}).back() == "u2 of A");
}

TEST_CASE("in an agent's own file its chain has the turns, and every event names the agent") {
  Records r;
  TranscriptOptions options;
  options.own_agent = "abc";
  const Feed feed(
      {r.user("do this", R"("isSidechain":true,"agentId":"abc","parentUuid":null)"),
       r.text("did it", "\"end_turn\"", R"("isSidechain":true,"agentId":"abc","parentUuid":"u1")")},
      options);
  CHECK(feed.summary() == Lines{"turn.started 1@abc agent do this",
                                "message.added 1@abc assistant text did it",
                                "turn.finished 1@abc completed end_turn"});
  CHECK(feed.fields("session.started", {"agent"}) == Lines{"abc"});
}

TEST_CASE("an agent that only warms up is dropped from that record on") {
  Records r;
  TranscriptOptions options;
  options.own_agent = "abc";
  const Feed feed({r.user("Warmup", R"("isSidechain":true,"agentId":"abc","parentUuid":null)"),
                   r.text("Ready", "\"end_turn\"", R"("isSidechain":true,"agentId":"abc")"),
                   r.user("do", R"("isSidechain":true,"agentId":"abc")")},
                  options);
  CHECK(feed.state().warmup);
  CHECK(feed.count("turn.started") == 0);
  CHECK(feed.count("message.added") == 0);
}

TEST_CASE("Warmup that is not the first word of an agent is text") {
  Records r;
  TranscriptOptions options;
  options.own_agent = "abc";
  const Feed feed({r.user("do", R"("isSidechain":true)"), r.user("Warmup", R"("isSidechain":true)")},
                  options);
  CHECK(feed.count("turn.started") == 2);
  CHECK_FALSE(feed.state().warmup);
}

TEST_CASE("a typed prompt \"Warmup\" is a prompt") {
  Records r;
  CHECK(Feed({r.user("Warmup")}).summary() == Lines{"turn.started 1 human Warmup"});
}

TEST_CASE("an inline sidechain that only warms up is dropped, the others are not") {
  Records r;
  const Feed feed({r.user("go"), r.user("Warmup", R"("isSidechain":true,"parentUuid":null)"),
                   r.text("Ready", "null", R"("isSidechain":true,"parentUuid":"u2")"),
                   r.user("do", R"("isSidechain":true,"parentUuid":null)"),
                   r.text("did", "null", R"("isSidechain":true,"parentUuid":"u4")")});
  CHECK(feed.fields("message.added", {"agent", "text"}) == Lines{"u4 do", "u4 did"});
}

}  // namespace
}  // namespace earshot::test
