#include "status/status_tracker.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "unit/status/opens.hpp"
#include "unit/status/tracker_fixture.hpp"

using namespace earshot::status;
using States = std::vector<std::string>;

#ifdef __linux__

namespace {

const OpenCall bash{"c1", "Bash", R"({"command":"make test"})"};

}  // namespace

TEST_CASE("a session's life, as its registry file tells it") {
  House house;
  Child child;
  const std::string file = "root/" + registry_name(child.pid());
  house.scratch.write(file, registry_of(child.pid(), "s"));
  house.board->start();
  REQUIRE(house.until([&] { return house.board->is_alive("s"); }));
  CHECK(house.board->alive_sessions() == std::vector<std::string>{"s"});
  const auto becomes = [&](const std::string& text, const std::string& state) {
    house.scratch.write(file, text);
    return house.until([&] { return house.state("s") == state; });
  };
  CHECK(becomes(registry_of(child.pid(), "s", "idle", "", 1'700'000'000'000), "idle"));
  CHECK(becomes(registry_of(child.pid(), "s", "busy", "", 1'700'000'001'000), "working"));
  CHECK(becomes(registry_of(child.pid(), "s", "waiting", "permission prompt", 1'700'000'002'000), "waiting"));
  CHECK(becomes(registry_of(child.pid(), "s", "busy", "", 1'700'000'003'000), "working"));
  CHECK(becomes(registry_of(child.pid(), "s", "shell", "", 1'700'000'004'000), "idle"));
  CHECK(house.board->status_of("s").since == "2023-11-14T22:13:24.000Z");
  house.scratch.remove(file);
  CHECK(house.until([&] { return house.state("s") == "ended"; }));
  CHECK_FALSE(house.board->is_alive("s"));
  CHECK(house.heard.states_of("s") ==
        States{"unknown", "idle", "working", "waiting/permission", "working", "idle/background", "ended"});
}

TEST_CASE("a killed process ends its session without any notification") {
  for (const char* proc : {"/proc", "/proc/."}) {  // the kernel tells; and, where it does not, the beat asks
    CAPTURE(proc);
    StatusTrackerOptions options;
    options.proc_dir = proc;
    options.beat = std::chrono::milliseconds(10);
    QuietHouse house(options);
    Child child;
    house.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
    house.board->start();
    REQUIRE(house.until([&] { return house.state("s") == "working"; }));
    child.end();
    REQUIRE(house.until([&] { return house.state("s") == "ended"; }));
    house.drain();  // and nothing is waited for any more: returns
    CHECK(house.heard.states_of("s") == States{"working", "ended"});
  }
}

TEST_CASE("a stale file, a reused pid and another namespace") {
  QuietHouse house;
  Child child;
  const std::string self = registry_of(child.pid(), "reused", "busy");
  const auto start = self.find("procStart\":\"") + 12;
  house.root.write(registry_name(child.pid()), self.substr(0, start) + "9" + self.substr(start));
  house.root.write("sessions/2147483646.json",
                   R"({"sessionId":"stale","status":"busy","statusUpdatedAt":1700000000000})");
  house.root.write("sessions/1.json",
                   R"({"sessionId":"foreign","status":"busy","pidDomain":"linux:elsewhere:pid:[1]"})");
  house.start();
  CHECK(house.state("reused") == "ended");
  CHECK(house.state("stale") == "ended");
  CHECK(house.board->status_of("stale").since == "2023-11-14T22:13:20.000Z");
  CHECK(house.state("foreign") == "unknown");
  CHECK(house.board->alive_sessions().empty());
}

TEST_CASE("a file caught empty keeps the last state and is read again without a ring") {
  QuietHouse house;
  Child child;
  const std::string file = registry_name(child.pid());
  const std::string whole = registry_of(child.pid(), "s", "waiting", "input needed");
  house.root.write(file, registry_of(child.pid(), "s", "busy"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("s") == "working"; }));
  for (const std::string& torn : {std::string(), whole.substr(0, 60), std::string("null")}) {
    CAPTURE(torn);
    house.root.write(file, torn);
    house.board->on_change(house.root.at(file));
    CHECK(house.state("s") == "working");
    house.root.write(file, whole);
    CHECK(house.until([&] { return house.state("s") == "waiting"; }));
    house.root.write(file, registry_of(child.pid(), "s", "busy"));
    house.board->on_change(house.root.at(file));
    CHECK(house.state("s") == "working");
  }
}

TEST_CASE("a file that stays broken is left alone until its next ring") {
  StatusTrackerOptions options;
  options.retry = std::chrono::milliseconds(1);
  QuietHouse house(options);
  house.root.write("sessions/2147483646.json", "{");
  house.start();  // returns: the retries are bounded
  CHECK(house.heard.statuses.empty());
  house.root.write("sessions/2147483646.json", R"({"sessionId":"s"})");
  house.board->on_change(house.root.at("sessions/2147483646.json"));
  CHECK(house.state("s") == "ended");
}

TEST_CASE("keys, pipes, links and files of other names are never opened") {
  QuietHouse house;
  Child child;
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
  const std::string key = std::to_string(child.pid()) + ".key";
  house.root.write("sessions/" + key, registry_of(child.pid(), "secret", "busy"));
  house.root.write("sessions/notes.json", registry_of(child.pid(), "notes", "busy"));
  house.root.write("elsewhere.json", registry_of(child.pid(), "linked", "busy"));
  std::filesystem::create_symlink(house.root.at("elsewhere.json"), house.root.at("sessions/77.json"));
  REQUIRE(::mkfifo(house.root.at("sessions/78.json").c_str(), 0600) ==
          0);  // would block a careless reader for ever
  Opens opens(house.root.at("sessions"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("s") == "working"; }));
  for (const std::string& name :
       {key, std::string("notes.json"), std::string("77.json"), std::string("78.json")})
    house.board->on_change(house.root.at("sessions/" + name));
  house.board->rescan();
  house.board->on_change(house.root.at("sessions"));
  house.root.write("sessions/2147483646.json", R"({"sessionId":"last"})");
  house.board->on_change(house.root.at("sessions"));
  REQUIRE(house.until([&] { return house.state("last") == "ended"; }));
  const auto opened = opens.names();
  CHECK(opened.count(std::to_string(child.pid()) + ".json") > 0);
  CHECK(opened.count(key) == 0);
  CHECK(opened.count("notes.json") == 0);
  CHECK(house.heard.states_of("linked").empty());
  CHECK(house.heard.states_of("secret").empty());
}

TEST_CASE("without a word in the registry the transcript decides, and death still ends") {
  QuietHouse house;
  Child child;
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "s"));
  house.board->transcript_changed("s", working_turn());
  house.board->start();
  REQUIRE(house.until([&] { return house.state("s") == "working"; }));
  CHECK(house.board->status_of("s").source == "transcript");
  TranscriptSummary finished = working_turn();
  finished.turn_open = false;
  house.board->transcript_changed("s", finished);
  CHECK(house.state("s") == "idle");
  child.end();
  CHECK(house.until([&] { return house.state("s") == "ended"; }));
  house.board->transcript_changed("s", finished);  // the last lines come after the process is gone
  CHECK(house.state("s") == "ended");
}

TEST_CASE("what is asked may come late: the status is refined, its since stays") {
  QuietHouse house;
  Child child;
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "waiting", "permission prompt"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("s") == "waiting"; }));
  CHECK(house.board->status_of("s").detail.empty());
  const std::string since = house.board->status_of("s").since;
  house.board->transcript_changed("s", working_turn({bash}));
  CHECK(house.board->status_of("s") ==
        Status{"waiting", "permission", "approve Bash: make test", "registry", since});
  const std::size_t told = house.heard.statuses.size();
  house.board->transcript_changed("s", working_turn({bash}));
  CHECK(house.heard.statuses.size() == told);  // only changes are told
}

TEST_CASE("a call that one wait named is not named by the next, though the transcript still shows it open") {
  QuietHouse house;
  Child child;
  const std::string path = registry_name(child.pid());
  const auto say = [&](const std::string& status, const std::string& waiting_for) {
    house.root.write(path, registry_of(child.pid(), "s", status, waiting_for));
    house.board->on_change(house.root.at(path));
  };
  house.root.write(path, registry_of(child.pid(), "s", "waiting", "permission prompt"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("s") == "waiting"; }));
  house.board->transcript_changed("s", working_turn({bash}));
  CHECK(house.board->status_of("s").detail == "approve Bash: make test");
  say("busy", "");
  CHECK(house.state("s") == "working");
  say("waiting", "permission prompt");
  CHECK(house.board->status_of("s").detail.empty());
  const OpenCall next{"c9", "Write", R"({"file_path":"/src/b.cpp"})", "", ""};
  house.board->transcript_changed("s", working_turn({bash, next}));
  CHECK(house.board->status_of("s").detail == "approve Write: /src/b.cpp");
}

TEST_CASE("nothing is told before the registry was read: no status that the next one denies") {
  QuietHouse house;
  house.root.write("sessions/2147483646.json", R"({"sessionId":"s"})");
  house.board->transcript_changed("s", working_turn());
  house.board->start();
  house.board->transcript_changed("s", working_turn());
  CHECK(house.heard.statuses.empty());
  REQUIRE(house.until([&] { return !house.heard.statuses.empty(); }));
  CHECK(house.heard.states_of("s") == States{"ended"});
}

TEST_CASE("a process may take up another session: the old one has ended") {
  QuietHouse house;
  Child child;
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "old", "idle"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("old") == "idle"; }));
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "new", "idle"));
  house.board->on_change(house.root.at(registry_name(child.pid())));
  CHECK(house.state("old") == "ended");
  CHECK(house.state("new") == "idle");
  CHECK(house.board->alive_sessions() == std::vector<std::string>{"new"});
}

TEST_CASE("of several processes of one session the living one speaks") {
  QuietHouse house;
  Child child;
  house.root.write("sessions/2147483646.json",
                   R"({"sessionId":"s","status":"busy","statusUpdatedAt":1800000000000})");
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "idle"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("s") != "unknown"; }));
  CHECK(house.state("s") == "idle");
  CHECK(house.board->is_alive("s"));
  house.root.remove(registry_name(child.pid()));
  house.board->on_change(house.root.at(registry_name(child.pid())));
  CHECK(house.state("s") == "ended");
}

TEST_CASE("a registry directory, and a root, that appear later are picked up") {
  Child child;
  SECTION("only sessions/ is missing") {
    House house;
    std::filesystem::create_directories(house.root);
    house.board->start();
    house.scratch.write("root/" + registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
    CHECK(house.until([&] { return house.state("s") == "working"; }));
  }
  SECTION("the root is missing, and what it lies in") {
    House house("a/b/c/root");
    house.board->start();
    house.scratch.write("a/b/c/root/" + registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
    CHECK(house.until([&] { return house.state("s") == "working"; }));
  }
  SECTION("the root goes and comes back") {
    House house;
    const std::string file = "root/" + registry_name(child.pid());
    house.scratch.write(file, registry_of(child.pid(), "s", "busy"));
    house.board->start();
    REQUIRE(house.until([&] { return house.state("s") == "working"; }));
    std::filesystem::remove_all(house.root);
    REQUIRE(house.until([&] { return house.state("s") == "ended"; }));
    house.scratch.write(file, registry_of(child.pid(), "s", "idle"));
    CHECK(house.until([&] { return house.state("s") == "idle"; }));
  }
}

TEST_CASE("lost notifications: rescan() looks at all of it again") {
  QuietHouse house;
  Child child;
  house.start();
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "s", "busy"));
  house.board->on_change(earshot::watch::ChangeHint{earshot::watch::ChangeHint::Where::everything, ""});
  CHECK(house.until([&] { return house.state("s") == "working"; }));
}

TEST_CASE("an open turn that stops growing becomes unknown by the clock, and growth makes it work again") {
  StatusTrackerOptions options;
  options.quiet_max = std::chrono::milliseconds(20);
  QuietHouse house(options);
  house.start();
  house.board->transcript_changed("s", working_turn());
  REQUIRE(house.until([&] { return house.state("s") == "unknown"; }));
  CHECK(house.board->status_of("s").source == "clock");
  TranscriptSummary grown = working_turn();
  grown.last_growth_ms += 5;
  house.board->transcript_changed("s", grown);
  CHECK(house.heard.states_of("s") == States{"working", "unknown", "working"});
  grown.calls = {bash};
  grown.last_growth_ms += 5;
  house.board->transcript_changed("s", grown);
  house.drain();  // the last deadline passes: an open call is no silence
  CHECK(house.state("s") == "working");
}

TEST_CASE("what was quiet long before we looked is unknown at once") {
  QuietHouse house;
  house.start();
  TranscriptSummary old = working_turn();
  old.last_growth_ms -= 11 * 60 * 1000;
  house.board->transcript_changed("s", old);
  CHECK(house.heard.states_of("s") == States{"unknown"});
}

TEST_CASE("a compaction shows until the transcript grows") {
  QuietHouse house;
  house.start();
  TranscriptSummary said = working_turn();
  house.board->transcript_changed("s", said);
  house.board->compaction_started("s");
  house.board->transcript_changed("s", said);  // not growth: an agent's meta, for one
  CHECK(house.board->status_of("s").reason == "compaction");
  said.last_growth_ms += 1;
  house.board->transcript_changed("s", said);
  CHECK(house.heard.states_of("s") == States{"working", "working/compaction", "working"});
}

TEST_CASE("a forgotten session is as never heard of, unless its process lives") {
  QuietHouse house;
  Child child;
  house.root.write(registry_name(child.pid()), registry_of(child.pid(), "living", "busy"));
  house.board->start();
  REQUIRE(house.until([&] { return house.state("living") == "working"; }));
  house.board->transcript_changed("living", working_turn());
  house.board->transcript_changed("gone", working_turn());
  house.board->remove_session("living");
  house.board->remove_session("gone");
  house.board->remove_session("never");
  CHECK(house.state("living") == "working");
  CHECK(house.board->status_of("gone") == Status{});
}

TEST_CASE("a listener may call back, and a stopped board is silent") {
  struct Forgetful final : StatusObserver {
    StatusTracker* board = nullptr;
    int told = 0;
    void on_status(const std::string& session, const Status&) override {
      ++told;
      board->remove_session(session);
    }
    void on_todos(const std::string&) override {}
  };
  Loop loop;
  Scratch root;
  SilentWatcher watcher;
  Forgetful listener;
  StatusTracker board(loop.io, loop.disk.get_executor(), {root.path()}, watcher, listener);
  listener.board = &board;
  board.start();
  loop.drain();
  board.transcript_changed("s", working_turn());
  CHECK(listener.told == 1);
  board.stop();
  board.transcript_changed("s", working_turn());
  board.rescan();
  loop.drain();
  CHECK(listener.told == 1);
}

#endif
