// Each backend alone must report everything that can happen in a directory: the same tests run for all.
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

#include "base/clock.hpp"
#include "unit/support/raw_files.hpp"
#include "watch/watchers.hpp"

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::watch;
using earshot::Clock;
using namespace earshot::test;
using namespace std::chrono_literals;

namespace {

constexpr SweepIntervals quick{2ms, 60'000ms, 5ms, 5ms};

struct Bench {
  explicit Bench(Mode mode) : all(io, disk.get_executor(), mode, quick) {}
  ~Bench() { disk.join(); }

  Watcher& client(const std::string& prefix) {
    return all.mux().add_client({prefix}, [this](const ChangeHint& hint) {
      hints.insert(hint.where == ChangeHint::Where::everything ? "everything" : hint.path);
    });
  }
  /// Waits until the tasks posted to the disk thread so far are done.
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
  void expect(const std::string& path) {
    until([&] { return hints.contains(path); });
    hints.clear();
  }

  asio::io_context io;
  asio::thread_pool disk{1};
  Watchers all;
  std::set<std::string> hints;
};

}  // namespace

TEST_CASE("a watcher reports what is created, grows, moves, changes and is removed") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  CAPTURE(static_cast<int>(mode));
  TemporaryDirectory dir;
  append(dir / "old", "1");
  Bench bench(mode);
  bench.client(dir.path()).watch(dir.path());
  bench.settle();

  append(dir / "old", "2");
  bench.expect(dir / "old");
  append(dir / "new", "1");
  bench.expect(dir / "new");
  append(dir / "new", "2");
  bench.expect(dir / "new");
  fs::rename(dir / "new", dir / "newer");
  bench.until([&] { return bench.hints.contains(dir / "new") && bench.hints.contains(dir / "newer"); });
  bench.hints.clear();
  fs::create_directory(dir / "below");
  bench.expect(dir / "below");
  fs::permissions(dir / "old", fs::perms::owner_all);
  bench.expect(dir / "old");
  fs::remove(dir / "newer");
  bench.expect(dir / "newer");
  fs::remove(dir / "below");
  bench.expect(dir / "below");
}

TEST_CASE("a path is reported when a link on its way is pointed elsewhere") {
  const Mode mode = GENERATE(Mode::inotify, Mode::both);
  TemporaryDirectory dir;
  for (const char* each : {"first", "second", "links", "watched"}) fs::create_directories(dir / each);
  const auto point = [&](const std::string& target) {
    fs::create_symlink(target, dir / "links/new");
    fs::rename(dir / "links/new", dir / "links/to");
  };
  point(dir / "first");
  fs::create_symlink(dir / "links/to", dir / "watched/root");
  Bench bench(mode);
  Watcher& client = bench.client(dir / "watched");
  client.watch_links(dir / "watched/root");
  bench.settle();
  for (const char* each : {"second", "first"}) {
    point(dir / each);
    bench.expect(dir / "watched/root");
    client.watch_links(dir / "watched/root");
  }
  fs::remove(dir / "links/to");
  bench.expect(dir / "watched/root");
  client.watch_links(dir / "watched/root");
  point(dir / "second");
  bench.expect(dir / "watched/root");
}

TEST_CASE("an unwatched directory and everything below it is not reported") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  TemporaryDirectory dir;
  for (const char* each : {"a", "a/b", "ab"}) fs::create_directory(dir / each);
  Bench bench(mode);
  Watcher& client = bench.client(dir.path());
  for (const char* each : {"a", "a/b", "ab"}) client.watch(dir / each);
  client.unwatch(dir / "a");
  bench.settle();
  append(dir / "a/1", "x");
  append(dir / "a/b/1", "x");
  append(dir / "ab/1", "x");
  bench.until([&] { return bench.hints.contains(dir / "ab/1"); });  // was written later
  for (int turns = 0; turns < 20; ++turns) bench.settle();
  REQUIRE_FALSE(bench.hints.contains(dir / "a/1"));
  REQUIRE_FALSE(bench.hints.contains(dir / "a/b/1"));
}

TEST_CASE("the sweep reports an unwatched directory that exists unchanged") {
  // Removed for a moment and created again with the same inode: no check detects it, but the caller of
  // unwatch() did.
  TemporaryDirectory dir;
  for (const char* each : {"a", "b"}) fs::create_directory(dir / each);
  Bench bench(Mode::sweep);
  Watcher& client = bench.client(dir.path());
  client.watch(dir.path());
  client.watch(dir / "a");
  bench.settle();
  bench.hints.clear();
  client.unwatch(dir / "a");
  bench.expect(dir / "a");
  REQUIRE_FALSE(bench.hints.contains(dir / "b"));
}

TEST_CASE("the sweep compares with the listing that it made for a client") {
  const Mode mode = GENERATE(Mode::sweep, Mode::both);
  TemporaryDirectory dir;
  fs::create_directory(dir / "d");
  for (const char* each : {"d/grows", "d/removed", "d/stays"}) append(dir / each, "x");
  Bench bench(mode);
  Watcher& client = bench.client(dir.path());
  client.watch_before_listing(dir / "d");
  std::set<std::string> listed;
  asio::post(bench.disk, [&, lister = client.lister()] {
    for (const DirectoryEntry& entry :
         lister(dir / "d", {}, [](const std::string& name) { return name != "removed"; }).entries)
      listed.insert(entry.name);
    // Before any pass of the sweep: it must know what the client saw.
    append(dir / "d/grows", "y");
    append(dir / "d/new", "x");
    fs::remove(dir / "d/removed");
  });
  bench.until([&] { return bench.hints.contains(dir / "d/grows") && bench.hints.contains(dir / "d/new"); });
  bench.until([&] { return bench.hints.contains(dir / "d/removed"); });
  REQUIRE_FALSE(bench.hints.contains(dir / "d/stays"));
  REQUIRE(listed == std::set<std::string>{"grows", "stays"});
  bench.hints.clear();
  fs::remove_all(dir / "d");
  fs::create_directory(dir / "d");
  client.unwatch(dir / "d");
  client.watch_before_listing(dir / "d");
  asio::post(bench.disk, [&, lister = client.lister()] {
    REQUIRE(lister(dir / "d", {}, [](const std::string&) { return true; }).entries.empty());
    append(dir / "d/again", "x");
  });
  bench.expect(dir / "d/again");
}

TEST_CASE("inotify alone needs no listing") {
  TemporaryDirectory dir;
  Bench bench(Mode::inotify);
  Watcher& client = bench.client(dir.path());
  REQUIRE_FALSE(client.lister());
  client.watch_before_listing(dir.path());
  append(dir / "file", "x");
  bench.expect(dir / "file");
}

TEST_CASE("a directory that was deleted and created again is reported once it is watched again") {
  const Mode mode = GENERATE(Mode::inotify, Mode::sweep, Mode::both);
  TemporaryDirectory dir;
  Bench bench(mode);
  Watcher& client = bench.client(dir.path());
  for (int round = 0; round < 20; ++round) {
    fs::create_directory(dir / "d");
    client.watch(dir / "d");
    bench.settle();
    append(dir / "d/file", "x");
    bench.expect(dir / "d/file");
    fs::remove_all(dir / "d");
  }
}

TEST_CASE("a renamed directory is reported under its new name when it is watched there") {
  TemporaryDirectory dir;
  fs::create_directory(dir / "before");
  Bench bench(Mode::inotify);
  Watcher& client = bench.client(dir.path());
  client.watch(dir / "before");
  fs::rename(dir / "before", dir / "after");
  SECTION("the new one is watched first") {
    client.watch(dir / "after");
    client.unwatch(dir / "before");
  }
  SECTION("the old one is unwatched first") {
    client.unwatch(dir / "before");
    client.watch(dir / "after");
  }
  append(dir / "after/file", "x");
  bench.expect(dir / "after/file");
  REQUIRE_FALSE(bench.hints.contains(dir / "before/file"));
}

TEST_CASE("ten thousand appends are coalesced, and the last one is not lost") {
  TemporaryDirectory dir;
  Bench bench(Mode::inotify);
  bench.client(dir.path()).watch(dir.path());
  for (int n = 0; n < 10'000; ++n) append(dir / "file", "x");
  bench.expect(dir / "file");
}

TEST_CASE("fault 141: more changes than one turn reports are all reported, a part in each turn") {
  TemporaryDirectory dir;
  Bench bench(Mode::inotify);
  bench.client(dir.path()).watch(dir.path());
  constexpr std::size_t files = 20 * Inotify::hints_per_poll;
  for (std::size_t n = 0; n < files; ++n) append(dir / std::to_string(n), "x");
  bench.all.poll();
  CHECK(bench.hints.size() == Inotify::hints_per_poll);
  bench.until([&] { return bench.hints.size() >= files; });
  CHECK(bench.hints.size() == files);
}

TEST_CASE("a change is reported by poll() while the loop serves others, and once") {
  TemporaryDirectory dir;
  Bench bench(Mode::inotify);
  int reports = 0;
  bench.all.mux().add_client({dir.path()}, [&](const ChangeHint&) { ++reports; }).watch(dir.path());
  bench.all.poll();
  CHECK(reports == 0);
  append(dir / "file", "x");
  bench.all.poll();
  CHECK(reports > 0);
  const int before = reports;
  bench.all.poll();
  bench.io.poll();  // the wake-up finds nothing any more
  CHECK(reports == before);
}

TEST_CASE("an overflow of the queue is reported as a change of everything") {
  TemporaryDirectory dir;
  Bench bench(Mode::inotify);
  bench.client(dir.path()).watch(dir.path());
  const auto overflow = 16'384 + 100;  // fs.inotify.max_queued_events by default
  for (int n = 0; n < overflow; ++n) {
    // Two names in turn: the kernel merges equal neighbours.
    const std::string path = dir / (n % 2 ? "a" : "b");
    append(path, "x");
  }
  bench.until([&] { return bench.hints.contains("everything"); });
}

TEST_CASE("without a descriptor inotify names the limit to raise") {
  TemporaryDirectory dir;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  asio::io_context io;
  const asio::steady_timer reactor(io);  // the loop itself has what it needs
  REQUIRE(
      Inotify(io, [](const ChangeHint&) {}).works());  // UBSan checks a type for the first time with a pipe
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

/// Runs `test` in a child process with an inotify limit in its own user namespace.
void with_limit(const char* name, const char* value, bool (*test)(const TemporaryDirectory& dir)) {
  enum { fine, wrong, impossible };
  TemporaryDirectory dir;
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
    WARN("skipped: user namespaces with their own limits are not available here");
  else
    REQUIRE(WEXITSTATUS(status) == fine);
}

bool mentions(const Inotify& inotify, const char* text) {
  return inotify.problem().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("fault 50: at the limit of instances inotify names the limit") {
  with_limit("max_inotify_instances", "0", [](const TemporaryDirectory&) {
    asio::io_context io;
    const Inotify inotify(io, [](const ChangeHint&) {});
    return !inotify.works() && mentions(inotify, "fs.inotify.max_user_instances");
  });
}

TEST_CASE("fault 49: at the limit of watches inotify names the limit, until fewer are wanted") {
  with_limit("max_inotify_watches", "2", [](const TemporaryDirectory& dir) {
    for (const char* each : {"a", "b", "c", "d"}) fs::create_directory(dir / each);
    asio::io_context io;
    Inotify inotify(io, [](const ChangeHint&) {});
    for (const char* each : {"a", "b"}) inotify.watch(dir / each);
    bool good = inotify.works() && inotify.problem().empty();
    for (const char* each : {"c", "d"}) inotify.watch(dir / each);
    good = good && mentions(inotify, "fs.inotify.max_user_watches") && mentions(inotify, "2 directories are");
    inotify.unwatch(dir / "d");
    good = good && mentions(inotify, "1 directory is");
    inotify.unwatch(dir / "a");
    inotify.watch(dir / "c");  // there is room for it now
    return good && inotify.problem().empty();
  });
}

TEST_CASE("writes through a hard link elsewhere are found by the sweep only") {
  TemporaryDirectory dir, elsewhere;
  append(dir / "file", "1");
  fs::create_hard_link(dir / "file", elsewhere / "other");
  Bench bench(Mode::both);
  bench.client(dir.path()).watch(dir.path());
  bench.settle();
  append(elsewhere / "other", "2");
  bench.expect(dir / "file");
}

TEST_CASE("a client receives hints at, below and above its prefixes, and for everything") {
  WatchMux mux;
  std::vector<std::string> hints;
  mux.add_client({"/a/b"}, [&](const ChangeHint& hint) { hints.push_back(hint.path); });
  for (const char* path : {"/a/b", "/a/b/c", "/a", "/", "/a/bc", "/x"})
    mux.notify({ChangeHint::Where::path, path});
  mux.notify({ChangeHint::Where::everything, {}});
  REQUIRE(hints == std::vector<std::string>{"/a/b", "/a/b/c", "/a", "/", ""});
}

TEST_CASE("a directory stays watched while any client wants it") {
  struct Fake final : Watcher {
    std::set<std::string> watched;
    void watch(const std::string& directory) override { watched.insert(directory); }
    void unwatch(const std::string& directory) override {
      std::erase_if(watched, [&](const auto& each) { return at_or_below(each, directory); });
    }
  } fake;
  WatchMux mux;
  mux.add_backend(fake);
  Watcher& one = mux.add_client({"/r"}, [](const ChangeHint&) {});
  Watcher& two = mux.add_client({"/r"}, [](const ChangeHint&) {});
  for (const char* each : {"/r", "/r/a", "/r/a/b"}) one.watch(each);
  for (const char* each : {"/r", "/r/a/b"}) two.watch(each);
  one.unwatch("/r");
  REQUIRE(fake.watched == std::set<std::string>{"/r", "/r/a/b"});
  two.unwatch("/r/a");
  REQUIRE(fake.watched == std::set<std::string>{"/r"});
  two.unwatch("/r");
  REQUIRE(fake.watched.empty());
}

TEST_CASE("a mount that never notifies is detected by changes that only the sweep finds") {
  NotificationProbe probe;
  const Clock::time_point start{};
  const auto later = start + NotificationProbe::patience;
  probe.swept("/m/1", false, start);
  probe.swept("/m/2", false, start);
  REQUIRE_FALSE(probe.is_silent(later));  // a hard link may do that
  probe.swept("/m/3", false, start);
  REQUIRE_FALSE(probe.is_silent(start));  // the notification may be on its way
  REQUIRE(probe.is_silent(later));
  REQUIRE(probe.problem(later).find("/m/1") != std::string::npos);
  probe.notified("/m/2");
  REQUIRE_FALSE(probe.is_silent(later));
  probe.notified("/ok");
  probe.swept("/ok", false, start);  // known to be notified
  REQUIRE_FALSE(probe.is_silent(later));
}

TEST_CASE("a new name is suspicious until its notification arrives") {
  NotificationProbe probe;
  const Clock::time_point start{};
  probe.swept("/m/grown", false, start);
  REQUIRE_FALSE(probe.is_suspicious());  // a hard link or a mapped write sends no notification
  probe.swept("/m/new", true, start);
  REQUIRE(probe.is_suspicious());
  REQUIRE_FALSE(probe.is_silent(start + NotificationProbe::patience));
  probe.notified("/m/new");
  REQUIRE_FALSE(probe.is_suspicious());
}

TEST_CASE("changes found after notifications were lost prove nothing about the mount") {
  NotificationProbe probe;
  const Clock::time_point start{};
  const auto later = start + NotificationProbe::patience;
  const auto grace = std::chrono::minutes(2);
  for (const char* each : {"/m/1", "/m/2", "/m/3"}) probe.swept(each, true, start);
  REQUIRE(probe.is_silent(later));
  probe.notifications_lost(grace, later);
  REQUIRE_FALSE(probe.is_silent(later));
  for (const char* each : {"/m/4", "/m/5", "/m/6"}) probe.swept(each, true, later);
  REQUIRE_FALSE(probe.is_silent(later + NotificationProbe::patience));
  const auto after = later + grace;
  for (const char* each : {"/m/4", "/m/5", "/m/6"}) probe.swept(each, true, after);
  REQUIRE(probe.is_silent(after + NotificationProbe::patience));
}

TEST_CASE("a path that was notified once is never a suspect") {
  NotificationProbe probe;
  const Clock::time_point start{};
  const auto path = [](int n) { return "/m/" + std::to_string(n); };
  for (int n = 0; n < 20'000; ++n) probe.notified(path(n));
  for (int n = 0; n < 20'000; ++n) probe.swept(path(n), true, start);
  REQUIRE_FALSE(probe.is_suspicious());
  for (int n = 20'000; n < 20'100; ++n) probe.swept(path(n), true, start);
  REQUIRE(probe.is_silent(start + NotificationProbe::patience));
}

TEST_CASE("fault 83: a hot file that changes silently is reported, and only when it changes") {
  TemporaryDirectory dir;
  append(dir / "hot", "1");
  asio::io_context io;
  asio::thread_pool disk{1};
  int hints = 0;
  Sweep sweep(io, disk.get_executor(), [&](const ChangeHint&) { ++hints; },
              {2ms, 60'000ms, 60'000ms, 60'000ms});
  const auto run_until = [&](const auto& condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      io.restart();
      io.run_one_for(10ms);
    }
  };
  sweep.mark_hot(dir / "hot");
  run_until([&] { return hints == 1; });  // the first look
  const auto look_ten_times = [&] {
    for (int looks = 0; looks < 10; ++looks) {
      bool done = false;
      asio::post(disk, [&] { asio::post(io, [&] { done = true; }); });
      run_until([&] { return done; });
      io.run_one_for(5ms);
    }
  };
  for (int change = 0; change < 4; ++change) {
    const int before = hints;
    append(dir / "hot", "2");
    run_until([&] { return hints > before; });
    look_ten_times();
    CHECK(hints <= before + 2);  // a look during the write may see its time without its size
    const int settled = hints;
    look_ten_times();
    CHECK(hints == settled);
  }
  disk.join();
}

using Paths = std::vector<std::string>;

TEST_CASE("the innermost mount at or above a path determines its file system") {
  const std::string_view mounts =
      "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "30 22 0:40 / /home rw,nosuid shared:5 master:1 - nfs4 server:/home rw,vers=4.2\n"
      "31 30 254:1 / /home/ada/local rw - xfs /dev/vdb rw\n"
      "32 22 0:41 / /mnt/a\\040b rw - fuse.sshfs ada@host:/ rw\n"
      "33 22 0:42 / /over rw - fuse /source rw\n"
      "34 22 0:43 / /over rw - tmpfs none rw\n";
  REQUIRE(remote_mounts(mounts, "/root/.claude").empty());
  REQUIRE(remote_mounts(mounts, "/home/ada/.claude") == Paths{"/home"});
  REQUIRE(remote_mounts(mounts, "/home") == Paths{"/home"});
  REQUIRE(remote_mounts(mounts, "/home/ada/local/x").empty());
  REQUIRE(remote_mounts(mounts, "/home/ada/locals") == Paths{"/home"});
  REQUIRE(remote_mounts(mounts, "/mnt/a b/c") == Paths{"/mnt/a b"});
  REQUIRE(remote_mounts(mounts, "/mnt") == Paths{"/mnt/a b"});  // it contains one
  REQUIRE(remote_mounts(mounts, "/mnt/a").empty());
  REQUIRE(remote_mounts(mounts, "/over/x").empty());  // the later mount hides the earlier one
}

TEST_CASE("malformed lines of the mount table are ignored") {
  REQUIRE(remote_mounts("", "/a").empty());
  REQUIRE(remote_mounts("1 2 3\n\n - nfs\n22 1 0:1 / / rw nfs x\n", "/a").empty());
  REQUIRE(remote_mounts("22 1 0:1 / / rw - nfs", "/a") == Paths{"/"});
}
