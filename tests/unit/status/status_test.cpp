#include "status/status.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "base/display_text.hpp"
#include "base/quantities.hpp"

using namespace earshot::status;
using std::chrono::minutes;

namespace {

constexpr std::int64_t noon_ms = 1'700'000'000'000;  // 2023-11-14T22:13:20Z
const std::string noon = "2023-11-14T22:13:20.000Z";

earshot::RegistryEntry entry(const std::string& status, const std::string& waiting_for = {}) {
  const std::string text = R"({"sessionId":"s","statusUpdatedAt":1700000000000,"status":")" + status +
                           R"(","waitingFor":")" + waiting_for + "\"}";
  return earshot::default_program().registry()->parse_registry_file("42.json", text).value();
}

/// The open calls, and the requests that those of them are which ask the user.
void set_calls(TranscriptSummary& summary, const std::vector<OpenCall>& calls) {
  summary.calls = calls;
  for (const OpenCall& call : calls) {
    for (const earshot::AgentProgram* program : earshot::agent_programs()) {
      const std::string reason(program->requests().prompt_reason(call.tool));
      if (reason.empty()) continue;
      summary.requests.push_back({call.call, reason, call.call, "", call.agent, call.started});
      break;
    }
  }
}

TranscriptSummary turn_open(const std::vector<OpenCall>& calls = {}) {
  TranscriptSummary summary;
  summary.known = summary.turn_open = true;
  summary.turn_started = "2023-11-14T22:10:00.000Z";
  summary.last_activity = "2023-11-14T22:12:00.000Z";
  summary.last_growth_ms = noon_ms;
  set_calls(summary, calls);
  return summary;
}

TranscriptSummary turn_finished() {
  TranscriptSummary summary = turn_open();
  summary.turn_open = false;
  summary.turn_finished = "2023-11-14T22:11:00.000Z";
  return summary;
}

Status with_entry(const earshot::RegistryEntry& current, Liveness liveness,
                  const TranscriptSummary& summary) {
  Evidence evidence;
  evidence.entry = &current;
  evidence.liveness = liveness;
  evidence.had_entry = true;
  return derive_status(evidence, summary);
}

const OpenCall bash{"c1", "Bash", R"({"command":"make test","description":"Run"})"};
const OpenCall write_file{"c2", "Write", R"({"file_path":"/src/a.cpp","content":"int"})"};
const OpenCall asker{"c7", "mcp__lamp__asker", R"({"about":"the lamp"})"};  // it asks by an elicitation
const OpenCall ask{"c3", "AskUserQuestion", R"({"questions":[{"question":"Tabs or spaces?","options":[]}]})",
                   "", "2023-11-14T22:11:30.000Z"};
const OpenCall plan{"c4", "ExitPlanMode", R"({"plan":"# Tidy the attic\n\n1. boxes"})"};
const OpenCall subagent{"c5", "Agent", R"({"prompt":"look around"})"};

}  // namespace

TEST_CASE("the registry entry of a live process decides") {
  struct Row {
    std::string word, waiting_for;
    std::vector<OpenCall> calls;
    std::string state, reason, detail;
  };
  const std::vector<Row> rows = {
      {"busy", "", {}, "working", "", ""},
      {"busy", "", {ask}, "working", "", ""},
      {"idle", "", {}, "idle", "", ""},
      {"shell", "", {}, "idle", "background", ""},
      {"waiting", "permission prompt", {}, "waiting", "permission", ""},
      {"waiting", "permission prompt", {bash}, "waiting", "permission", "approve Bash: make test"},
      {"waiting",
       "permission prompt",
       {bash, write_file},
       "waiting",
       "permission",
       "approve one of 2: Write: /src/a.cpp; Bash: make test"},
      {"waiting", "permission prompt", {bash, subagent}, "waiting", "permission", "approve Bash: make test"},
      {"waiting", "permission prompt", {subagent}, "waiting", "permission", ""},
      {"waiting", "permission prompt", {plan}, "waiting", "plan", "plan: Tidy the attic"},
      {"waiting", "permission prompt", {ask}, "waiting", "question", "Tabs or spaces?"},
      {"waiting", "input needed", {}, "waiting", "question", ""},
      {"waiting", "input needed", {ask, bash}, "waiting", "question", "Tabs or spaces?"},
      {"waiting", "input needed", {plan}, "waiting", "plan", "plan: Tidy the attic"},
      {"waiting", "input needed", {asker, bash}, "waiting", "question", "answer mcp__lamp__asker"},
      {"waiting", "input needed", {bash}, "waiting", "question", ""},
      {"waiting", "dialog open", {bash}, "waiting", "dialog", ""},
      {"waiting", "dialog open", {ask}, "waiting", "question", "Tabs or spaces?"},
  };
  for (const Row& row : rows) {
    for (const bool open : {true, false}) {
      CAPTURE(row.word, row.waiting_for, row.calls.size(), open);
      TranscriptSummary summary = open ? turn_open() : turn_finished();
      set_calls(summary, row.calls);
      const Status status = with_entry(entry(row.word, row.waiting_for), Liveness::alive, summary);
      CHECK(status.state == row.state);
      CHECK(status.reason == row.reason);
      CHECK(status.detail == row.detail);
      CHECK(status.source == "registry");
      CHECK(status.since == noon);
    }
  }
}

TEST_CASE("without a known state in the registry the transcript decides") {
  for (const char* word : {"", "dreaming"}) {
    CAPTURE(word);
    const Status working = with_entry(entry(word), Liveness::alive, turn_open());
    CHECK(working.state == "working");
    CHECK(working.source == "transcript");
    CHECK(with_entry(entry(word), Liveness::alive, turn_finished()).state == "idle");
    const Status silent = with_entry(entry(word), Liveness::alive, TranscriptSummary{});
    CHECK(silent.state == "idle");
    CHECK(silent.source == "registry");
    CHECK(silent.since == noon);
  }
}

TEST_CASE("the session of a dead process has ended, whatever its file and transcript contain") {
  for (const char* word : {"busy", "idle", "waiting", "shell", ""}) {
    for (const TranscriptSummary& summary :
         {turn_open(), turn_open({ask}), turn_finished(), TranscriptSummary{}}) {
      const Status status = with_entry(entry(word), Liveness::dead, summary);
      CHECK(status.state == "ended");
      CHECK(status.reason.empty());
      CHECK(status.detail.empty());
      CHECK(status.source == "registry");
      CHECK(status.since == noon);  // later than the transcript's last line; the time of death is unknown
    }
  }
}

TEST_CASE("a removed registry file means ended, since the moment that was noticed") {
  Evidence evidence;
  evidence.had_entry = evidence.seen_alive = true;
  evidence.ended_ms = noon_ms + 5;
  const Status status = derive_status(evidence, turn_open());
  CHECK(status.state == "ended");
  CHECK(status.since == "2023-11-14T22:13:20.005Z");
}

TEST_CASE("a turn that began after the end was noticed belongs to a version without a registry") {
  Evidence evidence;
  evidence.had_entry = evidence.seen_alive = true;
  evidence.ended_ms = noon_ms;
  TranscriptSummary summary = turn_open();
  summary.turn_started = "2023-11-14T22:14:00.000Z";
  CHECK(derive_status(evidence, summary).state == "working");
  summary.turn_open = false;
  CHECK(derive_status(evidence, summary).state == "idle");
  summary.turn_started = "2023-11-14T22:13:00.000Z";
  CHECK(derive_status(evidence, summary).state == "ended");
}

TEST_CASE("another machine's or namespace's process is unknown, never ended") {
  for (const char* word : {"busy", "idle", "waiting", "shell", ""}) {
    const Status status = with_entry(entry(word), Liveness::foreign, turn_open({bash}));
    CHECK(status.state == "unknown");
    CHECK(status.source == "registry");
    CHECK(status.detail.empty());
  }
}

TEST_CASE("without a registry the transcript decides") {
  const Evidence none;
  SECTION("an open turn is working since it was opened") {
    const Status status = derive_status(none, turn_open());
    CHECK(status == Status{"working", "", "", "transcript", "2023-11-14T22:10:00.000Z"});
  }
  SECTION("after a recorded wait, it is working since the answer") {
    TranscriptSummary summary = turn_open();
    summary.answered = "2023-11-14T22:10:30.000Z";
    CHECK(derive_status(none, summary).since == summary.answered);
    summary.answered = "2023-11-14T22:00:00.000Z";
    CHECK(derive_status(none, summary).since == summary.turn_started);
  }
  SECTION("a finished turn is idle since it finished") {
    CHECK(derive_status(none, turn_finished()) ==
          Status{"idle", "", "", "transcript", "2023-11-14T22:11:00.000Z"});
  }
  SECTION("an unanswered question is waiting since it was asked") {
    CHECK(derive_status(none, turn_open({bash, ask})) ==
          Status{"waiting", "question", "Tabs or spaces?", "transcript", "2023-11-14T22:11:30.000Z", "c3"});
  }
  SECTION("an unanswered plan is waiting, without a time of its own, since the last line") {
    CHECK(derive_status(none, turn_open({plan})) ==
          Status{"waiting", "plan", "plan: Tidy the attic", "transcript", "2023-11-14T22:12:00.000Z", "c4"});
  }
  SECTION("an open call is never reported as a permission prompt") {
    Evidence quiet;
    quiet.quiet = minutes(60 * 24);
    CHECK(derive_status(quiet, turn_open({bash})).state == "unknown");
    quiet.process = ProcessEvidence::present;
    CHECK(derive_status(quiet, turn_open({bash})).state == "working");
  }
  SECTION("no transcript is unknown") { CHECK(derive_status(none, TranscriptSummary{}).state == "unknown"); }
}

TEST_CASE("what the records themselves state of the session") {
  const earshot::AgentProgram* copilot = earshot::find_agent_program("copilot");
  const auto derive = [&](const TranscriptSummary& summary) {
    Evidence evidence;
    evidence.program = copilot;
    return derive_status(evidence, summary);
  };
  const OpenCall command{"c1", "bash", R"({"command":"make test","description":"Run"})"};
  TranscriptSummary asked = turn_open({command});
  asked.requests = {{"r1", "permission", "c1", "shell", "", noon}};
  Status status = derive(asked);
  CHECK(status.state == "waiting");
  CHECK(status.reason == "permission");
  CHECK(status.detail == "approve bash: make test");
  CHECK(status.source == "transcript");
  CHECK(status.since == noon);
  asked.calls.clear();
  CHECK(derive(asked).detail == "approve shell");
  CHECK(derive(asked).request == "r1");
  asked.requests.push_back({"r2", "permission", "c2", "write", "", noon});
  CHECK(derive(asked).request == "r1");
  CHECK(derive(asked).detail == "1 of 2: approve shell");
  asked.requests.erase(asked.requests.begin());
  CHECK(derive(asked).request == "r2");
  CHECK(derive(asked).detail == "approve write");

  TranscriptSummary question = turn_open({{"c2", "ask_user", R"({"question":"Tabs or spaces?"})", "", noon}});
  CHECK(derive(question).reason == "question");
  CHECK(derive(question).detail == "Tabs or spaces?");

  TranscriptSummary shown = turn_finished();
  shown.requests = {{"@12", "plan", "", "", "", shown.turn_finished}};
  CHECK(derive(shown).state == "waiting");
  CHECK(derive(shown).reason == "plan");
  CHECK(derive(shown).since == shown.turn_finished);
  CHECK(derive(shown).detail.empty());

  TranscriptSummary compacting = turn_open();
  compacting.is_compacting = true;
  CHECK(derive(compacting).reason == "compaction");

  TranscriptSummary background = turn_finished();
  background.background = {{BackgroundWork::Kind::task, 1, 0, false, "Bash", R"({"command":"make soak"})"}};
  CHECK(derive(background).state == "idle");
  CHECK(derive(background).reason == "background");

  TranscriptSummary closed = turn_finished();
  closed.is_closed = true;
  Evidence evidence;
  evidence.program = copilot;
  evidence.process = ProcessEvidence::gone;
  CHECK(derive_status(evidence, closed).state == "ended");
  CHECK(derive_status(evidence, closed).source == "transcript");
}

TEST_CASE("a question for permission that leaves no trace is a hint, never a wait") {
  const OpenCall command{"c1", "exec_command", R"({"cmd":"make"})"};
  const OpenCall other{"c2", "web_search", "{}"};
  struct Row {
    std::string program;
    std::vector<OpenCall> calls;
    std::chrono::milliseconds quiet;
    std::string detail;
  };
  const std::string hint = "exec_command: make (may be waiting for approval: not visible)";
  for (const Row& row :
       {Row{"codex", {command}, unseen_permission_after, hint},
        Row{"codex", {command, other}, unseen_permission_after, hint},
        Row{"codex", {command}, unseen_permission_after - std::chrono::milliseconds(1), ""},
        Row{"codex", {other}, unseen_permission_after, ""}, Row{"codex", {}, unseen_permission_after, ""},
        Row{"codex",  // fault 120
            {{"c3", "mcp__lamp.light", "{}"}},
            unseen_permission_after,
            "mcp__lamp.light (may be waiting for approval: not visible)"},
        Row{"claude-code", {bash}, unseen_permission_after, ""}}) {
    Evidence evidence;
    evidence.program = earshot::find_agent_program(row.program);
    evidence.quiet = row.quiet;
    const Status status = derive_status(evidence, turn_open(row.calls));
    CHECK(status.state == "working");
    CHECK(status.detail == row.detail);
  }
  Evidence evidence;
  evidence.program = earshot::find_agent_program("codex");
  evidence.quiet = unseen_permission_after;
  TranscriptSummary unasked = turn_open({command});
  unasked.permission_mode = "never";
  CHECK(derive_status(evidence, unasked).detail.empty());
  unasked.permission_mode = "on-request";
  CHECK(derive_status(evidence, unasked).detail == hint);
  const OpenCall long_call{"c1", "exec_command", R"({"cmd":")" + std::string(500, 'x') + "\"}"};
  CHECK(derive_status(evidence, turn_open({long_call})).detail.size() <= detail_bytes_max);
}

TEST_CASE("fault 105: process evidence applies where there is no registry entry") {
  using Process = ProcessEvidence;
  struct Row {
    Process process;
    TranscriptSummary summary;
    minutes quiet;
    std::string state, source;
  };
  const std::vector<Row> rows = {
      {Process::gone, turn_open(), minutes(1), "ended", "process"},
      {Process::gone, turn_open({bash}), minutes(60), "ended", "process"},
      {Process::gone, turn_open({ask}), minutes(1), "ended", "process"},
      {Process::gone, turn_finished(), minutes(1), "ended", "process"},
      {Process::present, turn_open(), minutes(1), "working", "transcript"},
      {Process::present, turn_open({bash}), minutes(60), "working", "transcript"},
      {Process::present, turn_open(), minutes(60), "unknown", "clock"},
      {Process::present, turn_finished(), minutes(60), "idle", "transcript"},
      {Process::unknown, turn_open({bash}), minutes(1), "working", "transcript"},
      {Process::unknown, turn_open({bash}), minutes(60), "unknown", "clock"},
      {Process::unknown, turn_open({ask}), minutes(60), "waiting", "transcript"},
  };
  for (const Row& row : rows) {
    Evidence evidence;
    evidence.process = row.process;
    evidence.quiet = row.quiet;
    const Status status = derive_status(evidence, row.summary);
    CHECK(status.state == row.state);
    CHECK(status.source == row.source);
    const earshot::RegistryEntry busy = entry("busy");
    evidence.entry = &busy;
    evidence.liveness = Liveness::alive;
    CHECK(derive_status(evidence, row.summary).source == "registry");
  }
  Evidence seen;
  seen.process = Process::gone;
  CHECK(derive_status(seen, turn_open()).since == "2023-11-14T22:12:00.000Z");  // the last line
  seen.process_ended_ms = noon_ms + 5;
  CHECK(derive_status(seen, turn_open()).since == "2023-11-14T22:13:20.005Z");
}

TEST_CASE("an open turn that has not grown for ten minutes is unknown, by the clock") {
  Evidence evidence;
  evidence.quiet = minutes(10) - std::chrono::milliseconds(1);
  CHECK(derive_status(evidence, turn_open()).state == "working");
  evidence.quiet = minutes(10);
  CHECK(derive_status(evidence, turn_open()) ==
        Status{"unknown", "", "", "clock", "2023-11-14T22:23:20.000Z"});
  CHECK(derive_status(evidence, turn_finished()).state == "idle");
  CHECK(derive_status(evidence, turn_open({ask})).state == "waiting");
  CHECK(with_entry(entry("busy"), Liveness::alive, turn_open()).state == "working");
}

TEST_CASE("a compaction is work, but does not override a wait, an end or a foreign process") {
  Evidence evidence;
  evidence.compacting_ms = noon_ms;
  const Status compaction{"working", "compaction", "", "transcript", noon};
  CHECK(derive_status(evidence, turn_open()) == compaction);
  CHECK(derive_status(evidence, turn_finished()) == compaction);
  evidence.quiet = minutes(11);
  CHECK(derive_status(evidence, turn_open()) == compaction);

  earshot::RegistryEntry current = entry("busy");
  evidence.entry = &current;
  evidence.had_entry = true;
  evidence.liveness = Liveness::alive;
  CHECK(derive_status(evidence, turn_open()) == compaction);
  current = entry("waiting", "permission prompt");
  CHECK(derive_status(evidence, turn_open()).state == "waiting");
  evidence.liveness = Liveness::foreign;
  CHECK(derive_status(evidence, turn_open()).state == "unknown");
  evidence.liveness = Liveness::dead;
  CHECK(derive_status(evidence, turn_open()).state == "ended");
}

TEST_CASE("since is kept while state and reason are the same") {
  const Status before{"working", "", "", "transcript", "2023-01-01T00:00:00.000Z"};
  CHECK(keep_since(before, before, {"working", "", "", "registry", noon}).since == before.since);
  CHECK(keep_since(before, before, {"idle", "", "", "registry", noon}).since == noon);
  CHECK(keep_since(Status{}, {}, {"unknown", "", "", "transcript", noon}).since == noon);
}

TEST_CASE("fault 111: another request is another wait, though nothing else differs") {
  const auto waiting = [](const char* source, const char* request, const char* since) {
    return Status{"waiting", "permission", "", source, since, request, ""};
  };
  const std::string later = "2023-11-14T22:14:00.000Z";
  const Status first = waiting("transcript", "r1", noon.c_str());
  const Status second = keep_since(first, first, waiting("transcript", "r2", noon.c_str()));
  CHECK(second.request == "r2");
  CHECK_FALSE(is_same_wait(first, second));
  CHECK(keep_since(first, first, waiting("transcript", "r2", later.c_str())).since == later);
  Status refined = waiting("transcript", "r1", later.c_str());
  refined.reason = "question";
  CHECK(is_same_wait(first, keep_since(first, first, refined)));
  // Another source that states a wait of the same reason: the same wait, also when it states it again.
  const Status registered = waiting("registry", "registry@1", later.c_str());
  const Status joined = keep_since(first, first, registered);
  CHECK(is_same_wait(first, joined));
  CHECK(is_same_wait(first, keep_since(joined, registered, registered)));
  CHECK(is_same_wait(first, keep_since(joined, registered, first)));
}

TEST_CASE("fault 112: a wait that is not known is a permission while something works") {
  const auto wait = [](const std::string& waiting_for, const TranscriptSummary& summary) {
    const Status status = with_entry(entry("waiting", waiting_for), Liveness::alive, summary);
    return status.reason + (status.detail.empty() ? "" : ": " + status.detail);
  };
  for (const char* future : {"", "moon phase", "permission"}) {
    CHECK(wait(future, turn_open()) == "permission");
    CHECK(wait(future, turn_open({bash})) == "permission: approve Bash: make test");
    CHECK(wait(future, turn_finished()) == "dialog");
  }
  CHECK(wait("sandbox request", turn_open({bash})) == "permission: network");
  CHECK(wait("worker request", turn_finished()) == "permission: teammate");
  CHECK(wait("goal proposal", turn_finished()) == "permission: goal");
  CHECK(wait("dialog open", turn_open()) == "dialog");
  TranscriptSummary agents = turn_finished();
  agents.background = {{BackgroundWork::Kind::agent, 2}};
  CHECK(wait("moon phase", agents) == "permission");
}

TEST_CASE("fault 113: agents and workflows that outlive the turn are work, tasks are not") {
  const auto shown = [](const Status& status) {
    return status.state + '/' + status.reason + ": " + status.detail;
  };
  TranscriptSummary summary = turn_finished();
  summary.background = {{BackgroundWork::Kind::agent, 1, noon_ms, true}, {BackgroundWork::Kind::agent, 1}};
  CHECK(shown(derive_status({}, summary)) == "working/background: 2 agents");
  CHECK(derive_status({}, summary).since == summary.turn_finished);
  CHECK(shown(with_entry(entry("busy"), Liveness::alive, summary)) == "working/background: 2 agents");
  // `idle` of the registry may lag behind what the program counted when it ended its turn, and nothing else.
  CHECK(shown(with_entry(entry("idle"), Liveness::alive, summary)) == "working/background: 2 agents");
  summary.background.front().is_counted = false;
  CHECK(shown(with_entry(entry("idle"), Liveness::alive, summary)) == "idle/: ");
  summary.background = {{BackgroundWork::Kind::workflow, 1}, {BackgroundWork::Kind::agent, 3}};
  CHECK(shown(derive_status({}, summary)) == "working/background: 3 agents, 1 workflow");
  summary.background = {{BackgroundWork::Kind::task, 1, 0, false, "Bash", R"({"command":"npm run dev"})"}};
  CHECK(shown(derive_status({}, summary)) == "idle/background: npm run dev");
  CHECK(shown(with_entry(entry("shell"), Liveness::alive, summary)) == "idle/background: npm run dev");
  summary.background.push_back({BackgroundWork::Kind::task, 1});
  CHECK(shown(derive_status({}, summary)) == "idle/background: 1 of 2: npm run dev");
  Evidence quiet;
  quiet.quiet = quiet_max;
  summary.background = {{BackgroundWork::Kind::agent, 1}};
  CHECK(shown(derive_status(quiet, summary)) == "unknown/: ");
  quiet.process = ProcessEvidence::present;
  CHECK(shown(derive_status(quiet, summary)) == "working/background: 1 agent");
}

TEST_CASE("fault 114: a subagent's call may wait while the turn of its parent is over") {
  Evidence evidence;
  evidence.program = earshot::find_agent_program("codex");
  evidence.now_ms = noon_ms;
  TranscriptSummary summary = turn_finished();
  summary.background = {{BackgroundWork::Kind::agent, 2}};
  summary.calls = {{"c1", "exec_command", R"({"cmd":"make"})", "agent1", "", 0, noon_ms - 6000},
                   {"c2", "exec_command", R"({"cmd":"ls"})", "agent2", "", 0, noon_ms - 100}};
  // The other agent goes on: the session is not quiet.
  const Status hint = derive_status(evidence, summary);
  CHECK(hint.state == "working");
  CHECK(hint.reason == "background");
  CHECK(hint.detail == "exec_command: make (may be waiting for approval: not visible)");
  summary.requests = {{"q", "permission", "c1", "", "agent1", noon}};
  const Status wait = derive_status(evidence, summary);
  CHECK(wait.state == "waiting");
  CHECK(wait.agent == "agent1");
  CHECK(wait.detail == "approve exec_command: make");
}

TEST_CASE("fault 115: what is older than every process of a session does not count") {
  constexpr std::int64_t before_ms = noon_ms - 60'000, after_ms = noon_ms + 60'000;
  TranscriptSummary summary = turn_open({bash});
  summary.calls.front().started_ms = before_ms;
  summary.requests = {{"q", "question", "c1", "", "", noon, before_ms}};
  summary.background = {{BackgroundWork::Kind::agent, 1, before_ms}};
  summary.turn_grown_ms = before_ms;
  Evidence evidence;
  CHECK(derive_status(evidence, summary).state == "waiting");
  evidence.run_since_ms = noon_ms;
  CHECK(derive_status(evidence, summary).state == "idle");
  CHECK(derive_status(evidence, summary).reason.empty());
  summary.is_closed = true;  // and opened again
  CHECK(derive_status(evidence, summary).state == "idle");
  summary.is_closed = false;
  // Each of them counts if it is younger.
  TranscriptSummary turn = summary;
  turn.turn_grown_ms = after_ms;
  CHECK(derive_status(evidence, turn).state == "working");
  TranscriptSummary request = summary;
  request.requests.front().started_ms = after_ms;
  CHECK(derive_status(evidence, request).state == "waiting");
  TranscriptSummary work = summary;
  work.background.front().time_ms = after_ms;
  CHECK(derive_status(evidence, work).reason == "background");
  // A wait that the program states has no call of an earlier process.
  earshot::RegistryEntry asks = entry("waiting", "permission prompt");
  evidence.entry = &asks;
  evidence.liveness = Liveness::alive;
  evidence.had_entry = true;
  CHECK(derive_status(evidence, summary).detail.empty());
  CHECK(prompted_call(derive_status(evidence, summary), evidence, summary).empty());
  evidence.run_since_ms = 0;
  CHECK(derive_status(evidence, summary).detail == "approve Bash: make test");
}

TEST_CASE("a schedule that will begin a turn is the reason to be idle") {
  Evidence evidence;
  TranscriptSummary summary = turn_finished();
  const auto schedule = [](std::int64_t due_ms) {
    return BackgroundWork{BackgroundWork::Kind::schedule, 1, 0, false, {}, {}, due_ms};
  };
  summary.background = {schedule(noon_ms + 60'000), schedule(noon_ms + 1000), schedule(0)};
  const Status idle = derive_status(evidence, summary);
  CHECK(idle.state == "idle");
  CHECK(idle.reason == "scheduled");
  CHECK(idle.detail == "2023-11-14T22:13:21.000Z");
  const earshot::RegistryEntry registered = entry("idle");
  evidence.entry = &registered;
  evidence.liveness = Liveness::alive;
  evidence.had_entry = true;
  CHECK(derive_status(evidence, summary).reason == "scheduled");
  const earshot::RegistryEntry runs = entry("shell");
  evidence.entry = &runs;
  CHECK(derive_status(evidence, summary).reason == "background");
}

TEST_CASE("done: what a prompt led to, once the session rests") {
  Evidence evidence;
  TranscriptSummary summary = turn_finished();
  summary.turn = 5;
  summary.outcome = "completed";
  summary.prompted = {3, "2023-11-14T22:09:00.000Z", noon_ms - 260'000, 0};
  summary.turn_finished = "2023-11-14T22:11:00.000Z";
  summary.waited_ms = 7000;
  const auto done = [&](const char* state, std::int64_t waited_ms = 0) {
    Status status;
    status.state = state;
    return done_of(status, evidence, summary, waited_ms);
  };
  for (const char* state : {"idle", "ended"})
    CHECK(done(state) == Done{"completed", 3, 3, "2023-11-14T22:09:00.000Z", 120'000, 7000, false});
  for (const char* state : {"working", "waiting", "unknown"}) CHECK_FALSE(done(state));
  CHECK(done("idle", 9000)->waited_ms == 9000);
  CHECK(done("idle", 900'000)->waited_ms == 120'000);
  for (const bool is_queued : {true, false}) {  // the next turn may follow by itself, but soon
    summary.expects_turn = is_queued;
    summary.background = {{BackgroundWork::Kind::agent, is_queued ? 0u : 1u}};
    evidence.quiet = next_turn_max - std::chrono::milliseconds(1);
    CHECK_FALSE(done("idle"));
    CHECK(done("ended").has_value() == is_queued);
    evidence.quiet = next_turn_max;
    CHECK(done("idle"));
  }
  summary.background.clear();
  summary.turn_open = true;  // the process died in the third turn
  CHECK(done("ended")->turns == 2);
  summary.turn = 3;
  CHECK_FALSE(done("ended"));
  summary.prompted = {};
  CHECK_FALSE(done("idle"));
  summary.turn_open = false;
  summary.prompted = {3, "", 0, 0};
  CHECK_FALSE(done("idle")->duration_ms);
}

TEST_CASE("fault 166: a process that states nothing yet is idle") {
  const earshot::RegistryEntry starts = entry("");
  CHECK(with_entry(starts, Liveness::alive, {}).state == "idle");
  CHECK(with_entry(starts, Liveness::alive, turn_finished()).state == "idle");
  CHECK(with_entry(starts, Liveness::alive, turn_open()).state == "working");
  TranscriptSummary old = turn_open();
  old.turn_grown_ms = noon_ms - 60'000;
  Evidence evidence;
  evidence.entry = &starts;
  evidence.liveness = Liveness::alive;
  evidence.had_entry = true;
  evidence.run_since_ms = noon_ms;
  CHECK(derive_status(evidence, old).state == "idle");
}

TEST_CASE("a spare process has no session, and a name that the program made up is no title") {
  const auto parse = [](const std::string& members) {
    return earshot::default_program()
        .registry()
        ->parse_registry_file("42.json", R"({"sessionId":"s","name":"calm otter",)" + members + "}")
        .value();
  };
  CHECK(parse(R"("spare":true)").session.empty());
  CHECK(parse(R"("spare":false)").session == "s");
  CHECK(parse(R"("nameSource":"user")").name == "calm otter");
  CHECK(parse(R"("nameSource":"derived")").name.empty());
  CHECK(parse(R"("nameSource":"collision")").name.empty());
}

TEST_CASE("the wait of another process is another wait") {
  earshot::RegistryEntry waiting = entry("waiting", "permission prompt");
  const Status first = with_entry(waiting, Liveness::alive, turn_open());
  waiting.pid = 43;
  waiting.updated_ms -= 1000;
  const Status second = keep_since(first, first, with_entry(waiting, Liveness::alive, turn_open()));
  CHECK_FALSE(is_same_wait(first, second));
}

TEST_CASE("keep_since: a late detail keeps the time of the status") {
  const earshot::RegistryEntry waiting = entry("waiting", "permission prompt");
  const Status bare = with_entry(waiting, Liveness::alive, turn_open());
  const Status joined = keep_since(bare, bare, with_entry(waiting, Liveness::alive, turn_open({bash})));
  CHECK(joined.detail == "approve Bash: make test");
  CHECK(joined.since == bare.since);
  const Status question = keep_since(bare, bare, with_entry(waiting, Liveness::alive, turn_open({ask})));
  CHECK(question.reason == "question");
  CHECK(question.since == bare.since);
}

TEST_CASE("a later wait in the registry is a new one even if the work in between was not seen") {
  earshot::RegistryEntry waiting = entry("waiting", "permission prompt");
  const Status first = with_entry(waiting, Liveness::alive, turn_open({bash}));
  waiting.updated_ms += 2000;
  const Status second =
      keep_since(first, first, with_entry(waiting, Liveness::alive, turn_open({write_file})));
  CHECK(second.since == "2023-11-14T22:13:22.000Z");
}

TEST_CASE("times are RFC 3339 in UTC with milliseconds") {
  CHECK(earshot::format_time_if_valid(noon_ms + 7) == "2023-11-14T22:13:20.007Z");
  CHECK(earshot::format_time_if_valid(0).empty());
  CHECK(earshot::format_time_if_valid(-5).empty());
  CHECK(earshot::format_time_if_valid(std::numeric_limits<std::int64_t>::max()).empty());
}
