#include "status/status_tracker.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "unit/status/open_recorder.hpp"
#include "unit/status/tracker_fixture.hpp"

namespace status_tracker_test {

using namespace earshot;
using namespace earshot::status;
using test::TemporaryDirectory;
using States = std::vector<std::string>;

#ifdef __linux__

namespace {

const OpenCall bash{"c1", "Bash", R"({"command":"make test"})"};

}  // namespace

TEST_CASE("a session's status follows its registry file") {
  TrackerFixture fixture;
  Child child;
  const std::string file = "root/" + registry_name(child.pid());
  fixture.scratch.write(file, registry_of(child.pid(), "s"));
  fixture.tracker->start();
  REQUIRE(fixture.until([&] { return fixture.state("s") == "idle"; }));  // it states nothing yet
  CHECK(fixture.tracker->is_alive("s"));
  CHECK(fixture.tracker->alive_sessions() == std::vector<std::string>{"s"});
  const auto becomes = [&](const std::string& text, const std::string& state) {
    fixture.scratch.write(file, text);
    return fixture.until([&] { return fixture.state("s") == state; });
  };
  fixture.scratch.write(file, registry_of(child.pid(), "s", "idle", "", 1'700'000'000'000));
  REQUIRE(fixture.until([&] { return fixture.tracker->status_of("s").since == "2023-11-14T22:13:20.000Z"; }));
  CHECK(becomes(registry_of(child.pid(), "s", "busy", "", 1'700'000'001'000), "working"));
  CHECK(becomes(registry_of(child.pid(), "s", "waiting", "permission prompt", 1'700'000'002'000), "waiting"));
  CHECK(becomes(registry_of(child.pid(), "s", "busy", "", 1'700'000'003'000), "working"));
  CHECK(becomes(registry_of(child.pid(), "s", "shell", "", 1'700'000'004'000), "idle"));
  CHECK(fixture.tracker->status_of("s").since == "2023-11-14T22:13:24.000Z");
  fixture.scratch.remove(file);
  CHECK(fixture.until([&] { return fixture.state("s") == "ended"; }));
  CHECK_FALSE(fixture.tracker->is_alive("s"));
  CHECK(fixture.observer.states_of("s") ==
        States{"idle", "idle", "working", "waiting/permission", "working", "idle/background", "ended"});
}

TEST_CASE("statuses are published beside a root of a program that has no registry") {
  Loop loop;
  TemporaryDirectory root, other;
  SilentWatcher watcher;
  RecordingObserver observer;
  root.write(registry_name(::getpid()), registry_of(::getpid(), "s", "busy"));
  std::vector<Root> roots{{"r", root.path()}};
  for (const AgentProgram* program : agent_programs())
    roots.push_back({std::string(program->program()), other.path(), true, program});
  StatusTracker tracker(loop.io, loop.disk.get_executor(), roots, watcher, observer, {});
  tracker.start();
  REQUIRE(loop.until([&] { return tracker.status_of("s").state == "working"; }));
  tracker.stop();
  loop.disk.join();
}

TEST_CASE("a killed process ends its session without any notification") {
  for (const char* proc : {"/proc", "/proc/."}) {  // with exit watches, and with polling
    CAPTURE(proc);
    StatusTrackerOptions options;
    options.proc_dir = proc;
    options.poll = std::chrono::milliseconds(10);
    ManualFixture fixture(options);
    Child child;
    fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
    fixture.start_until("s", "working");
    child.end();
    REQUIRE(fixture.until([&] { return fixture.state("s") == "ended"; }));
    fixture.drain();  // returns: no timer is left
    CHECK(fixture.observer.states_of("s") == States{"working", "ended"});
  }
}

TEST_CASE("the process in the registry is named while it lives") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
  fixture.start_until("s", "working");
  const auto found = fixture.tracker->process_of("s");
  REQUIRE(found);
  CHECK(found->pid == child.pid());
  CHECK(found->source == "registry");
  CHECK(found->program->program() == "claude-code");
  CHECK_FALSE(fixture.tracker->process_of("other"));
  child.end();  // the loop has not noticed it
  CHECK_FALSE(fixture.tracker->process_of("s"));
}

TEST_CASE("a stale file, a reused pid and another namespace") {
  ManualFixture fixture;
  Child child;
  const std::string self = registry_of(child.pid(), "reused", "busy");
  const auto start = self.find("procStart\":\"") + 12;
  fixture.root.write(registry_name(child.pid()), self.substr(0, start) + "9" + self.substr(start));
  fixture.root.write("sessions/2147483646.json",
                     R"({"sessionId":"stale","status":"busy","statusUpdatedAt":1700000000000})");
  fixture.root.write("sessions/1.json",
                     R"({"sessionId":"foreign","status":"busy","pidDomain":"linux:elsewhere:pid:[1]"})");
  fixture.start();
  CHECK(fixture.state("reused") == "ended");
  CHECK(fixture.state("stale") == "ended");
  CHECK(fixture.tracker->status_of("stale").since == "2023-11-14T22:13:20.000Z");
  CHECK(fixture.state("foreign") == "unknown");
  CHECK(fixture.tracker->alive_sessions().empty());
  for (const char* session : {"reused", "stale", "foreign"})
    CHECK_FALSE(fixture.tracker->process_of(session));
}

TEST_CASE("an empty file keeps the last state and is read again without a hint") {
  ManualFixture fixture;
  Child child;
  const std::string file = registry_name(child.pid());
  const std::string whole = registry_of(child.pid(), "s", "waiting", "input needed");
  fixture.root.write(file, registry_of(child.pid(), "s", "busy"));
  fixture.start_until("s", "working");
  for (const std::string& torn : {std::string(), whole.substr(0, 60), std::string("null")}) {
    CAPTURE(torn);
    fixture.root.write(file, torn);
    fixture.change(file);
    CHECK(fixture.state("s") == "working");
    fixture.root.write(file, whole);
    CHECK(fixture.until([&] { return fixture.state("s") == "waiting"; }));
    fixture.root.write(file, registry_of(child.pid(), "s", "busy"));
    fixture.change(file);
    CHECK(fixture.state("s") == "working");
  }
}

TEST_CASE("a file that stays malformed is not read again until its next hint") {
  StatusTrackerOptions options;
  options.retry = std::chrono::milliseconds(1);
  ManualFixture fixture(options);
  fixture.root.write("sessions/2147483646.json", "{");
  fixture.start();  // returns: the retries are bounded
  CHECK(fixture.observer.statuses.empty());
  fixture.root.write("sessions/2147483646.json", R"({"sessionId":"s"})");
  fixture.change("sessions/2147483646.json");
  CHECK(fixture.state("s") == "ended");
}

TEST_CASE("keys, pipes, links and files of other names are never opened") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
  const std::string key = std::to_string(child.pid()) + ".key";
  fixture.root.write("sessions/" + key, registry_of(child.pid(), "secret", "busy"));
  fixture.root.write("sessions/notes.json", registry_of(child.pid(), "notes", "busy"));
  fixture.root.write("elsewhere.json", registry_of(child.pid(), "linked", "busy"));
  std::filesystem::create_symlink(fixture.root / "elsewhere.json", fixture.root / "sessions/77.json");
  REQUIRE(::mkfifo((fixture.root / "sessions/78.json").c_str(), 0600) == 0);  // opening it could block
  OpenRecorder opens(fixture.root / "sessions");
  fixture.start_until("s", "working");
  for (const std::string& name :
       {key, std::string("notes.json"), std::string("77.json"), std::string("78.json")})
    fixture.change(("sessions/" + name));
  fixture.tracker->rescan();
  fixture.change("sessions");
  fixture.root.write("sessions/2147483646.json", R"({"sessionId":"last"})");
  fixture.change("sessions");
  REQUIRE(fixture.until([&] { return fixture.state("last") == "ended"; }));
  const auto opened = opens.names();
  CHECK(opened.count(std::to_string(child.pid()) + ".json") > 0);
  CHECK(opened.count(key) == 0);
  CHECK(opened.count("notes.json") == 0);
  CHECK(fixture.observer.states_of("linked").empty());
  CHECK(fixture.observer.states_of("secret").empty());
}

TEST_CASE("without a state in the registry the transcript decides, and an exit still ends the session") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s"));
  fixture.tracker->transcript_changed("s", working_turn());
  fixture.start_until("s", "working");
  CHECK(fixture.tracker->status_of("s").source == "transcript");
  TranscriptSummary finished = working_turn();
  finished.turn_open = false;
  fixture.tracker->transcript_changed("s", finished);
  CHECK(fixture.state("s") == "idle");
  child.end();
  CHECK(fixture.until([&] { return fixture.state("s") == "ended"; }));
  fixture.tracker->transcript_changed("s", finished);  // the last lines arrive after the exit
  CHECK(fixture.state("s") == "ended");
}

TEST_CASE("a late detail refines the status and keeps its since") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()),
                     registry_of(child.pid(), "s", "waiting", "permission prompt"));
  fixture.start_until("s", "waiting");
  CHECK(fixture.tracker->status_of("s").detail.empty());
  const std::string since = fixture.tracker->status_of("s").since;
  fixture.tracker->transcript_changed("s", working_turn({bash}));
  CHECK(fixture.tracker->status_of("s") ==
        Status{"waiting", "permission", "approve Bash: make test", "registry", since,
               "registry:" + std::to_string(child.pid()) + "@" + since, "", "claude-code", "/home/x", ""});
  const std::size_t published = fixture.observer.statuses.size();
  fixture.tracker->transcript_changed("s", working_turn({bash}));
  CHECK(fixture.observer.statuses.size() == published);  // only changes are published
}

TEST_CASE("a call named by one wait is not named by the next, even if it is still open in the transcript") {
  ManualFixture fixture;
  Child child;
  const std::string path = registry_name(child.pid());
  const auto say = [&](const std::string& status, const std::string& waiting_for) {
    fixture.root.write(path, registry_of(child.pid(), "s", status, waiting_for));
    fixture.change(path);
  };
  fixture.root.write(path, registry_of(child.pid(), "s", "waiting", "permission prompt"));
  fixture.start_until("s", "waiting");
  fixture.tracker->transcript_changed("s", working_turn({bash}));
  CHECK(fixture.tracker->status_of("s").detail == "approve Bash: make test");
  say("busy", "");
  CHECK(fixture.state("s") == "working");
  say("waiting", "permission prompt");
  CHECK(fixture.tracker->status_of("s").detail.empty());
  const OpenCall next{"c9", "Write", R"({"file_path":"/src/b.cpp"})", "", ""};
  fixture.tracker->transcript_changed("s", working_turn({bash, next}));
  CHECK(fixture.tracker->status_of("s").detail == "approve Write: /src/b.cpp");
}

TEST_CASE("nothing is published before the registry was read") {
  ManualFixture fixture;
  fixture.root.write("sessions/2147483646.json", R"({"sessionId":"s"})");
  fixture.tracker->transcript_changed("s", working_turn());
  fixture.tracker->start();
  fixture.tracker->transcript_changed("s", working_turn());
  CHECK(fixture.observer.statuses.empty());
  REQUIRE(fixture.until([&] { return !fixture.observer.statuses.empty(); }));
  CHECK(fixture.observer.states_of("s") == States{"ended"});
}

TEST_CASE("a process may switch sessions: the old one has ended") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "old", "idle"));
  fixture.start_until("old", "idle");
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "new", "idle"));
  fixture.change(registry_name(child.pid()));
  CHECK(fixture.state("old") == "ended");
  CHECK(fixture.state("new") == "idle");
  CHECK(fixture.tracker->alive_sessions() == std::vector<std::string>{"new"});
}

TEST_CASE("of several processes of one session the live one decides") {
  ManualFixture fixture;
  Child child;
  fixture.root.write("sessions/2147483646.json",
                     R"({"sessionId":"s","status":"busy","statusUpdatedAt":1800000000000})");
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "idle"));
  fixture.tracker->start();
  REQUIRE(fixture.until([&] { return fixture.state("s") != "unknown"; }));
  CHECK(fixture.state("s") == "idle");
  CHECK(fixture.tracker->is_alive("s"));
  fixture.root.remove(registry_name(child.pid()));
  fixture.change(registry_name(child.pid()));
  CHECK(fixture.state("s") == "ended");
}

TEST_CASE("fault 116: of several live processes the one that needs the user most decides") {
  ManualFixture fixture;
  Child first, second, third;
  const auto say = [&](const Child& child, const std::string& status, const std::string& waiting_for,
                       std::int64_t at) {
    fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", status, waiting_for, at));
  };
  constexpr std::int64_t at = 1'700'000'000'000;
  say(first, "waiting", "permission prompt", at);
  fixture.start_until("s", "waiting");
  const std::string request = fixture.tracker->status_of("s").request;
  const auto next = [&](const Child& child, const std::string& status, const std::string& waiting_for,
                        std::int64_t since) {
    say(child, status, waiting_for, since);
    fixture.change(registry_name(child.pid()));
    const Status shown = fixture.tracker->status_of("s");
    return shown.reason.empty() ? shown.state : shown.state + '/' + shown.reason;
  };
  CHECK(next(second, "idle", "", at + 1000) == "waiting/permission");
  CHECK(next(second, "busy", "", at + 2000) == "waiting/permission");
  CHECK(next(third, "waiting", "dialog open", at + 3000) == "waiting/permission");
  CHECK(next(third, "waiting", "input needed", at + 4000) == "waiting/permission");
  CHECK(fixture.tracker->status_of("s").request == request);  // the oldest
  CHECK(next(first, "idle", "", at + 5000) == "waiting/question");
  CHECK(fixture.tracker->status_of("s").request != request);
  CHECK(next(third, "shell", "", at + 6000) == "working");
  CHECK(next(second, "idle", "", at + 7000) == "idle/background");
  CHECK(next(third, "idle", "", at + 8000) == "idle");
}

TEST_CASE("fault 164: done is told once for a prompt, also if hooks and tasks begin turns") {
  ManualFixture fixture;
  Child child;
  const std::string path = registry_name(child.pid());
  const auto say = [&](const std::string& status) {
    fixture.root.write(path, registry_of(child.pid(), "s", status));
    fixture.change(path);
  };
  TranscriptSummary summary = working_turn();
  const auto turn = [&](std::uint32_t number, bool is_open) {
    summary.turn = number;
    summary.turn_open = is_open;
    if (!is_open) summary.outcome = "completed";
    fixture.tracker->transcript_changed("s", summary);
  };
  const auto told = [&] {
    std::vector<std::uint32_t> turns;
    for (const auto& [session, status] : fixture.observer.statuses)
      if (status.tells_done) turns.push_back(status.done->turn * 10 + status.done->turns);
    return turns;
  };
  fixture.root.write(path, registry_of(child.pid(), "s", "busy"));
  fixture.start_until("s", "working");
  summary.prompted = {1, "2026-01-01T10:00:00.000Z", 1'767'261'600'000, 0};
  turn(1, true);
  turn(1, false);  // its stop hook continues it
  CHECK(told().empty());
  turn(2, true);
  turn(2, false);
  say("idle");
  CHECK(told() == std::vector<std::uint32_t>{12});
  say("busy");  // a notification begins a turn
  turn(3, true);
  turn(3, false);
  say("idle");
  CHECK(told() == std::vector<std::uint32_t>{12});
  CHECK(fixture.tracker->status_of("s").done->turns == 3);
  summary.prompted = {4, "2026-01-01T10:05:00.000Z", 1'767'261'900'000, 0};
  say("busy");
  turn(4, true);
  CHECK_FALSE(fixture.tracker->status_of("s").done);
  say("idle");  // before the last line of the turn
  CHECK(told().size() == 1);
  turn(4, false);
  CHECK(told() == std::vector<std::uint32_t>{12, 41});
  child.end();
  REQUIRE(fixture.until([&] { return fixture.state("s") == "ended"; }));
  CHECK(told().size() == 2);
}

TEST_CASE("what had ended before the start is not told as done") {
  ManualFixture fixture;
  TranscriptSummary summary = finished_turn();
  summary.turn = 2;
  summary.outcome = "completed";
  summary.prompted = {2, "2026-01-01T10:00:00.000Z", 1'767'261'600'000, 0};
  fixture.tracker->transcript_changed("s", summary);
  fixture.start();
  REQUIRE(fixture.until([&] { return fixture.state("s") == "idle"; }));
  CHECK(fixture.tracker->status_of("s").done);
  for (const auto& [session, status] : fixture.observer.statuses) CHECK_FALSE(status.tells_done);
}

TEST_CASE("a registry directory and a root that appear later are used") {
  Child child;
  SECTION("only sessions/ is missing") {
    TrackerFixture fixture;
    std::filesystem::create_directories(fixture.root);
    fixture.tracker->start();
    fixture.scratch.write("root/" + registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
    CHECK(fixture.until([&] { return fixture.state("s") == "working"; }));
  }
  SECTION("the root and its parent are missing") {
    TrackerFixture fixture("a/b/c/root");
    fixture.tracker->start();
    fixture.scratch.write("a/b/c/root/" + registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
    CHECK(fixture.until([&] { return fixture.state("s") == "working"; }));
  }
  SECTION("the root is removed and created again") {
    TrackerFixture fixture;
    const std::string file = "root/" + registry_name(child.pid());
    fixture.scratch.write(file, registry_of(child.pid(), "s", "busy"));
    fixture.tracker->start();
    REQUIRE(fixture.until([&] { return fixture.state("s") == "working"; }));
    std::filesystem::remove_all(fixture.root);
    REQUIRE(fixture.until([&] { return fixture.state("s") == "ended"; }));
    fixture.scratch.write(file, registry_of(child.pid(), "s", "idle"));
    CHECK(fixture.until([&] { return fixture.state("s") == "idle"; }));
  }
}

TEST_CASE("after lost notifications rescan() reads everything again") {
  ManualFixture fixture;
  Child child;
  fixture.start();
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
  fixture.tracker->on_change(earshot::watch::ChangeHint{earshot::watch::ChangeHint::Where::everything, ""});
  CHECK(fixture.until([&] { return fixture.state("s") == "working"; }));
}

TEST_CASE("an open turn that stops growing becomes unknown, and growth makes it working again") {
  // Where the test pauses for longer than the turn may be quiet, it is repeated with more time.
  for (auto quiet_max = std::chrono::milliseconds(20);; quiet_max *= 10) {
    StatusTrackerOptions options;
    options.quiet_max = quiet_max;
    ManualFixture fixture(options);
    fixture.start();
    fixture.tracker->transcript_changed("s", working_turn());
    REQUIRE(fixture.until([&] { return fixture.state("s") == "unknown"; }));
    CHECK(fixture.tracker->status_of("s").source == "clock");
    TranscriptSummary grown = working_turn();
    grown.last_growth_ms += 5;
    fixture.tracker->transcript_changed("s", grown);
    const States states = fixture.observer.states_of("s");
    grown.calls = {bash};
    grown.last_growth_ms += 5;
    fixture.tracker->transcript_changed("s", grown);
    const std::string with_call = fixture.state("s");
    const States expected{"working", "unknown", "working"};
    const bool may_have_paused = states != expected || with_call != "working";
    if (may_have_paused && quiet_max < std::chrono::seconds(20)) continue;
    CHECK(states == expected);
    CHECK(with_call == "working");
    fixture.drain();  // the deadline passes: an open call alone is no evidence of a process
    CHECK(fixture.state("s") == "unknown");
    return;
  }
}

TEST_CASE("a session that was quiet before the start is unknown at once") {
  ManualFixture fixture;
  fixture.start();
  TranscriptSummary old = working_turn();
  old.last_growth_ms -= 11 * 60 * 1000;
  fixture.tracker->transcript_changed("s", old);
  REQUIRE(fixture.until([&] { return !fixture.observer.states_of("s").empty(); }));
  CHECK(fixture.observer.states_of("s") == States{"unknown"});
}

TEST_CASE("a compaction shows until the transcript grows") {
  ManualFixture fixture;
  fixture.start();
  TranscriptSummary summary = working_turn();
  fixture.tracker->transcript_changed("s", summary);
  fixture.tracker->compaction_started("s");
  fixture.tracker->transcript_changed("s", summary);  // not growth: for example a meta file
  CHECK(fixture.tracker->status_of("s").reason == "compaction");
  summary.last_growth_ms += 1;
  fixture.tracker->transcript_changed("s", summary);
  CHECK(fixture.observer.states_of("s") == States{"working", "working/compaction", "working"});
}

TEST_CASE("a removed session is unknown again unless its process is alive") {
  ManualFixture fixture;
  Child child;
  fixture.root.write(registry_name(child.pid()), registry_of(child.pid(), "living", "busy"));
  fixture.start_until("living", "working");
  fixture.tracker->transcript_changed("living", working_turn());
  fixture.tracker->transcript_changed("gone", working_turn());
  fixture.tracker->remove_session("living");
  fixture.tracker->remove_session("gone");
  fixture.tracker->remove_session("never");
  CHECK(fixture.state("living") == "working");
  CHECK(fixture.tracker->status_of("gone") == Status{});
}

TEST_CASE("an observer may call back, and a stopped tracker publishes nothing") {
  struct RemovingObserver final : StatusObserver {
    StatusTracker* tracker = nullptr;
    int calls = 0;
    void on_status(const std::string& session, const Status&) override {
      ++calls;
      tracker->remove_session(session);
    }
    void on_todos(const std::string&) override {}
  };
  Loop loop;
  TemporaryDirectory root;
  SilentWatcher watcher;
  RemovingObserver observer;
  StatusTracker tracker(loop.io, loop.disk.get_executor(), {{"r", root.path()}}, watcher, observer);
  observer.tracker = &tracker;
  tracker.start();
  tracker.when_examined([] {});
  loop.drain();
  tracker.transcript_changed("s", working_turn());
  CHECK(observer.calls == 1);
  tracker.stop();
  tracker.transcript_changed("s", working_turn());
  tracker.rescan();
  loop.drain();
  CHECK(observer.calls == 1);
}

#endif

}  // namespace status_tracker_test
