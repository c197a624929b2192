// Which files are found, whatever order directories and notifications come in; what their streams are called.
#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "rig.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::ChangeHint;
using watch::Mode;

namespace {

auto every_mode() { return GENERATE(Mode::inotify, Mode::sweep, Mode::both); }

/// A watcher that is told by the test what to ring.
struct Fake final : watch::Watcher {
  std::set<std::string> watched;
  std::function<void(const std::string& directory)> on_watch;
  void watch(const std::string& directory) override {
    if (watched.insert(directory).second && on_watch) on_watch(directory);
  }
  void unwatch(const std::string& directory) override {
    std::erase_if(watched, [&](const auto& each) { return watch::at_or_below(each, directory); });
  }
};

struct Deaf {
  Deaf()
      : rig((board.add(fake), fs::create_directories(root / "projects/p"), Rig::options(root.path())),
            board) {
    append(root / "projects/p/s.jsonl", "");
    rig.start();
  }
  /// What an agent program does in a while, unheard.
  void live_a_little() {
    append(root / "projects/p/s.jsonl", prompts(0, 5));
    fs::create_directories(root / "projects/q/s2/subagents");
    append(root / "projects/q/s2.jsonl", prompts(5, 8));
    append(root / "projects/q/s2/subagents/agent-a1.jsonl", prompts(8, 9));
  }
  void all_heard() {
    rig.same("r/p/s", root / "projects/p/s.jsonl");
    rig.same("r/q/s2", root / "projects/q/s2.jsonl");
    rig.until([&] { return rig.heard.has("r/q/s2/subagents/agent-a1"); });
    rig.until([&] {
      return rig.heard.streams["r/q/s2/subagents/agent-a1"].events == fold_of(prompts(8, 9), "a1");
    });
  }

  Scratch root;
  Fake fake;
  watch::WatchMux board;
  Rig rig;
};

}  // namespace

TEST_CASE("fault 44: directories made at once with a file in the innermost are all found") {
  const Mode mode = every_mode();
  const int rounds = mode == Mode::sweep ? 50 : 1000;
  Scratch root;
  fs::create_directories(root / "projects");
  Rig rig(root.path(), mode);
  rig.start();
  for (int n = 0; n < rounds; ++n) {
    const std::string number = std::to_string(n);
    fs::create_directories(root / ("projects/p" + number + "/q/r"));
    append(root / ("projects/p" + number + "/q/r/s.jsonl"), prompt(n));
    if (n % 10 == 0) {
      rig.io.restart();
      rig.io.poll();
    }
  }
  rig.until([&] { return rig.heard.streams.size() == static_cast<std::size_t>(rounds); });
  for (int n = 0; n < rounds; ++n) {
    const std::string path = "p" + std::to_string(n) + "/q/r/s";
    rig.same("r/" + path, root / ("projects/" + path + ".jsonl"));
  }
}

TEST_CASE("fault 45: a renamed directory is another place: its streams go, and come by their new names") {
  const Mode mode = every_mode();
  Scratch root;
  fs::create_directories(root / "projects/before/s/subagents");
  append(root / "projects/before/s.jsonl", prompt(0));
  append(root / "projects/before/s/subagents/agent-x.jsonl", prompt(1));
  Rig rig(root.path(), mode);
  rig.start();
  REQUIRE(rig.heard.has("r/before/s"));
  fs::rename(root / "projects/before", root / "projects/after");
  append(root / "projects/after/s.jsonl", prompt(2));
  rig.same("r/after/s", root / "projects/after/s.jsonl");
  rig.until([&] { return !rig.heard.has("r/before/s") && !rig.heard.has("r/before/s/subagents/agent-x"); });
  rig.until([&] { return rig.heard.has("r/after/s/subagents/agent-x"); });
  for (int n = 3; n < 6; ++n) {
    append(root / "projects/after/s.jsonl", prompt(n));
    rig.same("r/after/s", root / "projects/after/s.jsonl");
  }
  REQUIRE(rig.tail->counters().known_files == 2);
}

TEST_CASE("fault 46: what is moved out of the tree is heard no more") {
  const Mode mode = every_mode();
  Scratch root, outside;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompt(0));
  Rig rig(root.path(), mode);
  rig.start();
  fs::rename(root / "projects/p", outside / "p");
  rig.until([&] { return !rig.heard.has("r/p/s"); });
  append(outside / "p/s.jsonl", prompt(1));
  append(root / "projects/mark.jsonl", prompt(2));
  rig.same("r/mark", root / "projects/mark.jsonl");
  rig.idle();
  REQUIRE(rig.heard.streams.size() == 2);
  REQUIRE(rig.tail->counters().directories == 1);
}

TEST_CASE("fault 47: a root that is absent, deleted and made again is picked up each time") {
  const Mode mode = every_mode();
  Scratch home;
  const std::string root = home / "deep/er/root";
  Rig rig(root, mode);
  rig.start();
  for (int round = 0; round < 5; ++round) {
    REQUIRE(rig.tail->problems().size() == 1);
    REQUIRE(rig.tail->problems().front().path == root);
    fs::create_directories(root + "/projects/p");
    append(root + "/projects/p/s.jsonl", prompts(round, round + 2));
    rig.same("r/p/s", root + "/projects/p/s.jsonl");
    REQUIRE(rig.tail->problems().empty());
    fs::remove_all(round % 2 ? home / "deep" : root);
    rig.until([&] { return !rig.heard.has("r/p/s") && !rig.tail->problems().empty(); });
  }
}

TEST_CASE("fault 48: after an overflow everything is looked at") {
  Deaf deaf;
  deaf.live_a_little();
  deaf.board.notify({ChangeHint::Where::everything, {}});
  deaf.all_heard();
  append(deaf.root / "projects/p/s.jsonl", prompts(20, 25));
  fs::remove(deaf.root / "projects/q/s2.jsonl");
  deaf.board.notify({ChangeHint::Where::everything, {}});
  deaf.rig.same("r/p/s", deaf.root / "projects/p/s.jsonl");
  deaf.rig.until([&] { return !deaf.rig.heard.has("r/q/s2"); });
}

TEST_CASE("fault 52: with a watcher that drops everything the sweep is enough") {
  Scratch root;
  fs::create_directories(root / "projects/p");
  boost::asio::io_context io;
  Rig rig(root.path(), Mode::sweep);
  rig.start();
  append(root / "projects/p/s.jsonl", prompts(0, 5));
  rig.same("r/p/s", root / "projects/p/s.jsonl");
  append(root / "projects/p/s.jsonl", prompts(5, 6));
  rig.same("r/p/s", root / "projects/p/s.jsonl");
}

TEST_CASE("fault 53: a storm of directories deleted and made again ends in what is there") {
  const Mode mode = every_mode();
  Scratch root;
  fs::create_directories(root / "projects");
  Rig rig(root.path(), mode);
  rig.start();
  const int rounds = 100;
  for (int n = 0; n < rounds; ++n) {
    fs::create_directories(root / "projects/p");
    append(root / "projects/p/s.jsonl", prompts(n, n + 1 + n % 3));
    rig.io.restart();
    rig.io.poll();
    if (n + 1 < rounds) fs::remove_all(root / "projects/p");
  }
  rig.same("r/p/s", root / "projects/p/s.jsonl");
  append(root / "projects/p/s.jsonl", prompt(1000));
  rig.same("r/p/s", root / "projects/p/s.jsonl");
  REQUIRE(rig.tail->counters().directories == 2);
}

TEST_CASE("fault 55: a name that is not UTF-8 works, percent-encoded") {
  Scratch root;
  fs::create_directories(root / "projects/\xff");
  Rig rig(root.path());
  rig.start();
  append(root / "projects/\xff/a\xfe:%.jsonl", prompts(0, 2));
  rig.same("r/%FF/a%FE%3A%25", root / "projects/\xff/a\xfe:%.jsonl");
}

TEST_CASE("fault 56: names with LF and ESC are escaped, and 255 bytes are not too many") {
  Scratch root;
  fs::create_directories(root / "projects/p");
  Rig rig(root.path());
  rig.start();
  append(root / "projects/p/a\n\x1b[31m.jsonl", prompt(0));
  rig.same("r/p/a%0A%1B[31m", root / "projects/p/a\n\x1b[31m.jsonl");
  const std::string longest(249, 'x');
  append(root / ("projects/p/" + longest + ".jsonl"), prompt(1));
  rig.same("r/p/" + longest, root / ("projects/p/" + longest + ".jsonl"));
}

TEST_CASE(
    "fault 58: one session id in two directories is two streams; a subagent's file never takes over its "
    "parent") {
  Scratch root;
  for (const char* each : {"projects/a/s/subagents/workflows/run1", "projects/b"})
    fs::create_directories(root / each);
  Rig rig(root.path());
  rig.start();
  append(root / "projects/a/s.jsonl", prompt(0));
  append(root / "projects/b/s.jsonl", prompt(1));
  append(root / "projects/a/s/subagents/agent-x.jsonl", prompt(2));
  append(root / "projects/a/s/subagents/workflows/run1/agent-y.jsonl", prompt(3));
  append(root / "projects/a/s/subagents/workflows/run1/journal.jsonl", "{}\n");
  append(root / "projects/a/agent-z.jsonl", prompt(4, "parent"));
  rig.same("r/a/s", root / "projects/a/s.jsonl");
  rig.same("r/b/s", root / "projects/b/s.jsonl");
  rig.until([&] { return rig.heard.streams.size() == 5; });
  rig.until([&] { return rig.heard.streams["r/a/agent-z"].session == "parent"; });
  REQUIRE(rig.heard.streams["r/a/s/subagents/agent-x"].session == "s");
  REQUIRE(rig.heard.streams["r/a/s/subagents/workflows/run1/agent-y"].session == "s");
  REQUIRE(rig.tail->find("r/a/s/subagents/agent-x")->agent() == "x");
  REQUIRE(rig.tail->find("r/b/s")->directory() == "b");
}

TEST_CASE("fault 59: a file that is gone between listing and opening is no trouble") {
  Scratch root;
  fs::create_directories(root / "projects/p");
  Rig rig(root.path());
  rig.start();
  for (int n = 0; n < 300; ++n) {
    const std::string path = root / ("projects/p/" + std::to_string(n) + ".jsonl");
    append(path, prompt(n));
    if (n % 3 == 0) {
      rig.io.restart();
      rig.io.poll_one();
    }
    fs::remove(path);
  }
  rig.idle();
  rig.until([&] { return rig.tail->counters().known_files == 0; });
  REQUIRE(rig.tail->problems().empty());
}

TEST_CASE("fault 60: a watcher that only says: something below here") {
  Deaf deaf;
  deaf.live_a_little();
  deaf.board.notify({ChangeHint::Where::directory, deaf.root.path()});
  deaf.all_heard();
  append(deaf.root / "projects/q/s2.jsonl", prompts(30, 32));
  deaf.board.notify({ChangeHint::Where::directory, deaf.root / "projects"});
  deaf.rig.same("r/q/s2", deaf.root / "projects/q/s2.jsonl");
}

TEST_CASE("watch first, then scan: what is born at the moment of the watch is found without a ring") {
  Deaf deaf;
  deaf.fake.on_watch = [](const std::string& directory) { append(directory + "/born.jsonl", prompt(0)); };
  fs::create_directories(deaf.root / "projects/a/b/c");
  deaf.board.notify({ChangeHint::Where::path, deaf.root / "projects/a"});
  for (const char* each : {"a/born", "a/b/born", "a/b/c/born"})
    deaf.rig.same("r/" + std::string(each), deaf.root / ("projects/" + std::string(each) + ".jsonl"));
}

TEST_CASE("what appears is watched, and what goes is not watched any more") {
  Deaf deaf;
  REQUIRE(deaf.fake.watched.contains(deaf.root / "projects"));
  REQUIRE(deaf.fake.watched.contains(deaf.root / "projects/p"));
  deaf.live_a_little();
  deaf.board.notify({ChangeHint::Where::path, deaf.root / "projects/q"});
  deaf.rig.until([&] { return deaf.rig.heard.has("r/q/s2/subagents/agent-a1"); });
  REQUIRE(deaf.fake.watched.contains(deaf.root / "projects/q/s2/subagents"));
  fs::remove_all(deaf.root / "projects/q");
  deaf.board.notify({ChangeHint::Where::path, deaf.root / "projects/q"});
  deaf.rig.until([&] { return !deaf.rig.heard.has("r/q/s2"); });
  REQUIRE_FALSE(deaf.fake.watched.contains(deaf.root / "projects/q"));
  REQUIRE_FALSE(deaf.fake.watched.contains(deaf.root / "projects/q/s2/subagents"));
}

TEST_CASE("fault 37: a linked project directory is followed from the hall only, and loops end") {
  Scratch root, outside;
  fs::create_directories(root / "projects/p");
  fs::create_directories(outside / "linked/deeper");
  append(outside / "linked/deeper/t.jsonl", prompt(1));
  fs::create_directory_symlink(outside / "linked", root / "projects/link");
  fs::create_directory_symlink(root / "projects", root / "projects/loop");
  fs::create_directory_symlink(root / "projects/p", root / "projects/same");
  fs::create_directory_symlink(outside / "linked", root / "projects/p/not-here");
  append(root / "projects/p/s.jsonl", prompt(0));
  Rig rig(root.path());
  rig.start();
  REQUIRE(rig.heard.has("r/link/deeper/t"));
  REQUIRE(rig.tail->counters().streams == 2);
  append(outside / "linked/deeper/t.jsonl", prompt(2));
  rig.read("r/link/deeper/t");
}

TEST_CASE("fault 41: an unreadable directory is said, and the others are not affected") {
  if (::geteuid() == 0) {
    WARN("skipped: root may read everything");
    return;
  }
  Scratch root;
  fs::create_directories(root / "projects/shut");
  fs::create_directories(root / "projects/open");
  append(root / "projects/shut/s.jsonl", prompt(0));
  append(root / "projects/open/s.jsonl", prompt(1));
  fs::permissions(root / "projects/shut", fs::perms::none);
  Rig rig(root.path());
  rig.start();
  REQUIRE(rig.heard.has("r/open/s"));
  REQUIRE(rig.tail->problems().size() == 1);
  REQUIRE(rig.tail->problems().front().path == root / "projects/shut");
  fs::permissions(root / "projects/shut", fs::perms::owner_all);
  rig.until([&] { return rig.heard.has("r/shut/s") && rig.tail->problems().empty(); });
}
