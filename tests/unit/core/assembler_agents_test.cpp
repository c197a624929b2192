// Subagents and background tasks.
#include <algorithm>
#include <catch2/catch.hpp>

#include "unit/support/feed.hpp"
#include "unit/support/records.hpp"

namespace earshot::test {
namespace {

const char* input = R"({"description":"Look around","prompt":"look","subagent_type":"scout"})";

std::string launched(std::string_view agent) {
  return R"("toolUseResult":{"isAsync":true,"status":"async_launched","agentId":")" + std::string(agent) +
         R"(","description":"Look around","outputFile":"/tmp/x"})";
}

TEST_CASE("a call of Task or Agent starts an agent, right after the call") {
  for (const char* tool : {"Task", "Agent"}) {
    Records r;
    const Feed feed(
        {r.user("go"),
         r.assistant(R"({"type":"tool_use","id":"c1","name":")" + std::string(tool) + R"(","input":)" +
                     input + R"(},{"type":"tool_use","id":"c2","name":"Bash","input":{}})")});
    CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 " + std::string(tool),
                                  "agent.started 1 c1", "tool.invoked 1 c2 Bash"});
    CHECK(feed.fields("agent.started", {"agent_type", "description", "call", "subagent"}) ==
          Lines{"scout Look around c1 -"});
    REQUIRE(feed.state().agents.size() == 1);
    CHECK(feed.state().agents[0].call == "c1");
    CHECK(feed.state().agents[0].agent_type == "scout");
  }
}

TEST_CASE("other tools start no agent") {
  Records r;
  CHECK(Feed({r.user("go"), r.call("c1", "TaskCreate", R"({"subject":"x"})"), r.call("c2", "Bash")})
            .count("agent.started") == 0);
}

TEST_CASE("its result finishes the agent, directly after the call") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Agent", input),
       r.result(
           "c1", "seen",
           R"("toolUseResult":{"status":"completed","agentId":"a77","totalDurationMs":1500,"totalTokens":900,"totalToolUseCount":4})")});
  CHECK(feed.summary() == Lines{"turn.started 1 human go", "tool.invoked 1 c1 Agent", "agent.started 1 c1",
                                "tool.finished 1 c1 ok", "agent.finished 1 c1 a77 completed"});
  CHECK(feed.fields("agent.finished", {"agent_type", "description", "duration_ms", "tokens", "tools"}) ==
        Lines{"scout Look around 1500 900 4"});
  CHECK(feed.state().agents.empty());
}

TEST_CASE("a finished call that is not a launch finishes the agent with its outcome") {
  const auto outcome = [](std::string_view text, std::string_view extra) {
    Records r;
    return Feed({r.user("go"), r.call("c1", "Agent", input), r.error("c1", text, extra)})
        .fields("agent.finished", {"outcome"});
  };
  CHECK(outcome("no such agent", "") == Lines{"failed"});
  CHECK(outcome("x", R"("toolDenialKind":"user-rejected")") == Lines{"denied"});
  CHECK(outcome("[Request interrupted by user for tool use]", "") == Lines{"interrupted"});
  Records r;
  const Feed abandoned({r.user("go"), r.call("c1", "Agent", input), r.user("next")});
  CHECK(abandoned.fields("agent.finished", {"outcome"}) == Lines{"abandoned"});
  CHECK(abandoned.summary()[3] == "tool.finished 1 c1 abandoned");
  CHECK(abandoned.summary()[4] == "agent.finished 1 c1 abandoned");
  Records s;
  CHECK(Feed({s.user("go"), s.call("c1", "Agent", input), s.interruption()})
            .fields("agent.finished", {"outcome"}) == Lines{"interrupted"});
}

TEST_CASE("fault 113: what the program counts as running in the background, until it reports") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "x", launched("a1")),
             r.call("c2", "Agent", input), r.result("c2", "x", launched("a2")),
             r.text("later", "\"end_turn\""),
             r.system("turn_duration",
                      R"("durationMs":5,"pendingBackgroundAgentCount":2,"pendingWorkflowCount":1)")});
  const auto counted = [&] { return std::pair(feed.state().pending.agents, feed.state().pending.workflows); };
  CHECK(counted() == std::pair<std::uint64_t, std::uint64_t>(2, 1));
  feed.write(r.queue("enqueue", Records::notice("a1", "completed")));
  CHECK(counted() == std::pair<std::uint64_t, std::uint64_t>(1, 1));
  feed.write(r.system("turn_duration", R"("durationMs":5,"pendingBackgroundAgentCount":3)"));
  CHECK(counted() == std::pair<std::uint64_t, std::uint64_t>(3, 0));
  feed.write(r.system("turn_duration", R"("durationMs":5)"));
  CHECK(counted() == std::pair<std::uint64_t, std::uint64_t>(0, 0));
}

TEST_CASE("an interrupted turn counts nothing: agents that have reported do not stay counted") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "x", launched("a1")),
             r.text("later", "\"end_turn\""), r.queue("enqueue", Records::notice("a1", "killed")),
             r.system("turn_duration", R"("durationMs":5,"pendingBackgroundAgentCount":1)"),
             r.notification("a1", "killed")});
  CHECK(feed.state().pending.agents == 1);
  feed.write(r.interruption());
  CHECK(feed.state().pending.agents == 0);
}

TEST_CASE("fault 122: the user stops all background agents") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "x", launched("a1")),
             r.call("c2", "Agent", input), r.result("c2", "x", launched("a2")),
             r.system("turn_duration", R"("durationMs":5,"pendingBackgroundAgentCount":2)"),
             r.system("agents_killed")});
  CHECK(feed.fields("agent.finished", {"subagent", "outcome"}) == Lines{"a1 stopped", "a2 stopped"});
  CHECK(feed.state().agents.empty());
  CHECK_FALSE(feed.state().pending.any());
  feed.write(r.queue("enqueue", Records::notice("a1", "killed")));
  CHECK(feed.count("agent.finished") == 2);
}

TEST_CASE("fault 122: an agent that is addressed again works until it reports again") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "x", launched("a1")),
             r.notification("a1", "completed"), r.call("c2", "SendMessage"),
             r.result("c2", "ok", R"("toolUseResult":{"success":true,"resumedAgentId":"a1"})")});
  REQUIRE(feed.state().agents.size() == 1);
  CHECK(feed.state().agents.front().subagent == "a1");
  CHECK(feed.state().agents.front().background);
  feed.write(r.notification("a1", "completed"));
  CHECK(feed.state().agents.empty());
  CHECK(feed.count("agent.started") == 1);
  CHECK(feed.count("agent.finished") == 1);
  CHECK(feed.count("task.finished") == 2);
}

TEST_CASE("fault 122: a command that is stopped is told once") {
  const auto tasks = [](std::string_view tool, std::string_view use) {
    Records r;
    return Feed({r.user("go"), r.call("c1", "Bash", R"({"command":"make soak"})"),
                 r.result("c1", "x", R"("toolUseResult":{"backgroundTaskId":"b1"})"), r.call("c2", tool),
                 r.result("c2", "ok", R"("toolUseResult":)" + std::string(use)),
                 r.queue("enqueue", Records::notice("b1", "killed")), r.notification("b1", "killed")});
  };
  const Feed stopped = tasks("TaskStop", R"({"task_id":"b1"})"),
             killed = tasks("KillShell", R"({"shell_id":"b1"})");
  for (const Feed* feed : {&stopped, &killed}) {
    CHECK(feed->fields("task.finished", {"task", "outcome"}) == Lines{"b1 killed"});
    CHECK(feed->state().tasks.empty());
  }
}

TEST_CASE(
    "a monitor is a task until it reports its end, and schedules are kept until the next of their kind") {
  Records r;
  Feed feed({r.user("go"), r.call("c1", "Monitor", R"({"description":"Watch ticks","command":"tick"})"),
             r.result("c1", "x", R"("toolUseResult":{"taskId":"b1","timeoutMs":30000,"persistent":false})"),
             r.call("c2", "ScheduleWakeup"),
             r.result("c2", "x", R"("toolUseResult":{"scheduledFor":1795866840000,"wasClamped":false})"),
             r.call("c3", "ScheduleWakeup"),
             r.result("c3", "x", R"("toolUseResult":{"scheduledFor":1795866900000,"wasClamped":true})"),
             r.call("c4", "CronCreate"),
             r.result("c4", "x", R"("toolUseResult":{"id":"460e","nextFireAt":1795866840000})")});
  REQUIRE(feed.state().tasks.size() == 1);
  CHECK(feed.state().tasks.front().made_by.tool == "Monitor");
  REQUIRE(feed.state().schedules.size() == 2);
  CHECK(feed.state().schedules[0].due_ms == 1795866900000);
  CHECK(feed.state().schedules[1].id == "460e");
  feed.write(r.queue(
      "enqueue", "<task-notification>\n<task-id>b1</task-id>\n<event>tick 1</event>\n</task-notification>"));
  CHECK(feed.state().tasks.size() == 1);
  CHECK(feed.state().expects_turn);
  feed.write(r.queue("dequeue"));
  CHECK(feed.state().expects_turn);  // it begins now
  feed.write(r.queue("remove"));
  CHECK_FALSE(feed.state().expects_turn);
  feed.write(r.queue("enqueue", Records::notice("b1", "completed")));
  CHECK(feed.state().tasks.empty());
  feed.write(r.user("next"));
  CHECK_FALSE(feed.state().expects_turn);
}

TEST_CASE("a background command is kept with the call that began it") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash", R"({"command":"make soak"})"),
                   r.result("c1", "x", R"("toolUseResult":{"backgroundTaskId":"b1"})")});
  REQUIRE(feed.state().tasks.size() == 1);
  CHECK(feed.state().tasks.front().made_by.tool == "Bash");
  CHECK(feed.state().tasks.front().made_by.input == R"({"command":"make soak"})");
}

TEST_CASE("an agent is finished once") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Agent", input),
                   r.result("c1", "x", R"("toolUseResult":{"status":"completed","agentId":"a77"})"),
                   r.notification("a77", "completed"), r.user("next")});
  CHECK(feed.count("agent.finished") == 1);
}

TEST_CASE("a progress record names the agent") {
  Records r;
  const std::string copy = R"({"type":"user","message":{"role":"user","content":"look"},"uuid":"copy-1"})";
  const Feed feed(
      {r.user("go"), r.call("c1", "Task", input), r.progress("c1", "a77", copy), r.result("c1", "seen")});
  CHECK(feed.fields("agent.finished", {"subagent"}) == Lines{"a77"});
  CHECK(feed.count("agent.started") == 1);
  CHECK(feed.count("message.added") == 0);
}

TEST_CASE("the copies of the agent's lines inside a progress record are not read") {
  Records r;
  const std::string copy =
      R"({"type":"assistant","uuid":"x","message":{"id":"mm","content":[{"type":"tool_use","id":"inner","name":"Bash","input":{}}],"usage":{"output_tokens":9}}})";
  const Feed feed({r.user("go"), r.call("c1", "Task", input), r.progress("c1", "a", copy)});
  CHECK(feed.fields("tool.invoked", {"call"}) == Lines{"c1"});
  CHECK(feed.count("usage.updated") == 0);
}

TEST_CASE("an agent whose call follows its result is started, then finished") {
  Records r;
  const Feed feed({r.user("go"), r.result("c1", "seen"), r.call("c1", "Agent", input), r.user("next")});
  CHECK(feed.count("agent.started") == feed.count("agent.finished"));
  CHECK(feed.state().agents.empty());
}

// ---- in the background

TEST_CASE("a launch finishes the call, and the notification the agent") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "launched", launched("a77")),
                   r.text("waiting", "\"end_turn\""), r.notification("a77", "completed")});
  const Lines story = feed.summary();
  REQUIRE(story.size() == 9);
  CHECK(story[3] == "tool.finished 1 c1 ok a77");
  CHECK(story[6] == "task.finished 1 a77 completed");
  CHECK(story[7] == "agent.finished 1 c1 a77 completed");
  CHECK(story[8].starts_with("turn.started 2 task"));
}

TEST_CASE("a running background agent is in the state, also after the turn") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "launched", launched("a77")),
                   r.user("next")});
  REQUIRE(feed.state().agents.size() == 1);
  CHECK(feed.state().agents[0].subagent == "a77");
  CHECK(feed.state().agents[0].background);
  CHECK(feed.count("agent.finished") == 0);
}

TEST_CASE("each status of a notification maps to an outcome of the agent") {
  const auto outcome = [](std::string_view status) {
    Records r;
    return Feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "launched", launched("a77")),
                 r.notification("a77", status)})
        .fields("agent.finished", {"outcome"});
  };
  CHECK(outcome("completed") == Lines{"completed"});
  CHECK(outcome("failed") == Lines{"failed"});
  CHECK(outcome("killed") == Lines{"stopped"});
  CHECK(outcome("stopped") == Lines{"stopped"});
}

TEST_CASE("a notification read before the launch's result: that result finishes the agent") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Agent", input),
                   r.queue("enqueue", Records::notice("a77", "completed")),
                   r.result("c1", "launched", launched("a77"))});
  CHECK(feed.fields("task.finished", {"task"}) == Lines{"a77"});
  CHECK(feed.fields("agent.finished", {"call", "subagent", "outcome"}) == Lines{"c1 a77 completed"});
  CHECK(feed.summary().back() == "agent.finished 1 c1 a77 completed");
}

TEST_CASE("a spawned teammate is launched, not finished") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Task", input),
       r.result("c1", "spawned",
                R"("toolUseResult":{"status":"teammate_spawned","teammate_id":"lea@team","name":"lea"})"),
       r.user("next")});
  CHECK(feed.count("agent.finished") == 0);
  CHECK(feed.fields("tool.finished", {"outcome"}) == Lines{"ok"});
}

TEST_CASE("a spawned teammate without an agent id ends with a notification that names its call") {
  Records r;
  Feed feed(
      {r.user("go"), r.call("c1", "Task", input),
       r.result("c1", "spawned",
                R"("toolUseResult":{"status":"teammate_spawned","teammate_id":"lea@team","name":"lea"})")});
  REQUIRE(feed.state().agents.size() == 1);
  CHECK(feed.state().agents[0].subagent.empty());
  feed.write(
      r.user("<task-notification>\n<task-id>a9</task-id>\n<tool-use-id>c1</tool-use-id>\n"
             "<status>completed</status>\n<summary>done</summary>\n</task-notification>"));
  CHECK(feed.fields("agent.finished", {"call", "outcome"}) == Lines{"c1 completed"});
  CHECK(feed.state().agents.empty());
}

// ---- notifications

TEST_CASE("a notification has task, call and summary") {
  Records r;
  const Feed feed(
      {r.user("go"), r.user("<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>c9</"
                            "tool-use-id>\n<output-file>/tmp/x</output-file>\n<status>failed</status>\n"
                            "<summary>Background command \"x\" failed</summary>\n</task-notification>")});
  CHECK(feed.fields("task.finished", {"task", "call", "outcome", "summary"}) ==
        Lines{"b1 c9 failed Background command \"x\" failed"});
}

TEST_CASE("a notification is emitted once, from the first of its three records") {
  std::vector<int> ways = {0, 1, 2};
  do {
    Records r;
    Feed feed({r.user("go"), r.text("busy")});
    for (const int way : ways) {
      if (way == 0) feed.write(r.queue("enqueue", Records::notice("b1", "completed")));
      if (way == 1) feed.write(r.notification("b1", "completed"));
      if (way == 2) {
        feed.write(r.attachment(R"({"type":"queued_command","commandMode":"task-notification","prompt":)" +
                                as_json(Records::notice("b1", "completed")) + "}"));
      }
    }
    CHECK(feed.fields("task.finished", {"task", "outcome"}) == Lines{"b1 completed"});
    CHECK(feed.count("queue.changed") == 1);
    CHECK(feed.fields("turn.started", {"origin"}) == Lines{"human", "task"});
  } while (std::next_permutation(ways.begin(), ways.end()));
}

TEST_CASE("queue.changed precedes task.finished, which precedes agent.finished") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Agent", input), r.result("c1", "launched", launched("a77")),
                   r.queue("enqueue", Records::notice("a77", "completed"))});
  Lines types;
  for (const std::string& event : feed.events()) types.push_back(field(event, "type"));
  REQUIRE(types.size() > 3);
  CHECK(Lines(types.end() - 3, types.end()) == Lines{"queue.changed", "task.finished", "agent.finished"});
}

TEST_CASE("another status or another task is another event") {
  Records r;
  const Feed feed({r.user("go"), r.notification("b1", "completed"), r.notification("b1", "failed"),
                   r.notification("b2", "completed"), r.notification("b2", "completed")});
  CHECK(feed.fields("task.finished", {"task", "outcome"}) ==
        Lines{"b1 completed", "b1 failed", "b2 completed"});
}

TEST_CASE("a notification without a status is a change of the queue only") {
  Records r;
  const Feed feed({r.user("go"), r.queue("enqueue", Records::notice("m1", ""))});
  CHECK(feed.count("task.finished") == 0);
  CHECK(feed.count("queue.changed") == 1);
}

TEST_CASE("a task that was resumed finishes again") {
  Records r;
  const Feed feed(
      {r.user("go"), r.call("c1", "Agent", input), r.result("c1", "launched", launched("a77")),
       r.notification("a77", "completed"), r.call("c2", "SendMessage", R"({"to":"a77"})"),
       r.result("c2", "sent", R"("toolUseResult":{"success":true,"message":"sent","resumedAgentId":"a77"})"),
       r.notification("a77", "completed")});
  CHECK(feed.fields("task.finished", {"task", "outcome"}) == Lines{"a77 completed", "a77 completed"});
}

TEST_CASE("the end of a background command finishes no agent") {
  Records r;
  const Feed feed({r.user("go"), r.call("c1", "Bash"),
                   r.result("c1", "running", R"("toolUseResult":{"backgroundTaskId":"b1"})"),
                   r.notification("b1", "completed")});
  CHECK(feed.count("task.finished") == 1);
  CHECK(feed.count("agent.finished") == 0);
  CHECK(feed.state().tasks.empty());
}

TEST_CASE("a background command is a task until it is stopped: that writes no notification") {
  const auto feed_with = [](const std::string& stopped, bool is_error) {
    Records r;
    return Feed({r.user("go"), r.call("c1", "Bash"),
                 r.result("c1", "running", R"("toolUseResult":{"backgroundTaskId":"b1"})"),
                 r.call("c2", "TaskStop", R"({"task_id":"b1"})"),
                 is_error ? r.error("c2", "x", R"("toolUseResult":)" + stopped)
                          : r.result("c2", "x", R"("toolUseResult":)" + stopped)});
  };
  const std::string stopped = R"({"message":"Successfully stopped task: b1","task_id":"b1"})";
  CHECK(feed_with(stopped, false).state().tasks.empty());
  CHECK(feed_with(R"({"message":"Successfully killed shell: b1","shell_id":"b1"})", false)
            .state()
            .tasks.empty());
  CHECK(feed_with(R"("Error: there is no task b1")", true).state().tasks.size() == 1);
  CHECK(feed_with(R"({"message":"x","task_id":"b2"})", false).state().tasks.size() == 1);
}

}  // namespace
}  // namespace earshot::test
