// Every mechanism alone must ring for everything that can happen in a directory: one table of tests for all.
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "scratch.hpp"
#include "watch/watchers.hpp"

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace earshot::watch;
using namespace earshot::test;
using namespace std::chrono_literals;

namespace {

constexpr SweepIntervals quick{2ms, 60'000ms, 5ms, 5ms};

struct Bench {
  explicit Bench(Mode mode) : all(io, disk.get_executor(), mode, quick) {}
  ~Bench() { disk.join(); }

  Watcher& line(const std::string& prefix) {
    return all.mux().add_client({prefix}, [this](const ChangeHint& ring) {
      rung.insert(ring.where == ChangeHint::Where::everything ? "everything" : ring.path);
    });
  }
  /// What is posted to the disk thread by now is done.
  void settle() {
    bool done = false;
    asio::post(disk, [&] { asio::post(io, [&] { done = true; }); });
    until([&] { return done; });
  }
  template <class Condition>
  void until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      io.restart();
      io.run_one_for(10ms);
    }
  }
  void rings(const std::string& path) {
    until([&] { return rung.contains(path); });
    rung.clear();
  }

  asio::io_context io;
  asio::thread_pool disk{1};
  Watchers all;
  std::set<std::string> rung;
};

}  // namespace

TEST_CASE("a watcher rings for what is created, grows, moves, changes and goes") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  CAPTURE(static_cast<int>(mode));
  Scratch dir;
  append(dir / "old", "1");
  Bench bench(mode);
  bench.line(dir.path()).watch(dir.path());
  bench.settle();

  append(dir / "old", "2");
  bench.rings(dir / "old");
  append(dir / "new", "1");
  bench.rings(dir / "new");
  append(dir / "new", "2");
  bench.rings(dir / "new");
  fs::rename(dir / "new", dir / "newer");
  bench.until([&] { return bench.rung.contains(dir / "new") && bench.rung.contains(dir / "newer"); });
  bench.rung.clear();
  fs::create_directory(dir / "below");
  bench.rings(dir / "below");
  fs::permissions(dir / "old", fs::perms::owner_all);
  bench.rings(dir / "old");
  fs::remove(dir / "newer");
  bench.rings(dir / "newer");
  fs::remove(dir / "below");
  bench.rings(dir / "below");
}

TEST_CASE("nothing rings for a directory that was forgotten, or for what lies below it") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  Scratch dir;
  for (const char* each : {"a", "a/b", "ab"}) fs::create_directory(dir / each);
  Bench bench(mode);
  Watcher& line = bench.line(dir.path());
  for (const char* each : {"a", "a/b", "ab"}) line.watch(dir / each);
  line.unwatch(dir / "a");
  bench.settle();
  append(dir / "a/1", "x");
  append(dir / "a/b/1", "x");
  append(dir / "ab/1", "x");
  bench.until([&] { return bench.rung.contains(dir / "ab/1"); });  // came later, and is heard
  for (int turns = 0; turns < 20; ++turns) bench.settle();
  REQUIRE_FALSE(bench.rung.contains(dir / "a/1"));
  REQUIRE_FALSE(bench.rung.contains(dir / "a/b/1"));
}

TEST_CASE("the sweep rings for a directory that was forgotten and is there, though it is as it was") {
  // Gone for a moment and made again with the inode that it had: no look can tell, but whoever forgot it saw.
  Scratch dir;
  for (const char* each : {"a", "b"}) fs::create_directory(dir / each);
  Bench bench(Mode::sweep);
  Watcher& line = bench.line(dir.path());
  line.watch(dir.path());
  line.watch(dir / "a");
  bench.settle();
  bench.rung.clear();
  line.unwatch(dir / "a");
  bench.rings(dir / "a");
  REQUIRE_FALSE(bench.rung.contains(dir / "b"));
}

TEST_CASE("a directory that was deleted and made again rings once it is watched again") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  Scratch dir;
  Bench bench(mode);
  Watcher& line = bench.line(dir.path());
  for (int round = 0; round < 20; ++round) {
    fs::create_directory(dir / "d");
    line.watch(dir / "d");
    bench.settle();
    append(dir / "d/file", "x");
    bench.rings(dir / "d/file");
    fs::remove_all(dir / "d");
  }
}

TEST_CASE("a directory that was renamed rings by its new name when it is watched there") {
  Scratch dir;
  fs::create_directory(dir / "before");
  Bench bench(Mode::inotify);
  Watcher& line = bench.line(dir.path());
  line.watch(dir / "before");
  fs::rename(dir / "before", dir / "after");
  SECTION("the new one is watched first") {
    line.watch(dir / "after");
    line.unwatch(dir / "before");
  }
  SECTION("the old one is forgotten first") {
    line.unwatch(dir / "before");
    line.watch(dir / "after");
  }
  append(dir / "after/file", "x");
  bench.rings(dir / "after/file");
  REQUIRE_FALSE(bench.rung.contains(dir / "before/file"));
}

TEST_CASE("ten thousand appends are coalesced, and the last one is not lost") {
  Scratch dir;
  Bench bench(Mode::inotify);
  bench.line(dir.path()).watch(dir.path());
  for (int n = 0; n < 10'000; ++n) append(dir / "file", "x");
  bench.rings(dir / "file");
}

TEST_CASE("an overflow of the queue asks for a look everywhere") {
  Scratch dir;
  Bench bench(Mode::inotify);
  bench.line(dir.path()).watch(dir.path());
  const auto overflow = 16'384 + 100;  // fs.inotify.max_queued_events by default
  for (int n = 0; n < overflow; ++n) {
    // Two names in turn: the kernel merges equal neighbours.
    const std::string path = dir / (n % 2 ? "a" : "b");
    append(path, "x");
  }
  bench.until([&] { return bench.rung.contains("everything"); });
}

TEST_CASE("without a descriptor inotify says what to raise, and nothing breaks") {
  Scratch dir;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  asio::io_context io;
  const asio::steady_timer reactor(io);  // the loop itself has what it needs
  std::vector<int> taken;
  rlimit low = before;
  low.rlim_cur = 40;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
  Inotify inotify(io, [](const ChangeHint&) {});
  for (const int fd : taken) ::close(fd);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_FALSE(inotify.works());
  REQUIRE(inotify.problem().find("ulimit -n") != std::string::npos);
  inotify.watch(dir.path());
  inotify.unwatch(dir.path());
}

namespace {

/// Runs `test` in a child with one of inotify's limits of a user namespace of its own, so that nobody else
/// feels it.
void with_limit(const char* name, const char* value, bool (*test)(const Scratch& dir)) {
  enum { fine, wrong, impossible };
  Scratch dir;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(impossible);
    const int limit = ::open((std::string("/proc/sys/user/") + name).c_str(), O_WRONLY | O_CLOEXEC);
    if (limit < 0 || ::write(limit, value, std::strlen(value)) < 0) ::_exit(impossible);
    ::_exit(test(dir) ? fine : wrong);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == impossible)
    WARN("skipped: no user namespace with a limit of its own is to be had here");
  else
    REQUIRE(WEXITSTATUS(status) == fine);
}

bool says(const Inotify& inotify, const char* text) {
  return inotify.problem().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("fault 50: at the limit of instances inotify says what to raise") {
  with_limit("max_inotify_instances", "0", [](const Scratch&) {
    asio::io_context io;
    const Inotify inotify(io, [](const ChangeHint&) {});
    return !inotify.works() && says(inotify, "fs.inotify.max_user_instances");
  });
}

TEST_CASE("fault 49: at the limit of watches inotify says what to raise, until they are no longer wanted") {
  with_limit("max_inotify_watches", "2", [](const Scratch& dir) {
    for (const char* each : {"a", "b", "c", "d"}) fs::create_directory(dir / each);
    asio::io_context io;
    Inotify inotify(io, [](const ChangeHint&) {});
    for (const char* each : {"a", "b"}) inotify.watch(dir / each);
    bool good = inotify.works() && inotify.problem().empty();
    for (const char* each : {"c", "d"}) inotify.watch(dir / each);
    good = good && says(inotify, "fs.inotify.max_user_watches") && says(inotify, "2 directories are");
    inotify.unwatch(dir / "d");
    good = good && says(inotify, "1 directory is");
    inotify.unwatch(dir / "a");
    inotify.watch(dir / "c");  // there is room for it now
    return good && inotify.problem().empty();
  });
}

TEST_CASE("hard links that are written elsewhere do not ring, but the sweep sees them") {
  Scratch dir, elsewhere;
  append(dir / "file", "1");
  fs::create_hard_link(dir / "file", elsewhere / "other");
  Bench bench(Mode::both);
  bench.line(dir.path()).watch(dir.path());
  bench.settle();
  append(elsewhere / "other", "2");
  bench.rings(dir / "file");
}

TEST_CASE("a line hears what is at, below and above its prefixes, and everything") {
  WatchMux board;
  std::vector<std::string> rung;
  board.add_client({"/a/b"}, [&](const ChangeHint& ring) { rung.push_back(ring.path); });
  for (const char* path : {"/a/b", "/a/b/c", "/a", "/", "/a/bc", "/x"})
    board.notify({ChangeHint::Where::path, path});
  board.notify({ChangeHint::Where::everything, {}});
  REQUIRE(rung == std::vector<std::string>{"/a/b", "/a/b/c", "/a", "/", ""});
}

TEST_CASE("what one line forgets stays watched for another") {
  struct Fake final : Watcher {
    std::set<std::string> watched;
    void watch(const std::string& directory) override { watched.insert(directory); }
    void unwatch(const std::string& directory) override {
      std::erase_if(watched, [&](const auto& each) { return at_or_below(each, directory); });
    }
  } fake;
  WatchMux board;
  board.add(fake);
  Watcher& one = board.add_client({"/r"}, [](const ChangeHint&) {});
  Watcher& two = board.add_client({"/r"}, [](const ChangeHint&) {});
  for (const char* each : {"/r", "/r/a", "/r/a/b"}) one.watch(each);
  for (const char* each : {"/r", "/r/a/b"}) two.watch(each);
  one.unwatch("/r");
  REQUIRE(fake.watched == std::set<std::string>{"/r", "/r/a/b"});
  two.unwatch("/r/a");
  REQUIRE(fake.watched == std::set<std::string>{"/r"});
  two.unwatch("/r");
  REQUIRE(fake.watched.empty());
}

TEST_CASE("a mount that never notifies is found out by what the sweep finds first") {
  NotificationProbe probe;
  const Clock::time_point start{};
  const auto later = start + NotificationProbe::patience;
  probe.found("/m/1", false, start);
  probe.found("/m/2", false, start);
  REQUIRE_FALSE(probe.deaf(later));  // a hard link may do that
  probe.found("/m/3", false, start);
  REQUIRE_FALSE(probe.deaf(start));  // the notification may be on its way
  REQUIRE(probe.deaf(later));
  REQUIRE(probe.problem(later).find("/m/1") != std::string::npos);
  probe.heard("/m/2");
  REQUIRE_FALSE(probe.deaf(later));
  probe.heard("/ok");
  probe.found("/ok", false, start);  // known to be notified
  REQUIRE_FALSE(probe.deaf(later));
}

TEST_CASE("a name that came and nobody said so is suspicious until it is heard of") {
  NotificationProbe probe;
  const Clock::time_point start{};
  probe.found("/m/grown", false, start);
  REQUIRE_FALSE(probe.suspicious());  // through a link, or mapped: no notification is owed
  probe.found("/m/new", true, start);
  REQUIRE(probe.suspicious());
  REQUIRE_FALSE(probe.deaf(start + NotificationProbe::patience));
  probe.heard("/m/new");
  REQUIRE_FALSE(probe.suspicious());
}

TEST_CASE("what the sweep finds after notifications were lost makes no mount a deaf one") {
  NotificationProbe probe;
  const Clock::time_point start{};
  const auto later = start + NotificationProbe::patience;
  const auto amnesty = std::chrono::minutes(2);
  for (const char* each : {"/m/1", "/m/2", "/m/3"}) probe.found(each, true, start);
  REQUIRE(probe.deaf(later));
  probe.lost(amnesty, later);
  REQUIRE_FALSE(probe.deaf(later));
  for (const char* each : {"/m/4", "/m/5", "/m/6"}) probe.found(each, true, later);
  REQUIRE_FALSE(probe.deaf(later + NotificationProbe::patience));
  const auto after = later + amnesty;
  for (const char* each : {"/m/4", "/m/5", "/m/6"}) probe.found(each, true, after);
  REQUIRE(probe.deaf(after + NotificationProbe::patience));
}

TEST_CASE("however many paths were heard of, none of them is a suspect") {
  NotificationProbe probe;
  const Clock::time_point start{};
  const auto path = [](int n) { return "/m/" + std::to_string(n); };
  for (int n = 0; n < 20'000; ++n) probe.heard(path(n));
  for (int n = 0; n < 20'000; ++n) probe.found(path(n), true, start);
  REQUIRE_FALSE(probe.suspicious());
  for (int n = 20'000; n < 20'100; ++n) probe.found(path(n), true, start);
  REQUIRE(probe.deaf(start + NotificationProbe::patience));
}
