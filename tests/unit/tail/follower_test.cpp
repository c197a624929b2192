// Whatever happens to a file, the observer ends up with a fold of its final bytes.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "unit/tail/tail_fixture.hpp"

namespace follower_test {

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace {

/// A session that was folded at start.
struct Session {
  /// `compares`: changed files are compared with what was read after a quiet moment.
  explicit Session(const std::string& text, Mode mode = Mode::both, bool compares = true) {
    fs::create_directories(root / "projects/p");
    append(file, text);
    tail::Options options = TailFixture::options(root.path());
    if (!compares) options.verify_bytes_max = 0;
    fixture = std::make_unique<TailFixture>(std::move(options), mode);
    fixture->start();
    REQUIRE(fixture->observer.has(name));
  }
  /// Delivers all events: those folded at start were not.
  void tell_all() {
    append(file, "\n");
    fixture->read(name);
  }
  const RecordingObserver::Received& received() { return fixture->observer.streams[name]; }
  void same() { fixture->same(name, file); }
  void settled() {
    fixture->read(name);
    fixture->idle();
  }

  TemporaryDirectory root;
  const std::string file = root / "projects/p/s.jsonl";
  const std::string name = "r/p/s";
  std::unique_ptr<TailFixture> fixture;
};

/// A session that is created empty after the start, so that all its events are delivered.
struct Born : Session {
  explicit Born(const std::string& text, Mode mode = Mode::both, bool compares = true)
      : Session("", mode, compares) {
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

TEST_CASE("fault 24: truncated to nothing and written again is a reset") {
  Born session(prompts(0, 5), every_mode());
  REQUIRE(::truncate(session.file.c_str(), 0) == 0);
  session.fixture->until([&] { return !session.received().resets.empty(); });
  append(session.file, prompts(10, 12));
  session.same();
  REQUIRE(session.received().resets == Lines{"truncated"});
}

TEST_CASE("fault 25: truncated, then grown past the offset between two checks, is a reset") {
  Born session(prompts(0, 3), every_mode());
  rewrite(session.file, prompts(10, 20));  // no check in between: the loop does not run
  session.same();
  REQUIRE(session.received().resets == Lines{"rewritten"});
}

TEST_CASE("fault 26: truncated inside a line, at each byte of it") {
  const std::string whole = prompts(0, 2);
  Born session(whole, Mode::both);
  for (std::size_t bytes = whole.size(); bytes-- > 0;) {
    const auto resets = session.received().resets.size();
    REQUIRE(::truncate(session.file.c_str(), static_cast<off_t>(bytes)) == 0);
    session.fixture->until([&] { return session.received().resets.size() == resets + 1; });
    session.same();
    REQUIRE(session.received().resets.back() == "truncated");
  }
  append(session.file, prompts(3, 5));
  session.same();
}

TEST_CASE("fault 27: rewritten with the first line kept is a reset") {
  Born session(prompts(0, 3), every_mode());
  SECTION("to the same length") { rewrite(session.file, prompt(0) + prompts(3, 5)); }
  SECTION("longer") { rewrite(session.file, prompt(0) + prompts(3, 9)); }
  session.same();
  REQUIRE(session.received().resets == Lines{"rewritten"});
}

TEST_CASE("fault 28: an edit of the same length in the middle is a reset") {
  Born session(prompts(0, 100), every_mode());
  const auto at = contents(session.file).find("prompt 7\"");
  overwrite(session.file, at, "PROMPT");
  session.same();
  REQUIRE(session.received().resets == Lines{"rewritten"});
}

TEST_CASE("fault 28: an edit followed by an append is found by a requested verification, once") {
  Born session(prompts(0, 100), Mode::both, false);
  session.settled();
  const auto at = contents(session.file).find("prompt 7\"");
  overwrite(session.file, at, "PROMPT");
  append(session.file, prompts(100, 110));  // no check in between: the loop does not run
  session.settled();
  REQUIRE(session.received().resets.empty());
  const auto request_verify = [&] {
    session.fixture->tail->request_verify(*session.fixture->tail->find(session.name));
  };
  request_verify();
  session.same();
  REQUIRE(session.received().resets == Lines{"rewritten"});
  append(session.file, prompts(110, 111));
  session.same();
  const auto verifications = [&] { return session.fixture->tail->counters().verifications; };
  const auto before = verifications();
  request_verify();
  session.fixture->until([&] { return verifications() == before + 1; });
  session.fixture->idle();
  request_verify();  // nothing was appended since
  session.fixture->idle();
  REQUIRE(verifications() == before + 1);
  REQUIRE(session.received().resets.size() == 1);
}

TEST_CASE("an edit of the unterminated line is a reset too") {
  Born session(prompts(0, 2) + R"({"type":"user","pend)");
  session.settled();
  overwrite(session.file, contents(session.file).size() - 4, "PEND");
  session.fixture->until([&] { return !session.received().resets.empty(); });
  session.same();
  REQUIRE(session.received().resets == Lines{"rewritten"});
}

TEST_CASE("fault 29: an edit that restores the modification time is noticed by the change time") {
  Born session(prompts(0, 100), every_mode());
  struct stat before {};
  REQUIRE(::stat(session.file.c_str(), &before) == 0);
  overwrite(session.file, contents(session.file).find("prompt 7\""), "PROMPT");
  const timespec times[] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, session.file.c_str(), times, 0) == 0);
  session.same();
  REQUIRE(session.received().resets == Lines{"rewritten"});
}

TEST_CASE("fault 30: replaced by rename with the same prefix continues without a reset") {
  Born session(prompts(0, 50), every_mode());
  const std::string copy = session.root / "copy";
  fs::copy_file(session.file, copy);
  SECTION("longer") { append(copy, prompts(50, 60)); }
  SECTION("equal") {}
  fs::rename(copy, session.file);
  session.same();
  append(session.file, prompts(60, 61));
  session.same();
  REQUIRE(session.received().resets.empty());
  REQUIRE(session.received().added == 1);
}

TEST_CASE("fault 31: replaced by rename with other content is a reset") {
  Born session(prompts(0, 5), every_mode());
  const std::string other = session.root / "other";
  SECTION("longer") { append(other, prompts(10, 20)); }
  SECTION("shorter") { append(other, prompts(10, 12)); }
  SECTION("of the same length") { append(other, prompts(5, 10)); }
  fs::rename(other, session.file);
  session.same();
  REQUIRE(session.received().resets == Lines{"replaced"});
}

TEST_CASE("fault 32: deleted and created again is a new history, with a new or a reused inode") {
  Born session(prompts(0, 3), every_mode());
  for (int round = 1; round < 30; ++round) {
    fs::remove(session.file);
    append(session.file, prompts(10 * round, 10 * round + 3 + round % 3));
    session.same();
  }
}

TEST_CASE("fault 33: an unlinked file that is still written is read to its end, then removed") {
  Born session(prompts(0, 3));
  const int fd = ::open(session.file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  REQUIRE(fd >= 0);
  fs::remove(session.file);
  SECTION("written before the next check") {}
  SECTION("written after it") {
    const auto checks = session.fixture->tail->counters().checks;
    session.fixture->until([&] { return session.fixture->tail->counters().checks > checks; });
  }
  put(fd, prompts(3, 6));
  ::close(fd);
  session.fixture->until([&] { return !session.fixture->observer.has(session.name); });
  REQUIRE(session.received().events == fold_of(prompts(0, 6)));
  REQUIRE(session.fixture->tail->counters().open_files == 0);
  REQUIRE(session.fixture->tail->counters().known_files == 0);
}

TEST_CASE("fault 142: what a removed directory's files still had is delivered, a part in each turn") {
  Born session(prompts(0, 3));
  append(session.file, prompts(3, 4));
  session.same();  // its descriptor is open
  const std::string text = prompts(4, 4000);
  REQUIRE(text.size() > 4 * tail::Follower::batch_bytes);
  append(session.file, text);
  fs::remove_all(session.root / "projects/p");
  const int before = session.fixture->observer.batches;
  session.fixture->until([&] { return !session.fixture->observer.has(session.name); });
  REQUIRE(session.received().events == fold_of(prompts(0, 4) + text));
  REQUIRE(session.fixture->observer.batches - before > 4);
  session.fixture->until([&] { return session.fixture->tail->counters().directories == 1; });
  REQUIRE(session.fixture->tail->counters().known_files == 0);
  REQUIRE(session.fixture->tail->counters().open_files == 0);
}

TEST_CASE("fault 142: a directory that is created again before the rest of its files was delivered") {
  Born session(prompts(0, 3));
  append(session.file, prompts(3, 4));
  session.same();
  append(session.file, prompts(4, 4000));
  fs::remove_all(session.root / "projects/p");
  session.fixture->until([&] { return session.received().events.size() > 100; });
  fs::create_directories(session.root / "projects/p");
  append(session.file, prompts(9, 12));
  session.same();
  REQUIRE(session.fixture->tail->counters().known_files == 1);
}

TEST_CASE("fault 34: removing a thousand old transcripts causes no problem") {
  const Mode mode = every_mode();
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  for (int n = 0; n < 1000; ++n) append(root / ("projects/p/" + std::to_string(n) + ".jsonl"), prompt(n));
  TailFixture fixture(root.path(), mode);
  fixture.start();
  REQUIRE(fixture.tail->counters().streams == 1000);
  for (int n = 0; n < 1000; ++n) fs::remove(root / ("projects/p/" + std::to_string(n) + ".jsonl"));
  fixture.until([&] { return fixture.tail->counters().known_files == 0; });
  REQUIRE(fixture.tail->counters().streams == 0);
  for (const auto& [name, received] : fixture.observer.streams) REQUIRE_FALSE(received.present);
  REQUIRE(fixture.tail->problems().empty());
}

TEST_CASE(
    "fault 35: an append through a hard link elsewhere is found by the sweep, and there is one stream") {
  const Mode mode = GENERATE(Mode::sweep, Mode::both);
  Born session(prompts(0, 2), mode);
  TemporaryDirectory elsewhere;
  fs::create_hard_link(session.file, elsewhere / "link");
  fs::create_hard_link(session.file, session.root / "projects/p/other.jsonl");
  append(elsewhere / "link", prompts(2, 4));
  session.same();
  append(session.root / "projects/p/other.jsonl", prompts(4, 6));
  session.same();
  REQUIRE(session.fixture->observer.streams.size() == 1);
  REQUIRE(session.received().resets.empty());
  fs::remove(session.file);  // the other name becomes the stream
  session.fixture->until([&] { return session.fixture->observer.has("r/p/other"); });
  session.fixture->same("r/p/other", session.root / "projects/p/other.jsonl");
}

TEST_CASE("fault 35: when another file takes the name of a linked one, its other name becomes a stream") {
  const Mode mode = every_mode();
  Born session(prompts(0, 2), mode);
  const std::string other = session.root / "projects/p/other.jsonl";
  fs::create_hard_link(session.file, other);
  append(other, prompts(2, 4));
  session.same();
  append(session.root / "new", prompts(9, 12));
  fs::rename(session.root / "new", session.file);
  session.fixture->until([&] { return session.fixture->observer.has("r/p/other"); });
  session.fixture->same("r/p/other", other);
  session.same();
}

TEST_CASE("fault 141: hard links to hundreds of transcripts are made and removed") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/a");
  const auto path = [&](const char* directory, int n) {
    return root / ("projects/" + std::string(directory) + "/" + std::to_string(n) + ".jsonl");
  };
  constexpr int files = 300;
  TailFixture fixture(root.path());
  fixture.start();
  for (int n = 0; n < files; ++n) append(path("a", n), prompt(n));
  fixture.until([&] { return fixture.tail->counters().known_files == files; });
  for (const char* name : {"b", "c"}) {
    fs::create_directories(root / ("projects/" + std::string(name)));
    for (int n = 0; n < files; ++n) fs::create_hard_link(path("a", n), path(name, n));
  }
  for (int n = 0; n < files; ++n) append(path("b", n), prompt(n + files));
  for (int n = 0; n < files; ++n) fixture.same("r/a/" + std::to_string(n), path("a", n));
  REQUIRE(fixture.tail->counters().known_files == files);
  fs::remove_all(root / "projects/c");
  fixture.until([&] { return fixture.tail->counters().directories == 3; });
  fs::remove_all(root / "projects/a");  // the other names become the streams
  for (int n = 0; n < files; ++n) {
    fixture.until([&] { return fixture.observer.has("r/b/" + std::to_string(n)); });
    fixture.same("r/b/" + std::to_string(n), path("b", n));
  }
  fixture.until([&] { return fixture.tail->counters().known_files == files; });
  REQUIRE(fixture.tail->known_files("r") == files);
}

TEST_CASE("hard links found at start are one stream") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/a.jsonl", prompt(0));
  fs::create_hard_link(root / "projects/p/a.jsonl", root / "projects/p/b.jsonl");
  TailFixture fixture(root.path());
  fixture.start();
  REQUIRE(fixture.observer.streams.size() == 1);
  REQUIRE(fixture.tail->counters().known_files == 1);
}

TEST_CASE("fault 36: a symbolic link to a file is not followed") {
  TemporaryDirectory outside;
  append(outside / "secret.jsonl", prompt(1));
  Born session(prompt(0));
  fs::create_symlink(outside / "secret.jsonl", session.root / "projects/p/link.jsonl");
  fs::create_symlink(session.file, session.root / "projects/p/inside.jsonl");
  append(session.root / "projects/p/z.jsonl", prompt(2));
  session.fixture->same("r/p/z", session.root / "projects/p/z.jsonl");
  session.settled();
  REQUIRE(session.fixture->observer.streams.size() == 2);

  fs::remove(session.file);  // a link that replaces a transcript is not followed either
  fs::create_symlink(outside / "secret.jsonl", session.file);
  session.fixture->until([&] { return !session.fixture->observer.has(session.name); });
}

TEST_CASE("fault 39: a FIFO, a directory or a device in its place is reported and does not block") {
  Born session(prompt(0), every_mode());
  fs::remove(session.file);
  SECTION("a FIFO") { REQUIRE(::mkfifo(session.file.c_str(), 0600) == 0); }
  SECTION("a directory") { fs::create_directory(session.file); }
  session.fixture->until([&] { return !session.fixture->tail->problems().empty(); });
  REQUIRE(session.fixture->tail->problems().front().path == session.file);
  REQUIRE(session.fixture->tail->problems().front().reason == "not a regular file");
  REQUIRE_FALSE(session.fixture->observer.has(session.name));
  fs::remove(session.file);
  append(session.file, prompts(1, 3));
  session.same();
  REQUIRE(session.fixture->tail->problems().empty());
}

TEST_CASE("fault 39: a directory with the name of a transcript is reported at start too, and not entered") {
  TemporaryDirectory root;
  const std::string directory = root / "projects/p/s.jsonl";
  fs::create_directories(directory);
  append(directory + "/inside.jsonl", prompt(0));
  append(root / "projects/p/t.jsonl", prompt(1));
  TailFixture fixture(root.path());
  fixture.start();
  REQUIRE(fixture.observer.has("r/p/t"));
  REQUIRE(fixture.tail->counters().known_files == 1);
  REQUIRE(fixture.tail->problems().size() == 1);
  REQUIRE(fixture.tail->problems().front().path == directory);
  fs::remove_all(directory);
  append(directory, prompt(2));
  fixture.same("r/p/s", directory);
  REQUIRE(fixture.tail->problems().empty());
}

TEST_CASE("fault 39: replaced by a FIFO many times, in a race") {
  Born session(prompt(0));
  for (int round = 0; round < 200; ++round) {
    const std::string pipe = session.root / "pipe", plain = session.root / "plain";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    append(plain, prompts(0, 1 + round % 5));
    fs::rename(pipe, session.file);
    session.fixture->io.restart();
    session.fixture->io.poll();
    fs::rename(plain, session.file);
  }
  session.same();
}

TEST_CASE("fault 40: a file without permission is reported, tried again, and read when it is readable") {
  if (::geteuid() == 0) {
    WARN("skipped: root may read everything");
    return;
  }
  Born session(prompt(0));
  REQUIRE(::chmod(session.file.c_str(), 0) == 0);
  session.fixture->until([&] { return !session.fixture->tail->problems().empty(); });
  REQUIRE(session.fixture->tail->problems().front().path == session.file);
  REQUIRE(::chmod(session.file.c_str(), 0600) == 0);
  append(session.file, prompts(1, 3));
  session.same();
  session.fixture->until([&] { return session.fixture->tail->problems().empty(); });
  REQUIRE(session.received().resets.empty());
}

TEST_CASE(
    "fault 40: lines appended to a cold file while it is unreadable are delivered when it is readable") {
  TemporaryDirectory root;
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
  if (is_root) REQUIRE(::seteuid(nobody) == 0);  // root can read everything
  TailFixture fixture(root.path());
  fixture.start();
  for (const auto& more : {prompts(3, 5), prompts(5, 6)}) {
    REQUIRE(::write(writer, more.data(), more.size()) == static_cast<ssize_t>(more.size()));
    fixture.until([&] { return !fixture.tail->problems().empty(); });
    fixture.idle();
  }
  if (is_root) REQUIRE(::seteuid(0) == 0);
  ::close(writer);
  REQUIRE(fixture.observer.streams.empty());
  REQUIRE(::chmod(file.c_str(), 0600) == 0);
  const Lines all = fold_of(contents(file));
  const Lines news(all.begin() + static_cast<std::ptrdiff_t>(fold_of(prompts(0, 3)).size()), all.end());
  fixture.until([&] { return fixture.observer.streams[name].events == news; });
  REQUIRE(fixture.tail->problems().empty());
}

TEST_CASE("fault 43: chmod, touch and xattr cause no event") {
  Born session(prompts(0, 20), every_mode());
  const int events = session.fixture->observer.events;
  const auto verifications = [&] { return session.fixture->tail->counters().verifications; };
  const auto changed = [&](auto change) {
    const auto before = verifications();
    change();
    session.fixture->until([&] { return verifications() > before; });
    session.settled();
  };
  changed([&] { REQUIRE(::chmod(session.file.c_str(), 0640) == 0); });
  changed([&] { REQUIRE(::utimensat(AT_FDCWD, session.file.c_str(), nullptr, 0) == 0); });
  changed([&] {
    if (::setxattr(session.file.c_str(), "user.earshot", "x", 1, 0) != 0)  // not on every file system
      REQUIRE(::chmod(session.file.c_str(), 0600) == 0);
  });
  REQUIRE(session.fixture->observer.events == events);
  REQUIRE(session.received().resets.empty());
  append(session.file, prompts(20, 21));
  session.same();
}

TEST_CASE("a file that grew by many batches is read completely, in order") {
  Born session(prompt(0));
  std::string bulk;
  for (int n = 1; bulk.size() < (5u << 20); ++n) bulk += prompt(n);
  append(session.file, bulk);
  session.same();
  REQUIRE(session.fixture->tail->counters().bytes_read == contents(session.file).size());
}

TEST_CASE("fault 42: a file that cannot be read keeps its position and is read later") {
  // The descriptor limit stands for an I/O error, which needs root to simulate.
  Born session(prompts(0, 2));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  fs::create_directories(session.root / "projects/q");
  append(session.root / "projects/q/t.jsonl", prompt(9));
  session.fixture->same("r/q/t", session.root / "projects/q/t.jsonl");
  std::vector<int> taken;
  rlimit low = before;
  low.rlim_cur = 64;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
  for (int fd; (fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
  // All descriptors are taken: the daemon closes its own first, then reuses the remaining one.
  const int writer = taken.back();
  taken.pop_back();
  ::close(writer);
  append(session.root / "projects/q/t.jsonl", prompts(10, 12));
  session.fixture->until(
      [&] { return session.fixture->observer.streams["r/q/t"].events == fold_of(prompts(9, 12)); });
  for (const int fd : taken) ::close(fd);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  append(session.file, prompts(2, 4));
  session.same();
  REQUIRE(session.received().resets.empty());
}

TEST_CASE("fault 78: a large file that is only partly in the page cache is read without a problem") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  const std::string text = prompts(0, 20'000), outside = root / "s.jsonl", file = root / "projects/p/s.jsonl";
  append(outside, text);
  const int fd = ::open(outside.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::fsync(fd) == 0);
  REQUIRE(::posix_fadvise(fd, 1 << 20, 0, POSIX_FADV_DONTNEED) == 0);  // the first MiB stays in the cache
  ::close(fd);
  TailFixture fixture(root.path(), Mode::inotify);
  fixture.start();
  fs::rename(outside, file);
  fixture.until([&] {
    REQUIRE(fixture.tail->problems().empty());
    const auto* stream = fixture.tail->find("r/p/s");
    return stream && stream->transcript() && stream->transcript()->bytes_read() == text.size();
  });
  fixture.same("r/p/s", file);
}

}  // namespace follower_test
