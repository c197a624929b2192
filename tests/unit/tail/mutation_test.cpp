// What happens to a file: whatever it is, the listener ends up with a fold of the final bytes.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/clock.hpp"
#include "rig.hpp"
#include "tail/files.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace {

/// One session that is known and folded, then watched.
struct Session {
  explicit Session(const std::string& text, Mode mode = Mode::both) {
    fs::create_directories(root / "projects/p");
    append(file, text);
    rig = std::make_unique<Rig>(root.path(), mode);
    rig->start();
    REQUIRE(rig->heard.has(name));
  }
  /// Makes the listener have all events: what was folded at start was not told.
  void tell_all() {
    append(file, "\n");
    rig->read(name);
  }
  const Heard::Told& told() { return rig->heard.streams[name]; }
  void same() { rig->same(name, file); }
  void settled() {
    rig->read(name);
    rig->idle();
  }

  Scratch root;
  const std::string file = root / "projects/p/s.jsonl";
  const std::string name = "r/p/s";
  std::unique_ptr<Rig> rig;
};

/// One that is born empty under the daemon's eyes, so that every event of it is told.
struct Born : Session {
  explicit Born(const std::string& text, Mode mode = Mode::both) : Session("", mode) {
    append(file, text);
    same();
  }
};

void overwrite(const std::string& path, std::uint64_t offset, std::string_view bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

auto every_mode() { return GENERATE(Mode::inotify, Mode::sweep, Mode::both); }

}  // namespace

TEST_CASE("fault 24: truncated to nothing and written anew is a reset") {
  Born session(prompts(0, 5), every_mode());
  REQUIRE(::truncate(session.file.c_str(), 0) == 0);
  session.rig->until([&] { return !session.told().resets.empty(); });
  append(session.file, prompts(10, 12));
  session.same();
  REQUIRE(session.told().resets == Lines{"truncated"});
}

TEST_CASE("fault 25: truncated, then grown past the offset between two looks, is a reset") {
  Born session(prompts(0, 3), every_mode());
  rewrite(session.file, prompts(10, 20));  // no look in between: the loop does not run
  session.same();
  REQUIRE(session.told().resets == Lines{"rewritten"});
}

TEST_CASE("fault 26: truncated inside a line, at each byte of it") {
  const std::string whole = prompts(0, 2);
  Born session(whole, Mode::both);
  for (std::size_t bytes = whole.size(); bytes-- > 0;) {
    const auto resets = session.told().resets.size();
    REQUIRE(::truncate(session.file.c_str(), static_cast<off_t>(bytes)) == 0);
    session.rig->until([&] { return session.told().resets.size() == resets + 1; });
    session.same();
    REQUIRE(session.told().resets.back() == "truncated");
  }
  append(session.file, prompts(3, 5));
  session.same();
}

TEST_CASE("fault 27: rewritten with the first line kept is a reset") {
  Born session(prompts(0, 3), every_mode());
  SECTION("to the same length") { rewrite(session.file, prompt(0) + prompts(3, 5)); }
  SECTION("longer") { rewrite(session.file, prompt(0) + prompts(3, 9)); }
  session.same();
  REQUIRE(session.told().resets == Lines{"rewritten"});
}

TEST_CASE("fault 28: an edit of the same length in the middle is a reset") {
  Born session(prompts(0, 100), every_mode());
  const auto at = contents(session.file).find("prompt 7\"");
  overwrite(session.file, at, "PROMPT");
  session.same();
  REQUIRE(session.told().resets == Lines{"rewritten"});
}

TEST_CASE("fault 28: an edit under an append is found when somebody doubts, and then only once") {
  Born session(prompts(0, 100));
  session.settled();
  const auto at = contents(session.file).find("prompt 7\"");
  overwrite(session.file, at, "PROMPT");
  append(session.file, prompts(100, 110));  // no look in between: the rig's loop stands still
  session.settled();
  REQUIRE(session.told().resets.empty());
  const auto doubt = [&] { session.rig->tail->request_verify(*session.rig->tail->find(session.name)); };
  doubt();
  session.same();
  REQUIRE(session.told().resets == Lines{"rewritten"});
  append(session.file, prompts(110, 111));
  session.same();
  const auto verifications = [&] { return session.rig->tail->counters().verifications; };
  const auto before = verifications();
  doubt();
  session.rig->until([&] { return verifications() == before + 1; });
  session.rig->idle();
  doubt();  // nothing was appended since
  session.rig->idle();
  REQUIRE(verifications() == before + 1);
  REQUIRE(session.told().resets.size() == 1);
}

TEST_CASE("an edit of the unterminated line is a reset, too") {
  Born session(prompts(0, 2) + R"({"type":"user","pend)");
  session.settled();
  overwrite(session.file, contents(session.file).size() - 4, "PEND");
  session.rig->until([&] { return !session.told().resets.empty(); });
  session.same();
  REQUIRE(session.told().resets == Lines{"rewritten"});
}

TEST_CASE("fault 29: an edit that restores the modification time is noticed by the change time") {
  Born session(prompts(0, 100), every_mode());
  struct stat before {};
  REQUIRE(::stat(session.file.c_str(), &before) == 0);
  overwrite(session.file, contents(session.file).find("prompt 7\""), "PROMPT");
  const timespec times[] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, session.file.c_str(), times, 0) == 0);
  session.same();
  REQUIRE(session.told().resets == Lines{"rewritten"});
}

TEST_CASE("fault 30: renamed over with the same beginning goes on without a reset") {
  Born session(prompts(0, 50), every_mode());
  const std::string copy = session.root / "copy";
  fs::copy_file(session.file, copy);
  SECTION("longer") { append(copy, prompts(50, 60)); }
  SECTION("equal") {}
  fs::rename(copy, session.file);
  session.same();
  append(session.file, prompts(60, 61));
  session.same();
  REQUIRE(session.told().resets.empty());
  REQUIRE(session.told().appeared == 1);
}

TEST_CASE("fault 31: renamed over with other content is a reset") {
  Born session(prompts(0, 5), every_mode());
  const std::string other = session.root / "other";
  SECTION("longer") { append(other, prompts(10, 20)); }
  SECTION("shorter") { append(other, prompts(10, 12)); }
  SECTION("of the same length") { append(other, prompts(5, 10)); }
  fs::rename(other, session.file);
  session.same();
  REQUIRE(session.told().resets == Lines{"replaced"});
}

TEST_CASE("fault 32: deleted and made again is a new history, whether or not the inode is reused") {
  Born session(prompts(0, 3), every_mode());
  for (int round = 1; round < 30; ++round) {
    fs::remove(session.file);
    append(session.file, prompts(10 * round, 10 * round + 3 + round % 3));
    session.same();
  }
}

TEST_CASE("fault 33: unlinked while it is still written is read to its end, then gone") {
  Born session(prompts(0, 3));
  const int fd = ::open(session.file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(fd >= 0);
  fs::remove(session.file);
  SECTION("written before the next look") {}
  SECTION("written after it") {
    const auto looks = session.rig->tail->counters().checks;
    session.rig->until([&] { return session.rig->tail->counters().checks > looks; });
  }
  put(fd, prompts(3, 6));
  ::close(fd);
  session.rig->until([&] { return !session.rig->heard.has(session.name); });
  REQUIRE(session.told().events == fold_of(prompts(0, 6)));
  REQUIRE(session.rig->tail->counters().open_files == 0);
  REQUIRE(session.rig->tail->counters().known_files == 0);
}

TEST_CASE("fault 34: a thousand old transcripts are removed: no error, no trouble") {
  const Mode mode = every_mode();
  Scratch root;
  fs::create_directories(root / "projects/p");
  for (int n = 0; n < 1000; ++n) append(root / ("projects/p/" + std::to_string(n) + ".jsonl"), prompt(n));
  Rig rig(root.path(), mode);
  rig.start();
  REQUIRE(rig.tail->counters().streams == 1000);
  for (int n = 0; n < 1000; ++n) fs::remove(root / ("projects/p/" + std::to_string(n) + ".jsonl"));
  rig.until([&] { return rig.tail->counters().known_files == 0; });
  REQUIRE(rig.tail->counters().streams == 0);
  for (const auto& [name, told] : rig.heard.streams) REQUIRE_FALSE(told.present);
  REQUIRE(rig.tail->problems().empty());
}

TEST_CASE("fault 35: appended through a hard link elsewhere is found by the sweep, and there is one stream") {
  const Mode mode = GENERATE(Mode::sweep, Mode::both);
  Born session(prompts(0, 2), mode);
  Scratch elsewhere;
  fs::create_hard_link(session.file, elsewhere / "link");
  fs::create_hard_link(session.file, session.root / "projects/p/other.jsonl");
  append(elsewhere / "link", prompts(2, 4));
  session.same();
  append(session.root / "projects/p/other.jsonl", prompts(4, 6));
  session.same();
  REQUIRE(session.rig->heard.streams.size() == 1);
  REQUIRE(session.told().resets.empty());
  fs::remove(session.file);  // the other name is the stream now
  session.rig->until([&] { return session.rig->heard.has("r/p/other"); });
  session.rig->same("r/p/other", session.root / "projects/p/other.jsonl");
}

TEST_CASE("hard links that are there at start are one stream") {
  Scratch root;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/a.jsonl", prompt(0));
  fs::create_hard_link(root / "projects/p/a.jsonl", root / "projects/p/b.jsonl");
  Rig rig(root.path());
  rig.start();
  REQUIRE(rig.heard.streams.size() == 1);
  REQUIRE(rig.tail->counters().known_files == 1);
}

TEST_CASE("fault 36: a symbolic link to a file is not followed") {
  Scratch outside;
  append(outside / "secret.jsonl", prompt(1));
  Born session(prompt(0));
  fs::create_symlink(outside / "secret.jsonl", session.root / "projects/p/link.jsonl");
  fs::create_symlink(session.file, session.root / "projects/p/inside.jsonl");
  append(session.root / "projects/p/z.jsonl", prompt(2));
  session.rig->same("r/p/z", session.root / "projects/p/z.jsonl");
  session.settled();
  REQUIRE(session.rig->heard.streams.size() == 2);

  fs::remove(session.file);  // put in a transcript's place it is not followed either
  fs::create_symlink(outside / "secret.jsonl", session.file);
  session.rig->until([&] { return !session.rig->heard.has(session.name); });
}

TEST_CASE("fault 39: a FIFO, a directory or a device in its place is said, and nothing hangs") {
  Born session(prompt(0), every_mode());
  fs::remove(session.file);
  SECTION("a FIFO") { REQUIRE(::mkfifo(session.file.c_str(), 0600) == 0); }
  SECTION("a directory") { fs::create_directory(session.file); }
  session.rig->until([&] { return !session.rig->tail->problems().empty(); });
  REQUIRE(session.rig->tail->problems().front().path == session.file);
  REQUIRE(session.rig->tail->problems().front().reason == "not a regular file");
  REQUIRE_FALSE(session.rig->heard.has(session.name));
  fs::remove(session.file);
  append(session.file, prompts(1, 3));
  session.same();
  REQUIRE(session.rig->tail->problems().empty());
}

TEST_CASE("fault 39: a directory that is called like a transcript is said at start, too, and not entered") {
  Scratch root;
  const std::string directory = root / "projects/p/s.jsonl";
  fs::create_directories(directory);
  append(directory + "/inside.jsonl", prompt(0));
  append(root / "projects/p/t.jsonl", prompt(1));
  Rig rig(root.path());
  rig.start();
  REQUIRE(rig.heard.has("r/p/t"));
  REQUIRE(rig.tail->counters().known_files == 1);
  REQUIRE(rig.tail->problems().size() == 1);
  REQUIRE(rig.tail->problems().front().path == directory);
  fs::remove_all(directory);
  append(directory, prompt(2));
  rig.same("r/p/s", directory);
  REQUIRE(rig.tail->problems().empty());
}

TEST_CASE("fault 39: swapped with a FIFO in a race, again and again") {
  Born session(prompt(0));
  for (int round = 0; round < 200; ++round) {
    const std::string pipe = session.root / "pipe", plain = session.root / "plain";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    append(plain, prompts(0, 1 + round % 5));
    fs::rename(pipe, session.file);
    session.rig->io.restart();
    session.rig->io.poll();
    fs::rename(plain, session.file);
  }
  session.same();
}

TEST_CASE("fault 40: a file without permission is said, tried again, and read when it may be") {
  if (::geteuid() == 0) {
    WARN("skipped: root may read everything");
    return;
  }
  Born session(prompt(0));
  REQUIRE(::chmod(session.file.c_str(), 0) == 0);
  session.rig->until([&] { return !session.rig->tail->problems().empty(); });
  REQUIRE(session.rig->tail->problems().front().path == session.file);
  REQUIRE(::chmod(session.file.c_str(), 0600) == 0);
  append(session.file, prompts(1, 3));
  session.same();
  session.rig->until([&] { return session.rig->tail->problems().empty(); });
  REQUIRE(session.told().resets.empty());
}

TEST_CASE("fault 40: what a cold file gets while it cannot be read is told when it can") {
  Scratch root;
  const std::string file = root / "projects/p/s.jsonl", name = "r/p/s";
  fs::create_directories(root / "projects/p");
  append(file, prompts(0, 3));
  const timespec long_ago[] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), long_ago, 0) == 0);
  for (const char* each : {"", "/projects", "/projects/p"})
    fs::permissions(root.path() + each, fs::perms{0755});
  const int writer = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(::chmod(file.c_str(), 0) == 0);
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t nobody = 65534;
  if (is_root) REQUIRE(::seteuid(nobody) == 0);  // root may read everything
  Rig rig(root.path());
  rig.start();
  for (const auto& more : {prompts(3, 5), prompts(5, 6)}) {
    REQUIRE(::write(writer, more.data(), more.size()) == static_cast<ssize_t>(more.size()));
    rig.until([&] { return !rig.tail->problems().empty(); });
    rig.idle();
  }
  if (is_root) REQUIRE(::seteuid(0) == 0);
  ::close(writer);
  REQUIRE(rig.heard.streams.empty());
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  const Lines all = fold_of(contents(file));
  const Lines news(all.begin() + static_cast<std::ptrdiff_t>(fold_of(prompts(0, 3)).size()), all.end());
  rig.until([&] { return rig.heard.streams[name].events == news; });
  REQUIRE(rig.tail->problems().empty());
}

TEST_CASE("fault 43: chmod, touch and xattr make no event") {
  Born session(prompts(0, 20), every_mode());
  const int events = session.rig->heard.events;
  const auto verifications = [&] { return session.rig->tail->counters().verifications; };
  const auto changed = [&](auto change) {
    const auto before = verifications();
    change();
    session.rig->until([&] { return verifications() > before; });
    session.settled();
  };
  changed([&] { REQUIRE(::chmod(session.file.c_str(), 0640) == 0); });
  changed([&] { REQUIRE(::utimensat(AT_FDCWD, session.file.c_str(), nullptr, 0) == 0); });
  changed([&] {
    if (::setxattr(session.file.c_str(), "user.earshot", "x", 1, 0) != 0)  // not on every file system
      REQUIRE(::chmod(session.file.c_str(), 0600) == 0);
  });
  REQUIRE(session.rig->heard.events == events);
  REQUIRE(session.told().resets.empty());
  append(session.file, prompts(20, 21));
  session.same();
}

TEST_CASE("a file that grew past many turns' budget is read whole, in order") {
  Born session(prompt(0));
  std::string bulk;
  for (int n = 1; bulk.size() < (5u << 20); ++n) bulk += prompt(n);
  append(session.file, bulk);
  session.same();
  REQUIRE(session.rig->tail->counters().bytes_read == contents(session.file).size());
}

TEST_CASE("fault 42: a file that cannot be read keeps its place and is read on") {
  // A file system that refuses is not to be had without root's tools; a descriptor limit refuses as well.
  Born session(prompts(0, 2));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  fs::create_directories(session.root / "projects/q");
  append(session.root / "projects/q/t.jsonl", "");
  session.rig->until([&] { return session.rig->heard.has("r/q/t"); });
  std::vector<int> taken;
  rlimit low = before;
  low.rlim_cur = 64;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
  // Every descriptor is taken: first the daemon gives up its own, then it takes turns with the one that is
  // left.
  const int writer = taken.back();
  taken.pop_back();
  ::close(writer);
  append(session.root / "projects/q/t.jsonl", prompts(10, 12));
  session.rig->until([&] { return session.rig->heard.streams["r/q/t"].events == fold_of(prompts(10, 12)); });
  for (const int fd : taken) ::close(fd);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  append(session.file, prompts(2, 4));
  session.same();
  REQUIRE(session.told().resets.empty());
}

TEST_CASE("what was folded at the start is compared again only when it may have changed since") {
  Scratch root;
  fs::create_directories(root / "projects/p");
  const std::string file = root / "projects/p/s.jsonl";
  append(file, prompts(0, 50));
  const auto verifications_of_a_start = [&] {
    Rig rig(root.path());
    rig.start();
    rig.idle();
    REQUIRE(rig.tail->find("r/p/s")->transcript()->bytes_read() == contents(file).size());
    return rig.tail->counters().verifications;
  };
  REQUIRE(verifications_of_a_start() == 1);  // its last change is too near to tell it from another one
  constexpr std::int64_t settled_ns = 2'000'000'000;
  while (tail::facts_of(file).changed_ns + settled_ns > watch::wall_now().count()) std::this_thread::yield();
  REQUIRE(verifications_of_a_start() == 0);
}
