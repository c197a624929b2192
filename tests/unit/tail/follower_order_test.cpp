// Bytes are read before their file is examined, and small changes before the rest of large ones.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <functional>
#include <memory>

#include "base/system.hpp"
#include "tail/follower.hpp"
#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

/// True, with a message, on a file system whose bytes cannot be read without waiting, such as tmpfs: there
/// they are read on the disk thread, later.
bool reads_wait() {
  const TemporaryDirectory directory;
  append(directory / "file", "x");
  const Fd file = open_for_reading(directory / "file", Symlinks::follow);
  char byte = 0;
  if (read_at(file.get(), &byte, 1, 0, ReadMode::no_wait) != -EOPNOTSUPP) return false;
  WARN("skipped: the file system of " << directory.path() << " has no reads that do not wait");
  return true;
}

/// A followed file with much more than the overlap, all of whose events were delivered.
struct Followed {
  Followed() {
    fs::create_directories(root / "projects/p");
    fixture = std::make_unique<TailFixture>(TailFixture::options(root.path()), watch::Mode::inotify);
    fixture->start();
    append(file, prompts(0, 100));
    fixture->same(name, file);
    fixture->idle();
  }
  /// Appends a line; `change` happens when its events were delivered, before the file is examined.
  void append_and(const std::function<void()>& change) {
    bool is_changed = false;
    fixture->observer.when_flushed = [&] {
      is_changed = true;
      change();
    };
    append(file, prompt(100));
    fixture->until([&] { return is_changed; });
    REQUIRE(std::count(fixture->observer.order.begin(), fixture->observer.order.end(), name) ==
            static_cast<std::ptrdiff_t>(fold_of(prompts(0, 101)).size()));
  }
  const RecordingObserver::Received& received() { return fixture->observer.streams[name]; }

  TemporaryDirectory root;
  const std::string file = root / "projects/p/s.jsonl";
  const std::string name = "r/p/s";
  std::unique_ptr<TailFixture> fixture;
};

}  // namespace

TEST_CASE("an append is delivered before its file is examined") {
  if (reads_wait()) return;
  Followed followed;
  followed.append_and([] {});
  followed.fixture->same(followed.name, followed.file);
  REQUIRE(followed.received().resets.empty());
}

TEST_CASE("a change between the read of an append and the examination of its file is found") {
  if (reads_wait()) return;
  Followed followed;
  std::string reason;
  SECTION("an edit before the overlap that keeps the length") {
    const auto at = static_cast<off_t>(contents(followed.file).find("prompt 7\""));
    followed.append_and([&] {
      const int fd = ::open(followed.file.c_str(), O_WRONLY | O_CLOEXEC);
      REQUIRE(::pwrite(fd, "PROMPT", 6, at) == 6);
      ::close(fd);
    });
    reason = "rewritten";
  }
  SECTION("truncated") {
    followed.append_and([&] { fs::resize_file(followed.file, prompts(0, 50).size()); });
    reason = "truncated";
  }
  SECTION("replaced by a shorter file") {
    followed.append_and([&] {
      append(followed.file + ".new", prompts(200, 210));
      fs::rename(followed.file + ".new", followed.file);
    });
    reason = "replaced";
  }
  SECTION("replaced by a longer file") {
    followed.append_and([&] {
      append(followed.file + ".new", prompts(200, 400));
      fs::rename(followed.file + ".new", followed.file);
    });
    reason = "replaced";
  }
  followed.fixture->same(followed.name, followed.file);
  REQUIRE(followed.received().resets == Lines{reason});
}

TEST_CASE("a copy that replaces the file between the read and the examination continues it") {
  if (reads_wait()) return;
  Followed followed;
  followed.append_and([&] {
    append(followed.file + ".new", contents(followed.file) + prompts(101, 120));
    fs::rename(followed.file + ".new", followed.file);
  });
  followed.fixture->same(followed.name, followed.file);
  REQUIRE(followed.received().resets.empty());
}

TEST_CASE("a file that is removed between the read and the examination is removed") {
  if (reads_wait()) return;
  Followed followed;
  followed.append_and([&] { fs::remove(followed.file); });
  followed.fixture->until([&] { return !followed.fixture->observer.has(followed.name); });
}

TEST_CASE("an append is delivered before the rest of another file that grew by many batches") {
  if (reads_wait()) return;
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  const std::string large = root / "projects/p/large.jsonl", small = root / "projects/p/small.jsonl";
  append(large, "");
  append(small, "");
  watch::WatchMux mux;
  TailFixture fixture(TailFixture::options(root.path()), mux);
  fixture.start();
  fixture.idle();
  const auto notify = [&](const std::string& path) {
    mux.notify({watch::ChangeHint::Where::path, path, false, true});
  };
  std::string bulk;
  for (int n = 0; bulk.size() < 16 * tail::Follower::batch_bytes; ++n) bulk += prompt(n);
  append(large, bulk);
  append(small, prompt(0));
  auto& order = fixture.observer.order;

  notify(large);
  const std::size_t begun = order.size();
  REQUIRE(begun > 0);
  REQUIRE(begun < fold_of(bulk).size());
  notify(small);
  REQUIRE(order.size() > begun);
  REQUIRE(order[begun] == "r/p/small");
  REQUIRE(order.back() == "r/p/large");  // its next part was not left out
  fixture.same("r/p/large", large);
  fixture.same("r/p/small", small);
}
