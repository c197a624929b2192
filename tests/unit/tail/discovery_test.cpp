// Which files are found, in any order of directories and notifications, and the names of their streams.
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <set>

#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::ChangeHint;
using watch::Mode;

namespace {

auto every_mode() { return GENERATE(Mode::inotify, Mode::sweep, Mode::both); }

/// The test sends the hints.
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

struct Silent {
  Silent()
      : fixture((mux.add_backend(fake), fs::create_directories(root / "projects/p"),
                 TailFixture::options(root.path())),
                mux) {
    append(root / "projects/p/s.jsonl", "");
    fixture.start();
  }
  /// What an agent program does without any notification.
  void write_transcripts() {
    append(root / "projects/p/s.jsonl", prompts(0, 5));
    fs::create_directories(root / "projects/q/s2/subagents");
    append(root / "projects/q/s2.jsonl", prompts(5, 8));
    append(root / "projects/q/s2/subagents/agent-a1.jsonl", prompts(8, 9));
  }
  void expect_all() {
    fixture.same("r/p/s", root / "projects/p/s.jsonl");
    fixture.same("r/q/s2", root / "projects/q/s2.jsonl");
    fixture.until([&] { return fixture.observer.has("r/q/s2/subagents/agent-a1"); });
    fixture.until([&] {
      return fixture.observer.streams["r/q/s2/subagents/agent-a1"].events == fold_of(prompts(8, 9), "a1");
    });
  }

  TemporaryDirectory root;
  Fake fake;
  watch::WatchMux mux;
  TailFixture fixture;
};

}  // namespace

TEST_CASE("fault 44: nested directories created at once with a file in the innermost are all found") {
  const Mode mode = every_mode();
  const int rounds = mode == Mode::sweep ? 50 : 1000;
  TemporaryDirectory root;
  fs::create_directories(root / "projects");
  TailFixture fixture(root.path(), mode);
  fixture.start();
  for (int n = 0; n < rounds; ++n) {
    const std::string number = std::to_string(n);
    fs::create_directories(root / ("projects/p" + number + "/q/r"));
    append(root / ("projects/p" + number + "/q/r/s.jsonl"), prompt(n));
    if (n % 10 == 0) {
      fixture.io.restart();
      fixture.io.poll();
    }
  }
  fixture.until([&] { return fixture.observer.streams.size() == static_cast<std::size_t>(rounds); });
  for (int n = 0; n < rounds; ++n) {
    const std::string path = "p" + std::to_string(n) + "/q/r/s";
    fixture.same("r/" + path, root / ("projects/" + path + ".jsonl"));
  }
}

TEST_CASE("fault 45: the streams of a renamed directory go on under their new names") {
  const Mode mode = every_mode();
  TemporaryDirectory root;
  fs::create_directories(root / "projects/before/s/subagents");
  tail::Options options = TailFixture::options(root.path());
  options.linger = 1h;
  TailFixture fixture(options, mode);
  fixture.start();
  append(root / "projects/before/s.jsonl", prompt(0));
  append(root / "projects/before/s/subagents/agent-x.jsonl", prompt(1));
  fixture.same("r/before/s", root / "projects/before/s.jsonl");
  fixture.until([&] { return fixture.observer.has("r/before/s/subagents/agent-x"); });
  fs::rename(root / "projects/before", root / "projects/after");
  append(root / "projects/after/s.jsonl", prompt(2));
  fixture.same("r/after/s", root / "projects/after/s.jsonl");
  fixture.until([&] { return fixture.observer.has("r/after/s/subagents/agent-x"); });
  CHECK_FALSE(fixture.observer.has("r/before/s"));
  CHECK_FALSE(fixture.observer.has("r/before/s/subagents/agent-x"));
  CHECK(fixture.observer.renamed.size() == 2);
  for (int n = 3; n < 6; ++n) {
    append(root / "projects/after/s.jsonl", prompt(n));
    fixture.same("r/after/s", root / "projects/after/s.jsonl");
  }
  REQUIRE(fixture.tail->counters().known_files == 2);
}

TEST_CASE("fault 46: files moved out of the root are not followed any more") {
  const Mode mode = every_mode();
  TemporaryDirectory root, outside;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompt(0));
  TailFixture fixture(root.path(), mode);
  fixture.start();
  fs::rename(root / "projects/p", outside / "p");
  fixture.until([&] { return !fixture.observer.has("r/p/s"); });
  append(outside / "p/s.jsonl", prompt(1));
  append(root / "projects/mark.jsonl", prompt(2));
  fixture.same("r/mark", root / "projects/mark.jsonl");
  fixture.idle();
  REQUIRE(fixture.observer.streams.size() == 2);
  REQUIRE(fixture.tail->counters().directories == 1);
}

TEST_CASE("fault 47: a root that is missing, deleted and created again is found each time") {
  const Mode mode = every_mode();
  TemporaryDirectory home;
  const std::string root = home / "deep/er/root";
  TailFixture fixture(root, mode);
  fixture.start();
  for (int round = 0; round < 5; ++round) {
    REQUIRE(fixture.tail->problems().size() == 1);
    REQUIRE(fixture.tail->problems().front().path == root);
    fs::create_directories(root + "/projects/p");
    append(root + "/projects/p/s.jsonl", prompts(round, round + 2));
    fixture.same("r/p/s", root + "/projects/p/s.jsonl");
    REQUIRE(fixture.tail->problems().empty());
    fs::remove_all(round % 2 ? home / "deep" : root);
    fixture.until([&] { return !fixture.observer.has("r/p/s") && !fixture.tail->problems().empty(); });
  }
}

TEST_CASE("fault 48: after an overflow everything is checked") {
  Silent silent;
  silent.write_transcripts();
  silent.mux.notify({ChangeHint::Where::everything, {}});
  silent.expect_all();
  append(silent.root / "projects/p/s.jsonl", prompts(20, 25));
  fs::remove(silent.root / "projects/q/s2.jsonl");
  silent.mux.notify({ChangeHint::Where::everything, {}});
  silent.fixture.same("r/p/s", silent.root / "projects/p/s.jsonl");
  silent.fixture.until([&] { return !silent.fixture.observer.has("r/q/s2"); });
}

TEST_CASE("fault 52: without any notification the sweep is sufficient") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  boost::asio::io_context io;
  TailFixture fixture(root.path(), Mode::sweep);
  fixture.start();
  append(root / "projects/p/s.jsonl", prompts(0, 5));
  fixture.same("r/p/s", root / "projects/p/s.jsonl");
  append(root / "projects/p/s.jsonl", prompts(5, 6));
  fixture.same("r/p/s", root / "projects/p/s.jsonl");
}

TEST_CASE("fault 53: directories deleted and created again many times end in the present state") {
  const Mode mode = every_mode();
  TemporaryDirectory root;
  fs::create_directories(root / "projects");
  TailFixture fixture(root.path(), mode);
  fixture.start();
  const int rounds = 100;
  for (int n = 0; n < rounds; ++n) {
    fs::create_directories(root / "projects/p");
    append(root / "projects/p/s.jsonl", prompts(n, n + 1 + n % 3));
    fixture.io.restart();
    fixture.io.poll();
    if (n + 1 < rounds) fs::remove_all(root / "projects/p");
  }
  fixture.same("r/p/s", root / "projects/p/s.jsonl");
  append(root / "projects/p/s.jsonl", prompt(1000));
  fixture.same("r/p/s", root / "projects/p/s.jsonl");
  REQUIRE(fixture.tail->counters().directories == 2);
}

TEST_CASE("fault 55: a name that is not UTF-8 works, percent-encoded") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/\xff");
  TailFixture fixture(root.path());
  fixture.start();
  append(root / "projects/\xff/a\xfe:%.jsonl", prompts(0, 2));
  fixture.same("r/%FF/a%FE%3A%25", root / "projects/\xff/a\xfe:%.jsonl");
}

TEST_CASE("fault 56: names with LF and ESC are escaped, and may have 255 bytes") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  TailFixture fixture(root.path());
  fixture.start();
  append(root / "projects/p/a\n\x1b[31m.jsonl", prompt(0));
  fixture.same("r/p/a%0A%1B[31m", root / "projects/p/a\n\x1b[31m.jsonl");
  const std::string longest(249, 'x');
  append(root / ("projects/p/" + longest + ".jsonl"), prompt(1));
  fixture.same("r/p/" + longest, root / ("projects/p/" + longest + ".jsonl"));
}

TEST_CASE(
    "fault 58: one session id in two directories is two streams, a subagent's file never takes over its "
    "parent") {
  TemporaryDirectory root;
  for (const char* each : {"projects/a/s/subagents/workflows/run1", "projects/b"})
    fs::create_directories(root / each);
  TailFixture fixture(root.path());
  fixture.start();
  append(root / "projects/a/s.jsonl", prompt(0));
  append(root / "projects/b/s.jsonl", prompt(1));
  append(root / "projects/a/s/subagents/agent-x.jsonl", prompt(2));
  append(root / "projects/a/s/subagents/workflows/run1/agent-y.jsonl", prompt(3));
  append(root / "projects/a/s/subagents/workflows/run1/journal.jsonl", "{}\n");
  append(root / "projects/a/agent-z.jsonl", prompt(4, "parent"));
  fixture.same("r/a/s", root / "projects/a/s.jsonl");
  fixture.same("r/b/s", root / "projects/b/s.jsonl");
  fixture.until([&] { return fixture.observer.streams.size() == 5; });
  fixture.until([&] { return fixture.observer.streams["r/a/agent-z"].session == "parent"; });
  REQUIRE(fixture.observer.streams["r/a/s/subagents/agent-x"].session == "s");
  REQUIRE(fixture.observer.streams["r/a/s/subagents/workflows/run1/agent-y"].session == "s");
  REQUIRE(fixture.tail->find("r/a/s/subagents/agent-x")->agent() == "x");
  REQUIRE(fixture.tail->find("r/b/s")->directory() == "b");
}

TEST_CASE("fault 59: a file removed between listing and opening is no problem") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  TailFixture fixture(root.path());
  fixture.start();
  for (int n = 0; n < 300; ++n) {
    const std::string path = root / ("projects/p/" + std::to_string(n) + ".jsonl");
    append(path, prompt(n));
    if (n % 3 == 0) {
      fixture.io.restart();
      fixture.io.poll_one();
    }
    fs::remove(path);
  }
  fixture.idle();
  fixture.until([&] { return fixture.tail->counters().known_files == 0; });
  REQUIRE(fixture.tail->problems().empty());
}

TEST_CASE("fault 60: a watcher that reports directories only") {
  Silent silent;
  silent.write_transcripts();
  silent.mux.notify({ChangeHint::Where::directory, silent.root.path()});
  silent.expect_all();
  append(silent.root / "projects/q/s2.jsonl", prompts(30, 32));
  silent.mux.notify({ChangeHint::Where::directory, silent.root / "projects"});
  silent.fixture.same("r/q/s2", silent.root / "projects/q/s2.jsonl");
}

TEST_CASE("a directory is watched before it is scanned: a file created in between is found without a hint") {
  Silent silent;
  silent.fake.on_watch = [](const std::string& directory) { append(directory + "/born.jsonl", prompt(0)); };
  fs::create_directories(silent.root / "projects/a/b/c");
  silent.mux.notify({ChangeHint::Where::path, silent.root / "projects/a"});
  for (const char* each : {"a/born", "a/b/born", "a/b/c/born"})
    silent.fixture.same("r/" + std::string(each), silent.root / ("projects/" + std::string(each) + ".jsonl"));
}

TEST_CASE("each directory is listed once, by the watcher if it wants to") {
  struct Listing final : watch::Watcher {
    std::map<std::string, int> counts;  // written on the disk thread, read after it is idle
    std::set<std::string> watched;
    void watch(const std::string&) override {}
    void unwatch(const std::string&) override {}
    void watch_before_listing(const std::string& directory) override { watched.insert(directory); }
    watch::DirectoryLister lister() const override {
      return [this](const std::string& path, ListingSymlinks symlinks, const auto& is_wanted) {
        ++const_cast<Listing*>(this)->counts[path];
        return list_directory(path, symlinks, is_wanted);
      };
    }
  } watcher;
  TemporaryDirectory root;
  std::map<std::string, int> once{{root / "projects", 1}};
  for (int n = 0; n < 200; ++n) {  // more than one task of the disk thread
    const std::string directory = root / ("projects/p" + std::to_string(n));
    fs::create_directories(directory);
    append(directory + "/s.jsonl", prompt(n));
    once[directory] = 1;
  }
  watch::WatchMux mux;
  mux.add_backend(watcher);
  TailFixture fixture(TailFixture::options(root.path()), mux);
  fixture.start();
  REQUIRE(fixture.tail->counters().known_files == 200);
  REQUIRE(watcher.counts == once);
  for (const auto& [directory, count] : once) REQUIRE(watcher.watched.contains(directory));
}

TEST_CASE("new directories are watched, and removed ones are not watched any more") {
  Silent silent;
  REQUIRE(silent.fake.watched.contains(silent.root / "projects"));
  REQUIRE(silent.fake.watched.contains(silent.root / "projects/p"));
  silent.write_transcripts();
  silent.mux.notify({ChangeHint::Where::path, silent.root / "projects/q"});
  silent.fixture.until([&] { return silent.fixture.observer.has("r/q/s2/subagents/agent-a1"); });
  REQUIRE(silent.fake.watched.contains(silent.root / "projects/q/s2/subagents"));
  fs::remove_all(silent.root / "projects/q");
  silent.mux.notify({ChangeHint::Where::path, silent.root / "projects/q"});
  silent.fixture.until([&] { return !silent.fixture.observer.has("r/q/s2"); });
  REQUIRE_FALSE(silent.fake.watched.contains(silent.root / "projects/q"));
  REQUIRE_FALSE(silent.fake.watched.contains(silent.root / "projects/q/s2/subagents"));
}

TEST_CASE("fault 37: linked directories are followed in the transcript directory only, and loops end") {
  TemporaryDirectory root, outside;
  fs::create_directories(root / "projects/p");
  fs::create_directories(outside / "linked/deeper");
  append(outside / "linked/deeper/t.jsonl", prompt(1));
  fs::create_directory_symlink(outside / "linked", root / "projects/link");
  fs::create_directory_symlink(root / "projects", root / "projects/loop");
  fs::create_directory_symlink(root / "projects/p", root / "projects/same");
  fs::create_directory_symlink(outside / "linked", root / "projects/p/not-here");
  append(root / "projects/p/s.jsonl", prompt(0));
  TailFixture fixture(root.path());
  fixture.start();
  REQUIRE(fixture.observer.has("r/link/deeper/t"));
  REQUIRE(fixture.tail->counters().streams == 2);
  append(outside / "linked/deeper/t.jsonl", prompt(2));
  fixture.read("r/link/deeper/t");
}

TEST_CASE("fault 41: an unreadable directory is reported, and the others are not affected") {
  if (::geteuid() == 0) {
    WARN("skipped: root may read everything");
    return;
  }
  TemporaryDirectory root;
  fs::create_directories(root / "projects/shut");
  fs::create_directories(root / "projects/open");
  append(root / "projects/shut/s.jsonl", prompt(0));
  append(root / "projects/open/s.jsonl", prompt(1));
  fs::permissions(root / "projects/shut", fs::perms::none);
  TailFixture fixture(root.path());
  fixture.start();
  REQUIRE(fixture.observer.has("r/open/s"));
  REQUIRE(fixture.tail->problems().size() == 1);
  REQUIRE(fixture.tail->problems().front().path == root / "projects/shut");
  fs::permissions(root / "projects/shut", fs::perms::owner_all);
  fixture.until([&] { return fixture.observer.has("r/shut/s") && fixture.tail->problems().empty(); });
}

TEST_CASE("fault 133: transcripts in a root itself are followed, with those of its directories") {
  TemporaryDirectory root;
  const std::string name = "2026-11-28T10-00-00-000Z_0198c0de";
  const auto session = [](const std::string& id) {
    return R"({"type":"session","version":3,"id":")" + id +
           R"(","timestamp":"2026-11-28T10:00:00.000Z","cwd":"/w"})" + "\n";
  };
  tail::Options options = TailFixture::options(root.path());
  options.roots.front().program = find_agent_program("pi");
  append(root / (name + "1.jsonl"), session("0198c0de-1"));
  TailFixture fixture(std::move(options), Mode::both);
  fixture.start();
  REQUIRE(fixture.observer.has("r/" + name + "1"));
  append(root / (name + "2.jsonl"), session("0198c0de-2"));
  append(root / "history.jsonl", session("0198c0de-3"));
  fs::create_directories(root / "sessions/--w--");
  fs::create_directories(root / "cache/--w--");
  append(root / ("cache/--w--/" + name + "4.jsonl"), session("0198c0de-4"));
  append(root / ("sessions/--w--/" + name + "5.jsonl"), session("0198c0de-5"));
  fixture.until([&] {
    return fixture.observer.has("r/" + name + "2") && fixture.observer.has("r/--w--/" + name + "5");
  });
  fixture.idle();
  CHECK(fixture.observer.streams.size() == 3);
  fs::remove_all(root / "sessions");
  fixture.until([&] { return !fixture.observer.has("r/--w--/" + name + "5"); });
  fs::create_directories(root / "sessions/--w--");
  append(root / ("sessions/--w--/" + name + "6.jsonl"), session("0198c0de-6"));
  fixture.until([&] { return fixture.observer.has("r/--w--/" + name + "6"); });
  CHECK(fixture.observer.has("r/" + name + "1"));
}
