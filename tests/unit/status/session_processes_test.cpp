#include "status/session_processes.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "base/clock.hpp"
#include "base/quantities.hpp"
#include "unit/status/fake_proc.hpp"
#include "unit/status/tracker_fixture.hpp"

using namespace earshot;
using namespace earshot::status;
using namespace std::chrono_literals;

#ifdef __linux__

namespace {

/// A tracker on a simulated /proc that waits a short time for a process.
struct ProcessFixture : FakeProc, ManualFixture {
  ProcessFixture() : ManualFixture(options(*this)) { start(); }
  /// As if the daemon was started now.
  void restart() {
    make(options(*this));
    start();
  }
  static StatusTrackerOptions options(const FakeProc& proc) {
    StatusTrackerOptions options;
    options.proc_dir = proc.scratch / "proc";
    options.machine_id_path = proc.scratch / "machine-id";
    options.process_patience = 20ms;
    return options;
  }
  const AgentProgram* program = &default_program();  // of the next sessions
  /// A session with an open turn whose last line is old.
  void session(const std::string& name, const std::string& version = "2.0.1", std::int64_t age_ms = 60'000,
               bool turn_open = true) {
    TranscriptSummary summary = working_turn();
    summary.turn_open = turn_open;
    summary.last_growth_ms -= age_ms;
    summary.program = program->program();
    summary.version = version;
    summary.directories = {"/home/x"};
    summary.path = root / ("projects/-home-x/" + name + ".jsonl");
    tracker->transcript_changed(name, summary);
  }
  bool becomes(const std::string& name, const std::string& state) {
    return until([&] { return this->state(name) == state; });
  }
  /// Runs the loop until another session that has no process either has ended: by then `name` would have,
  /// too.
  void settle() {
    const std::string name = "other" + std::to_string(++others_);
    TranscriptSummary summary = working_turn();
    summary.last_growth_ms -= 60'000;
    summary.version = "2.1.330";  // decided by the registry
    summary.directories = {"/elsewhere"};
    summary.path = root / "projects/-elsewhere/" + name + ".jsonl";
    tracker->transcript_changed(name, summary);
    REQUIRE(becomes(name, "ended"));
  }

 private:
  int others_ = 0;
};

bool is_root_local(const ProcessFixture& fixture) {
  if (is_on_local_file_system(fixture.root.path())) return true;
  WARN("skipped: " << fixture.root.path() << " is not on a local file system");
  return false;
}

}  // namespace

TEST_CASE("fault 105: an open turn has ended when its process has exited") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.session("s");
  REQUIRE(fixture.becomes("s", "ended"));
  CHECK(fixture.observer.states_of("s") == std::vector<std::string>{"ended"});  // never `working`
  const Status status = fixture.tracker->status_of("s");
  CHECK(status.source == "process");
  CHECK(status.since == "2023-11-14T22:10:00.000Z");  // the last line: the process was never seen
}

TEST_CASE("fault 105: a session is not ended while a process runs in its directory") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.process(70, {"claude"}, "/home/x");
  fixture.session("s");
  fixture.settle();
  CHECK(fixture.state("s") == "working");
  fixture.exit(70);
  REQUIRE(fixture.becomes("s", "ended"));
  CHECK(fixture.tracker->status_of("s").since > "2026");  // its end was noticed
}

TEST_CASE("fault 105: a process that has the transcript open runs the session") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.process(70, {"claude"}, "/tmp");
  std::filesystem::create_directories(fixture.scratch / "proc/70/fd");
  std::filesystem::create_symlink(fixture.root / "projects/-home-x/s.jsonl",
                                  fixture.scratch / "proc/70/fd/9");
  fixture.session("s");
  fixture.settle();
  CHECK(fixture.state("s") == "working");
}

TEST_CASE("the process of a session is named while it lives") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.process(70, {"claude"}, "/home/x");
  fixture.session("s");
  fixture.settle();
  const auto found = fixture.tracker->process_of("s");
  REQUIRE(found);
  CHECK(found->pid == 70);
  CHECK(found->source == "process");
  CHECK(found->program == &default_program());
  CHECK_FALSE(fixture.tracker->process_of("other"));
  fixture.exit(70);  // not noticed yet
  CHECK_FALSE(fixture.tracker->process_of("s"));
}

TEST_CASE("of two processes in the directory the one that has the transcript open is named") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.process(70, {"claude"}, "/home/x");
  fixture.process(71, {"claude"}, "/home/x");
  fixture.session("s");
  fixture.settle();
  CHECK(fixture.state("s") == "working");
  CHECK_FALSE(fixture.tracker->process_of("s"));  // either may run it
  std::filesystem::create_directories(fixture.scratch / "proc/71/fd");
  std::filesystem::create_symlink(fixture.root / "projects/-home-x/s.jsonl",
                                  fixture.scratch / "proc/71/fd/9");
  fixture.restart();
  fixture.session("s");
  fixture.settle();
  const auto found = fixture.tracker->process_of("s");
  REQUIRE(found);
  CHECK(found->pid == 71);
}

TEST_CASE("a program that keeps its transcripts open runs none of its directory's other sessions") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.program = find_agent_program("codex");
  fixture.process(70, {"codex"}, "/home/x");
  std::filesystem::create_directories(fixture.scratch / "proc/70/fd");
  std::filesystem::create_symlink(fixture.root / "projects/-home-x/one.jsonl",
                                  fixture.scratch / "proc/70/fd/9");
  fixture.session("one");
  fixture.session("two");
  REQUIRE(fixture.becomes("two", "ended"));
  CHECK(fixture.state("one") == "working");
  fixture.exit(70);
  REQUIRE(fixture.becomes("one", "ended"));
}

TEST_CASE("a session that has ended does not come back with another process in its directory") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.session("s");
  REQUIRE(fixture.becomes("s", "ended"));
  fixture.process(70, {"claude"}, "/home/x");
  fixture.settle();
  CHECK(fixture.state("s") == "ended");
  fixture.session("s", "2.0.1", 0);  // it has grown
  REQUIRE(fixture.becomes("s", "working"));
}

TEST_CASE("the file beside a transcript that names a dead writer ends the session") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.program = find_agent_program("copilot");
  fixture.process(70, {"somebody"}, "/elsewhere");
  fixture.root.write("projects/-home-x/inuse.70.lock", "70");
  fixture.session("s", "1.0.102", 60'000, false);
  fixture.settle();
  CHECK(fixture.state("s") == "idle");
  fixture.exit(70);
  fixture.session("s", "1.0.102", 50'000, false);
  REQUIRE(fixture.becomes("s", "ended"));
}

TEST_CASE("fault 105: a process with a registry entry runs the session of that entry only") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.process(70, {"claude"}, "/home/x");
  fixture.root.write("sessions/70.json",
                     R"({"pid":70,"sessionId":"t","procStart":"5","cwd":"/home/x","status":"busy"})");
  fixture.tracker->rescan();
  REQUIRE(fixture.becomes("t", "working"));
  fixture.session("s");
  REQUIRE(fixture.becomes("s", "ended"));
  CHECK(fixture.state("t") == "working");
}

TEST_CASE("fault 105: without a view of all processes there is no conclusion") {
  struct Row {
    std::string reason;
    void (*hide)(const ProcessFixture&);
  };
  for (const Row& row :
       {Row{"another pid namespace", [](const ProcessFixture& f) { f.set_namespace("pid:[4026532000]"); }},
        Row{"hidepid",
            [](const ProcessFixture& f) {
              f.scratch.write("proc/self/mounts", "proc " + f.scratch / "proc" + " proc rw,hidepid=2 0 0\n");
            }},
        Row{"another user's process", [](const ProcessFixture& f) { f.process(70, {"claude"}, ""); }}}) {
    CAPTURE(row.reason);
    ProcessFixture fixture;
    row.hide(fixture);
    fixture.restart();
    fixture.session("s");
    if (row.reason != "another user's process") fixture.settle();
    fixture.until([end = Clock::now() + 100ms] { return Clock::now() > end; });
    CHECK(fixture.state("s") == "working");
  }
}

TEST_CASE("fault 108: a version that keeps a registry has ended without an entry") {
  ProcessFixture fixture;
  fixture.set_namespace("pid:[4026532000]");
  fixture.restart();
  fixture.session("old", "2.1.201", 60'000, false);
  fixture.session("new", "2.1.330", 60'000, false);
  REQUIRE(fixture.becomes("new", "ended"));
  CHECK(fixture.tracker->status_of("new").source == "process");
  CHECK(fixture.becomes("old", "idle"));
}

TEST_CASE("fault 105: a session that grows after its end is not ended again without a process") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.session("s");
  REQUIRE(fixture.becomes("s", "ended"));
  fixture.session("s", "2.0.1", 50'000);
  CHECK(fixture.state("s") == "working");
  fixture.settle();
  CHECK(fixture.state("s") == "working");
}

TEST_CASE("a session whose process was seen ends again after a resume that was too short to be seen") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.process(70, {"claude"}, "/home/x");
  fixture.session("s");
  fixture.settle();
  fixture.exit(70);
  REQUIRE(fixture.becomes("s", "ended"));
  fixture.session("s", "2.0.1", -1000);  // after the end was noticed
  CHECK(fixture.state("s") == "working");
  REQUIRE(fixture.becomes("s", "ended"));
}

namespace {

/// Pi processes in one directory; ages in ms.
struct PiFixture : ProcessFixture {
  PiFixture() { program = find_agent_program("pi"); }
  void pi(int pid, std::int64_t age_ms) { process(pid, {"pi"}, "/home/x", "S", start_of_age(age_ms)); }
  /// A session whose newest record is this old.
  void idle(const std::string& name, std::int64_t age_ms) { session(name, "", age_ms, false); }
  void working(const std::string& name, std::int64_t age_ms) { session(name, "", age_ms, true); }
  std::int64_t process_of(const std::string& name) const {
    const auto found = tracker->process_of(name);
    return found ? found->pid : 0;
  }
  bool is_run_by(const std::string& name, std::int64_t pid) {
    return until([&] { return process_of(name) == pid; });
  }
};

}  // namespace

TEST_CASE("fault 119: a process does not run a session whose last record is older") {
  PiFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.pi(70, 30'000);
  fixture.working("before", 60'000);
  fixture.idle("since", 20'000);
  REQUIRE(fixture.becomes("before", "ended"));
  CHECK(fixture.state("since") == "idle");
  CHECK(fixture.is_run_by("since", 70));
  fixture.working("before", 0);  // it was resumed by that process, which has left the other one
  REQUIRE(fixture.becomes("before", "working"));
  REQUIRE(fixture.becomes("since", "ended"));
}

TEST_CASE("fault 119: of several processes in one directory each runs one session") {
  PiFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.pi(70, 100'000);
  fixture.idle("a", 90'000);
  REQUIRE(fixture.is_run_by("a", 70));
  fixture.pi(71, 80'000);
  fixture.idle("b", 70'000);
  REQUIRE(fixture.is_run_by("b", 71));
  SECTION("its exit ends its session") {
    fixture.exit(71);
    REQUIRE(fixture.becomes("b", "ended"));
    fixture.settle();
    CHECK(fixture.state("a") == "idle");
  }
  SECTION("the other's exit ends the other one") {
    fixture.exit(70);
    REQUIRE(fixture.becomes("a", "ended"));
    fixture.settle();
    CHECK(fixture.state("b") == "idle");
  }
  SECTION("a third one is a third session's") {
    fixture.pi(72, 50'000);
    fixture.idle("c", 40'000);
    REQUIRE(fixture.is_run_by("c", 72));
    fixture.exit(70);
    REQUIRE(fixture.becomes("a", "ended"));
    fixture.settle();
    CHECK(fixture.state("b") == "idle");
    CHECK(fixture.state("c") == "idle");
  }
  SECTION("a daemon that starts later sees the same") {
    fixture.restart();
    fixture.idle("a", 90'000);
    fixture.idle("b", 70'000);
    REQUIRE(fixture.is_run_by("b", 71));
    REQUIRE(fixture.is_run_by("a", 70));
  }
}

TEST_CASE("fault 119: a process that goes on to another session leaves the one before") {
  PiFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.pi(70, 100'000);
  fixture.idle("a", 90'000);
  REQUIRE(fixture.is_run_by("a", 70));
  fixture.working("fork", 10'000);
  REQUIRE(fixture.becomes("a", "ended"));
  CHECK(fixture.state("fork") == "working");
  fixture.working("fork of the fork", 5'000);  // its own turn is open: it is not left
  fixture.settle();
  CHECK(fixture.state("fork") == "working");
  CHECK(fixture.state("fork of the fork") == "working");
  fixture.idle("fork", 1'000);
  fixture.idle("fork of the fork", 0);
  REQUIRE(fixture.becomes("fork", "ended"));
  CHECK(fixture.state("fork of the fork") == "idle");
  fixture.exit(70);
  REQUIRE(fixture.becomes("fork of the fork", "ended"));
}

TEST_CASE("fault 119: what cannot be decided is unchanged") {
  PiFixture fixture;
  if (!is_root_local(fixture)) return;
  SECTION("which of two sessions one process runs, that were both written since it began") {
    fixture.pi(70, 100'000);
    fixture.idle("a", 90'000);
    fixture.idle("b", 80'000);
    fixture.settle();
    CHECK(fixture.state("a") == "idle");
    CHECK(fixture.state("b") == "idle");
    fixture.idle("b", 0);  // now it is known
    REQUIRE(fixture.becomes("a", "ended"));
    CHECK(fixture.state("b") == "idle");
  }
  SECTION("a process that hides its directory") {
    fixture.pi(70, 100'000);
    fixture.process(71, {"pi"}, "", "S", FakeProc::start_of_age(100'000));
    fixture.idle("a", 90'000);
    fixture.settle();
    fixture.idle("b", 0);
    fixture.settle();
    CHECK(fixture.state("a") == "idle");
    CHECK(fixture.state("b") == "idle");
  }
}

namespace {

/// A process that holds a lock, as the writer of a transcript does, until it is killed.
class LockHolder {
 public:
  explicit LockHolder(const std::string& path) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    child_ = std::make_unique<Child>([&] {
      const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (file < 0 || ::flock(file, LOCK_EX) != 0 || ::write(ready[1], "x", 1) != 1) ::_exit(1);
    });
    ::close(ready[1]);
    char held = 0;
    REQUIRE(::read(ready[0], &held, 1) == 1);
    ::close(ready[0]);
  }
  void end() { child_->end(); }

 private:
  std::unique_ptr<Child> child_;
};

/// Codex threads and real processes. Nothing follows from patience: it is an hour.
struct ThreadFixture : Loop {
  TemporaryDirectory scratch;
  RecordingObserver observer;
  SilentWatcher watcher;
  std::unique_ptr<StatusTracker> tracker;
  const AgentProgram* codex = find_agent_program("codex");
  const std::string thread = "0199a213-81c0-7800-8aa1-bbab2a035a53";
  const std::string lock = scratch / ("thread-writer-locks/" + thread + ".lock");
  ThreadFixture() {
    std::filesystem::create_directories(scratch / "thread-writer-locks");
    StatusTrackerOptions options;
    options.process_patience = std::chrono::hours(1);
    tracker = std::make_unique<StatusTracker>(io, disk.get_executor(),
                                              std::vector<Root>{{"r", scratch.path(), true, codex}}, watcher,
                                              observer, options);
    tracker->start();
  }
  ~ThreadFixture() {
    tracker.reset();
    disk.join();
  }
  /// The thread with this state in its records, all of which are `age_ms` old.
  void show(TranscriptSummary summary, std::int64_t age_ms = 0) {
    summary.program = "codex";
    summary.path = scratch / ("sessions/2026/01/01/rollout-2026-01-01T10-00-00-" + thread + ".jsonl");
    summary.last_growth_ms = wall_now_ms() - age_ms;
    summary.turn_grown_ms = summary.last_growth_ms;
    summary.last_activity = format_time_if_valid(summary.last_growth_ms);
    for (OpenCall& call : summary.calls) call.started_ms = summary.turn_grown_ms;
    for (OpenRequest& request : summary.requests) request.started_ms = summary.turn_grown_ms;
    tracker->transcript_changed(thread, summary);
  }
  bool becomes(const std::string& state) {
    return until([&] { return tracker->status_of(thread).state == state; });
  }
};

const OpenCall command{"c1", "exec_command", R"({"cmd":"make"})"};

}  // namespace

TEST_CASE("fault 117: the exit of a process that held the transcript's lock ends the session at once") {
  ThreadFixture fixture;
  LockHolder writer(fixture.lock);
  fixture.show(working_turn({command}));
  REQUIRE(fixture.becomes("working"));
  REQUIRE(fixture.until([&] { return fixture.tracker->process_of(fixture.thread).has_value(); }));
  writer.end();
  CHECK(fixture.becomes("ended"));
  // What it wrote before it exited is read afterwards.
  fixture.show(working_turn({command}), 60'000);
  CHECK(fixture.tracker->status_of(fixture.thread).state == "ended");
}

TEST_CASE("fault 117: a lock that is removed ends a session whose process was never seen") {
  ThreadFixture fixture;
  fixture.show(finished_turn());
  REQUIRE(fixture.becomes("idle"));
  fixture.tracker->on_change(fixture.lock);
  CHECK(fixture.becomes("ended"));
}

TEST_CASE("fault 119: the exit of the only process that can run a session ends it at once") {
  PiFixture fixture;
  if (!is_root_local(fixture)) return;
  StatusTrackerOptions options;  // the real /proc
  options.process_patience = std::chrono::hours(1);
  fixture.make(options);
  fixture.start();
  const std::string directory = fixture.root / "work";
  std::filesystem::create_directories(directory);
  Child child([&] {
    if (::chdir(directory.c_str()) == 0) ::execl("/bin/sleep", "pi", "600", nullptr);
    ::_exit(1);
  });
  TranscriptSummary summary = working_turn();
  summary.program = "pi";
  summary.directories = {directory};
  summary.path = fixture.root / "sessions/s.jsonl";
  summary.last_growth_ms = wall_now_ms() + start_slack.count();
  REQUIRE(fixture.until([&] {
    std::ifstream arguments("/proc/" + std::to_string(child.pid()) + "/cmdline");
    std::string first;
    return std::getline(arguments, first, '\0') && first == "pi";
  }));
  fixture.tracker->transcript_changed("s", summary);
  REQUIRE(fixture.is_run_by("s", child.pid()));
  child.end();
  CHECK(fixture.becomes("s", "ended"));
}

TEST_CASE("fault 118: the lock of a new process shows that an ended session was resumed") {
  ThreadFixture fixture;
  LockHolder first(fixture.lock);
  fixture.show(working_turn({command}));
  const std::int64_t shown_ms = wall_now_ms();
  REQUIRE(fixture.becomes("working"));
  REQUIRE(fixture.until([&] { return fixture.tracker->process_of(fixture.thread).has_value(); }));
  first.end();
  REQUIRE(fixture.becomes("ended"));
  // fault 115: the turn and the call are those of the first process.
  REQUIRE(fixture.until([&] { return wall_now_ms() > shown_ms + 2 * start_slack.count(); }));
  std::filesystem::remove(fixture.lock);
  LockHolder second(fixture.lock);
  fixture.tracker->on_change(fixture.lock);
  CHECK(fixture.becomes("idle"));
  fixture.show(working_turn({command}));
  CHECK(fixture.becomes("working"));
  second.end();
  CHECK(fixture.becomes("ended"));
}

TEST_CASE("fault 115: the daemon starts when a session was resumed whose process had died in a turn") {
  ThreadFixture fixture;
  LockHolder resumed(fixture.lock);
  TranscriptSummary asks = working_turn({command});
  asks.requests = {{"q", "question", "c1", "", "", asks.turn_started}};
  fixture.show(asks, 60'000);
  REQUIRE(fixture.becomes("idle"));
  CHECK(fixture.observer.states_of(fixture.thread) == std::vector<std::string>{"idle"});  // fault 163
}

TEST_CASE("fault 163: the first status of a session follows an examination of its processes") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  bool is_examined = false;
  fixture.program = find_agent_program("codex");
  fixture.session("s");
  fixture.program = &default_program();
  fixture.session("registered", "2.1.330");
  CHECK(fixture.state("s") == "unknown");
  fixture.tracker->when_examined([&] { is_examined = true; });
  REQUIRE(fixture.until([&] { return is_examined; }));
  CHECK(fixture.observer.states_of("s") == std::vector<std::string>{"ended"});
  CHECK(fixture.observer.states_of("registered") == std::vector<std::string>{"ended"});
}

TEST_CASE("fault 115: what had ended when the daemon starts is not waited for, in any program") {
  for (const std::string_view name : {"claude-code", "codex", "copilot", "pi"}) {
    CAPTURE(name);
    ProcessFixture fixture;
    if (!is_root_local(fixture)) return;
    StatusTrackerOptions options = ProcessFixture::options(fixture);
    options.process_patience = std::chrono::hours(1);
    fixture.make(options);
    fixture.start();
    fixture.program = find_agent_program(name);
    REQUIRE(fixture.program);
    fixture.session("s");
    CHECK(fixture.becomes("s", "ended"));
    CHECK(fixture.observer.states_of("s") == std::vector<std::string>{"ended"});
  }
}

TEST_CASE("fault 105: no timer is left once everything is decided") {
  ProcessFixture fixture;
  if (!is_root_local(fixture)) return;
  fixture.session("s", "2.0.1", 60'000, false);
  REQUIRE(fixture.becomes("s", "ended"));
  fixture.drain();
}

TEST_CASE("fault 104: the registry names program and project before the first line of a transcript") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
  fixture.start_until("s", "working");
  const Status status = fixture.tracker->status_of("s");
  CHECK(status.program == "claude-code");
  CHECK(status.project == "/home/x");
}

#endif
