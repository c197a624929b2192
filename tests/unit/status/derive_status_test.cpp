#include "status/derive_status.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "status/pending_prompt.hpp"
#include "status/text.hpp"

using namespace earshot::status;
using std::chrono::minutes;

namespace {

constexpr std::int64_t noon_ms = 1'700'000'000'000;  // 2023-11-14T22:13:20Z
const std::string noon = "2023-11-14T22:13:20.000Z";

RegistryEntry entry(std::string word, std::string waiting_for = {}) {
  RegistryEntry made;
  made.pid = 42;
  made.session = "s";
  made.status = std::move(word);
  made.waiting_for = std::move(waiting_for);
  made.status_updated_ms = noon_ms;
  return made;
}

TranscriptSummary turn_open(std::vector<OpenCall> calls = {}) {
  TranscriptSummary said;
  said.known = said.turn_open = true;
  said.turn_started = "2023-11-14T22:10:00.000Z";
  said.last_activity = "2023-11-14T22:12:00.000Z";
  said.last_growth_ms = noon_ms;
  said.calls = std::move(calls);
  return said;
}

TranscriptSummary turn_finished() {
  TranscriptSummary said = turn_open();
  said.turn_open = false;
  said.turn_finished = "2023-11-14T22:11:00.000Z";
  return said;
}

Status with_entry(const RegistryEntry& spoken, Liveness life, const TranscriptSummary& said) {
  Evidence evidence;
  evidence.entry = &spoken;
  evidence.life = life;
  evidence.had_entry = true;
  return decide(evidence, said);
}

const OpenCall bash{"c1", "Bash", R"({"command":"make test","description":"Run"})"};
const OpenCall write_file{"c2", "Write", R"({"file_path":"/src/a.cpp","content":"int"})"};
const OpenCall ask{"c3", "AskUserQuestion", R"({"questions":[{"question":"Tabs or spaces?","options":[]}]})",
                   "", "2023-11-14T22:11:30.000Z"};
const OpenCall plan{"c4", "ExitPlanMode", R"({"plan":"# Tidy the attic\n\n1. boxes"})"};
const OpenCall subagent{"c5", "Agent", R"({"prompt":"look around"})"};

}  // namespace

TEST_CASE("a living registry's word decides") {
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
      {"waiting", "dialog open", {bash}, "waiting", "dialog", ""},
      {"waiting", "dialog open", {ask}, "waiting", "question", "Tabs or spaces?"},
      {"waiting", "something new", {}, "waiting", "dialog", ""},
      {"waiting", "", {}, "waiting", "dialog", ""},
  };
  for (const Row& row : rows) {
    for (const bool open : {true, false}) {
      CAPTURE(row.word, row.waiting_for, row.calls.size(), open);
      TranscriptSummary said = open ? turn_open(row.calls) : turn_finished();
      said.calls = row.calls;
      const Status status = with_entry(entry(row.word, row.waiting_for), Liveness::alive, said);
      CHECK(status.state == row.state);
      CHECK(status.reason == row.reason);
      CHECK(status.detail == row.detail);
      CHECK(status.source == "registry");
      CHECK(status.since == noon);
    }
  }
}

TEST_CASE("a registry without a word, or with one we do not know, leaves it to the transcript") {
  for (const char* word : {"", "dreaming"}) {
    CAPTURE(word);
    const Status working = with_entry(entry(word), Liveness::alive, turn_open());
    CHECK(working.state == "working");
    CHECK(working.source == "transcript");
    CHECK(with_entry(entry(word), Liveness::alive, turn_finished()).state == "idle");
    const Status silent = with_entry(entry(word), Liveness::alive, TranscriptSummary{});
    CHECK(silent.state == "unknown");
    CHECK(silent.since == noon);
  }
}

TEST_CASE("a dead process has ended, whatever its file and the transcript say") {
  for (const char* word : {"busy", "idle", "waiting", "shell", ""}) {
    for (const TranscriptSummary& said :
         {turn_open(), turn_open({ask}), turn_finished(), TranscriptSummary{}}) {
      const Status status = with_entry(entry(word), Liveness::dead, said);
      CHECK(status.state == "ended");
      CHECK(status.reason.empty());
      CHECK(status.detail.empty());
      CHECK(status.source == "registry");
      CHECK(status.since == noon);  // later than the transcript's last line; when it died nobody saw
    }
  }
}

TEST_CASE("a registry file that went means ended, since the moment when that was noticed") {
  Evidence evidence;
  evidence.had_entry = evidence.seen_alive = true;
  evidence.ended_ms = noon_ms + 5;
  const Status status = decide(evidence, turn_open());
  CHECK(status.state == "ended");
  CHECK(status.since == "2023-11-14T22:13:20.005Z");
}

TEST_CASE("a turn that began after the end was noticed belongs to a version without a registry") {
  Evidence evidence;
  evidence.had_entry = evidence.seen_alive = true;
  evidence.ended_ms = noon_ms;
  TranscriptSummary said = turn_open();
  said.turn_started = "2023-11-14T22:14:00.000Z";
  CHECK(decide(evidence, said).state == "working");
  said.turn_open = false;
  CHECK(decide(evidence, said).state == "idle");
  said.turn_started = "2023-11-14T22:13:00.000Z";
  CHECK(decide(evidence, said).state == "ended");
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
    const Status status = decide(none, turn_open());
    CHECK(status == Status{"working", "", "", "transcript", "2023-11-14T22:10:00.000Z"});
  }
  SECTION("a finished turn is idle since it finished") {
    CHECK(decide(none, turn_finished()) == Status{"idle", "", "", "transcript", "2023-11-14T22:11:00.000Z"});
  }
  SECTION("an unanswered question is waiting since it was asked") {
    CHECK(decide(none, turn_open({bash, ask})) ==
          Status{"waiting", "question", "Tabs or spaces?", "transcript", "2023-11-14T22:11:30.000Z"});
  }
  SECTION("an unanswered plan is waiting; without a time of its own, since the last line") {
    CHECK(decide(none, turn_open({plan})) ==
          Status{"waiting", "plan", "plan: Tidy the attic", "transcript", "2023-11-14T22:12:00.000Z"});
  }
  SECTION("an open call is never taken for a permission prompt") {
    Evidence quiet;
    quiet.quiet = minutes(60 * 24);
    CHECK(decide(quiet, turn_open({bash})).state == "working");
  }
  SECTION("no transcript is unknown") { CHECK(decide(none, TranscriptSummary{}).state == "unknown"); }
}

TEST_CASE("an open turn that has not grown for ten minutes is unknown, by the clock") {
  Evidence evidence;
  evidence.quiet = minutes(10) - std::chrono::milliseconds(1);
  CHECK(decide(evidence, turn_open()).state == "working");
  evidence.quiet = minutes(10);
  CHECK(decide(evidence, turn_open()) == Status{"unknown", "", "", "clock", "2023-11-14T22:23:20.000Z"});
  CHECK(decide(evidence, turn_finished()).state == "idle");
  CHECK(decide(evidence, turn_open({ask})).state == "waiting");
  CHECK(with_entry(entry("busy"), Liveness::alive, turn_open()).state == "working");
}

TEST_CASE("a compaction is work, but denies no wait, no end and no other machine") {
  Evidence evidence;
  evidence.compacting_ms = noon_ms;
  const Status compaction{"working", "compaction", "", "transcript", noon};
  CHECK(decide(evidence, turn_open()) == compaction);
  CHECK(decide(evidence, turn_finished()) == compaction);
  evidence.quiet = minutes(11);
  CHECK(decide(evidence, turn_open()) == compaction);

  RegistryEntry spoken = entry("busy");
  evidence.entry = &spoken;
  evidence.had_entry = true;
  evidence.life = Liveness::alive;
  CHECK(decide(evidence, turn_open()) == compaction);
  spoken = entry("waiting", "permission prompt");
  CHECK(decide(evidence, turn_open()).state == "waiting");
  evidence.life = Liveness::foreign;
  CHECK(decide(evidence, turn_open()).state == "unknown");
  evidence.life = Liveness::dead;
  CHECK(decide(evidence, turn_open()).state == "ended");
}

TEST_CASE("since stays while state and reason stay") {
  const Status before{"working", "", "", "transcript", "2023-01-01T00:00:00.000Z"};
  CHECK(settle(before, {"working", "", "", "registry", noon}).since == before.since);
  CHECK(settle(before, {"idle", "", "", "registry", noon}).since == noon);
  CHECK(settle(Status{}, {"unknown", "", "", "transcript", noon}).since == noon);
}

TEST_CASE("a detail that comes late refines the status, with the same since") {
  const RegistryEntry waiting = entry("waiting", "permission prompt");
  const Status bare = with_entry(waiting, Liveness::alive, turn_open());
  const Status joined = settle(bare, with_entry(waiting, Liveness::alive, turn_open({bash})));
  CHECK(joined.detail == "approve Bash: make test");
  CHECK(joined.since == bare.since);
  const Status question = settle(bare, with_entry(waiting, Liveness::alive, turn_open({ask})));
  CHECK(question.reason == "question");
  CHECK(question.since == bare.since);
}

TEST_CASE("a later wait that the registry tells is a new one, though nobody saw the work in between") {
  RegistryEntry waiting = entry("waiting", "permission prompt");
  const Status first = with_entry(waiting, Liveness::alive, turn_open({bash}));
  waiting.status_updated_ms += 2000;
  const Status second = settle(first, with_entry(waiting, Liveness::alive, turn_open({write_file})));
  CHECK(second.since == "2023-11-14T22:13:22.000Z");
}

TEST_CASE("a detail says what is asked for") {
  struct Row {
    std::string tool, input, detail;
  };
  const std::vector<Row> rows = {
      {"Bash", R"({"command":"ls"})", "approve Bash: ls"},
      {"Bash", R"({"command":{"text":"cat <<EOF","bytes":9000,"truncated":true}})",
       "approve Bash: cat <<EOF"},
      {"Bash", R"({"command":7})", "approve Bash"},
      {"Bash", R"({"comm)", "approve Bash"},
      {"Bash", "", "approve Bash"},
      {"Edit", R"({"file_path":"/a b"})", "approve Edit: /a b"},
      {"NotebookEdit", R"({"notebook_path":"/n.ipynb"})", "approve NotebookEdit: /n.ipynb"},
      {"WebFetch", R"({"url":"https://example.org/"})", "approve WebFetch: https://example.org/"},
      {"mcp__db__drop", R"({"table":"users"})", "approve mcp__db__drop"},
      {"AskUserQuestion", R"({"questions":[]})", ""},
      {"AskUserQuestion", R"({"question":"Really?"})", "Really?"},
      {"ExitPlanMode", R"({})", "plan"},
      {"ExitPlanMode", R"({"plan":"\n\n## One\nTwo"})", "plan: One"},
      {"Bash", R"({"command":"a\nb\u001b[31m\u009bc\u007f"})", "approve Bash: a b [31m  c "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.tool, row.input);
    CHECK(detail_of({"c", row.tool, row.input}) == row.detail);
  }
}

TEST_CASE("a long detail is cut on a character boundary") {
  std::string command;
  for (int i = 0; i < 400; ++i) command += "ä";
  const std::string detail = detail_of({"c", "Bash", R"({"command":")" + command + "\"}"});
  CHECK(detail.size() <= detail_bytes_max);
  CHECK(detail.size() >= detail_bytes_max - 1);
  CHECK(detail.ends_with("ä"));
  CHECK(one_line("aä", 2) == "a");
  CHECK(one_line("aä", 3) == "aä");
}

TEST_CASE("times are RFC 3339 in UTC with milliseconds") {
  CHECK(rfc3339(noon_ms + 7) == "2023-11-14T22:13:20.007Z");
  CHECK(rfc3339(0).empty());
  CHECK(rfc3339(-5).empty());
  CHECK(rfc3339(std::numeric_limits<std::int64_t>::max()).empty());
}
