#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/support/temporary_directory.hpp"

using namespace earshot;
using earshot::test::TemporaryDirectory;

namespace {

namespace fs = std::filesystem;

unsigned mode_of(const std::string& path) {
  const FileStat stat = stat_file(path);
  REQUIRE(stat.ok());
  return stat.mode;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

std::vector<std::string> names(const DirectoryListing& listing) {
  std::vector<std::string> all;
  for (const DirectoryEntry& entry : listing.entries) all.push_back(entry.name);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("a descriptor has one owner, which closes it") {
  const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
  Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(first);
  const int number = first.get();
  Fd second = std::move(first);
  CHECK_FALSE(first);
  CHECK(second.get() == number);
  second = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(is_open(number));
  const Fd released(second.release());
  CHECK_FALSE(second);
  CHECK(is_open(released.get()));
  Fd third(::dup(released.get()));
  const int duplicate = third.get();
  third.reset();
  CHECK_FALSE(third);
  CHECK_FALSE(is_open(duplicate));
}

TEST_CASE("file attributes are values, and so are errors") {
  const TemporaryDirectory home;
  home.write("a", "12345");
  fs::create_symlink(home / "a", home / "link");
  const FileStat file = stat_file(home / "a");
  CHECK(file.ok());
  CHECK(file.is_regular());
  CHECK(file.size == 5);
  CHECK(file.links == 1);
  CHECK(file.owner == ::geteuid());
  CHECK(file.modified_ns > 0);
  CHECK(stat_file(home / "link").type == FileType::symlink);
  CHECK(stat_file(home / "link", Symlinks::follow).is_same_file(file));
  CHECK(stat_file(home.path()).is_directory());
  CHECK(stat_file(home / "none").is_missing());
  CHECK(stat_file(home / "a/none").is_missing());
  CHECK(stat_file(-1).error == EBADF);
  const Fd fd = open_for_reading(home / "a");
  CHECK(stat_file(fd.get()).is_same_file(file));
  CHECK_FALSE(open_for_reading(home / "link"));
  CHECK(open_for_reading(home / "link", Symlinks::follow));
}

TEST_CASE("reading at an offset may be short and ends with 0") {
  const TemporaryDirectory home;
  home.write("a", "12345");
  const Fd fd = open_for_reading(home / "a");
  char buffer[8] = {};
  CHECK(read_at(fd.get(), buffer, 3, 1) == 3);
  CHECK(std::string(buffer, 3) == "234");
  CHECK(read_at(fd.get(), buffer, sizeof buffer, 4) == 1);
  CHECK(read_at(fd.get(), buffer, sizeof buffer, 5) == 0);
  CHECK(read_at(-1, buffer, 1, 0) == -EBADF);
  const long at_once = read_at(fd.get(), buffer, 3, 0, ReadMode::no_wait);
  CHECK((at_once == 3 || at_once == -EAGAIN || at_once == -EOPNOTSUPP));
}

TEST_CASE("the links that a path leads through, and what is missing, decide where it leads") {
  const TemporaryDirectory home;
  fs::create_directories(home / "real/below");
  home.write("real/file", "x");
  fs::create_symlink("real", home / "relative");
  fs::create_symlink(home / "relative", home / "second");
  fs::create_symlink("../second/below", home / "real/up");
  fs::create_symlink("loop", home / "loop");
  fs::create_symlink(home / "gone", home / "dangling");
  using Links = std::vector<std::string>;
  CHECK(links_of(home / "real/below").empty());
  CHECK(links_of("/").empty());
  CHECK(links_of(home / "second/below/") == Links{home / "second", home / "relative"});
  CHECK(links_of(home / "real/up") == Links{home / "real/up", home / "second", home / "relative"});
  CHECK(links_of(home / "relative/none/below") == Links{home / "relative", home / "real/none"});
  CHECK(links_of(home / "dangling") == Links{home / "dangling", home / "gone"});
  CHECK(links_of(home / "real/file/below") == Links{home / "real/file"});
  CHECK(links_of(home / "loop").size() == links_max);
}

TEST_CASE("small files are read whole or not at all") {
  const TemporaryDirectory home;
  home.write("a", "hello");
  home.write("empty", "");
  home.write("large", std::string(100'000, 'x'));
  fs::create_symlink(home / "a", home / "link");
  REQUIRE(::mkfifo((home / "fifo").c_str(), 0600) == 0);
  const SmallFile file = read_small_file(home / "a", 5);
  CHECK(file.ok());
  CHECK(file.text == "hello");
  CHECK(file.stat.size == 5);
  CHECK(read_small_file(home / "empty", 5).ok());
  CHECK(read_small_file(home / "large", 100'000).text == std::string(100'000, 'x'));
  CHECK(read_small_file(home / "a", 4).error == EFBIG);
  CHECK(read_small_file(home / "a", 4).text.empty());
  CHECK(read_small_file(home / "large", 99'999).error_text() == "too long");
  CHECK(read_small_file(home / "none", 5).is_missing());
  CHECK(read_small_file(home / "link", 5).error == ELOOP);
  CHECK(read_small_file(home / "link", 5, Symlinks::follow).text == "hello");
  CHECK(read_small_file(home / "fifo", 5).error_text() == "not a regular file");
  CHECK(read_small_file(home.path(), 5).error == EINVAL);
  CHECK(read_small_file("/proc/self/status", 1 << 20).text.find("Name:") == 0);  // its size is 0
  CHECK(read_small_file("/proc/self/status", 10).error == EFBIG);
}

TEST_CASE("everything is written, and a failure is reported") {
  const TemporaryDirectory home;
  {
    const Fd fd(::open((home / "a").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CHECK(write_all(fd.get(), "one"));
    CHECK(write_all(fd.get(), ""));
    CHECK(write_all(fd.get(), "two"));
  }
  CHECK(read_small_file(home / "a", 10).text == "onetwo");
  CHECK_FALSE(write_all(-1, "x"));
}

TEST_CASE("a listing has the directories and the wanted names") {
  const TemporaryDirectory home;
  fs::create_directories(home / "top/directory");
  home.write("top/a.jsonl", "1");
  home.write("top/other", "1");
  fs::create_symlink(home / "top/directory", home / "top/to_directory");
  fs::create_symlink(home / "top/a.jsonl", home / "top/to_file.jsonl");
  fs::create_symlink(home / "top", home / "to_top");
  const auto is_wanted = [](const std::string& name) { return name.ends_with(".jsonl"); };
  const DirectoryListing plain = list_directory(home / "top", {}, is_wanted);
  CHECK(plain.stat.is_directory());
  CHECK(names(plain) == std::vector<std::string>{"a.jsonl", "directory", "to_file.jsonl"});
  const DirectoryListing followed =
      list_directory(home / "to_top", {.self = true, .entries = true}, is_wanted);
  CHECK(names(followed) == std::vector<std::string>{"a.jsonl", "directory", "to_directory", "to_file.jsonl"});
  for (const DirectoryEntry& entry : followed.entries) {
    CAPTURE(entry.name);
    CHECK(entry.stat.is_directory() == contains(entry.name, "directory"));
    CHECK((entry.stat.type == FileType::symlink) == (entry.name == "to_file.jsonl"));
  }
  CHECK(list_directory(home / "to_top", {}, is_wanted).stat.error == ENOTDIR);
  CHECK(list_directory(home / "none", {}, is_wanted).stat.is_missing());
}

TEST_CASE("a listing can visit every entry, with the attributes of links themselves") {
  const TemporaryDirectory home;
  fs::create_directory(home / "directory");
  home.write("a.jsonl", "1");
  home.write("other", "12");
  fs::create_symlink(home / "directory", home / "link");
  std::map<std::string, FileStat> visited;
  const DirectoryListing listing = list_directory(
      home.path(), {.self = false, .entries = true},
      [](const std::string& name) { return name == "a.jsonl"; },
      [&](std::string_view name, const FileStat& stat) {
        CHECK(name.data()[name.size()] == '\0');
        CHECK(visited.emplace(name, stat).second);
      });
  CHECK(names(listing) == std::vector<std::string>{"a.jsonl", "directory", "link"});
  REQUIRE(visited.size() == 4);
  CHECK(visited["a.jsonl"].size == 1);
  CHECK(visited["directory"].is_directory());
  CHECK(visited["link"].type == FileType::symlink);
  CHECK(visited["other"].size == 2);
}

TEST_CASE("a long directory is listed completely, each time") {
  const TemporaryDirectory home;
  const std::size_t count = 400;
  const std::string padding(200, 'x');
  for (std::size_t n = 0; n < count; ++n) home.write(std::to_string(n) + padding, "");
  const Directory directory(home.path());
  for (int round = 0; round < 2; ++round) {
    std::set<std::string, std::less<>> seen;
    CHECK(directory.for_each([&](std::string_view name, FileType) { CHECK(seen.emplace(name).second); }) ==
          0);
    CHECK(seen.size() == count);
  }
}

TEST_CASE("an open directory is listed again, also after it was renamed") {
  const TemporaryDirectory home;
  fs::create_directory(home / "a");
  home.write("a/file", "123");
  const Directory directory(home / "a");
  REQUIRE(directory.error() == 0);
  fs::rename(home / "a", home / "b");
  for (int round = 0; round < 2; ++round) {
    std::vector<std::string> seen;
    CHECK(directory.for_each([&](std::string_view name, FileType) { seen.emplace_back(name); }) == 0);
    CHECK(seen == std::vector<std::string>{"file"});
  }
  CHECK(directory.stat().is_directory());
  CHECK(directory.stat_entry("file").size == 3);
  CHECK(directory.stat_entry("none").is_missing());
  const Directory none(home / "none");
  CHECK(none.error() == ENOENT);
  CHECK(none.stat().error == EBADF);
  CHECK(none.for_each([](std::string_view, FileType) {}) == EBADF);
}

TEST_CASE("a private directory is created with its parents, and one that others can write to is refused") {
  const TemporaryDirectory home;
  CHECK(make_private_directory(home / "deep/down/state") == "");
  CHECK(mode_of(home / "deep/down/state") == 0700);
  CHECK(make_private_directory(home / "deep/down/state") == "");
  REQUIRE(::chmod((home / "deep/down/state").c_str(), 0777) == 0);
  CHECK(contains(make_private_directory(home / "deep/down/state"), "chmod 700 " + home.path()));
  home.write("file", "");
  CHECK(contains(make_private_directory(home / "file"), "not a directory"));
  CHECK(make_private_directory(home / "file/below") != "");
}

TEST_CASE("a private file is replaced or kept, and nothing temporary is left") {
  const TemporaryDirectory home;
  CHECK(write_private_file(home / "a", "one") == "");
  CHECK(mode_of(home / "a") == 0600);
  CHECK(write_private_file(home / "a", "two") == "");
  CHECK(read_small_file(home / "a", 10).text == "two");
  CHECK(write_private_file(home / "a", "three", IfExists::keep) == "");
  CHECK(read_small_file(home / "a", 10).text == "two");
  CHECK(write_private_file(home / "b", "new", IfExists::keep) == "");
  CHECK(read_small_file(home / "b", 10).text == "new");
  CHECK(contains(write_private_file(home / "none/a", "x"), home / "none/a"));
  CHECK(names(list_directory(home.path(), {}, [](const std::string&) { return true; })) ==
        std::vector<std::string>{"a", "b"});
}

TEST_CASE("what a killed process left unfinished is deleted, and nothing else") {
  const TemporaryDirectory home;
  REQUIRE(write_private_file(home / "token", "secret") == "");
  for (const char* name : {"token.0a1b2c3d.tmp", "key.ffffffff.tmp"}) home.write(name, "half");
  for (const char* name :
       {"a.tmp", "token.0a1b2c3.tmp", "token.0a1b2c3g.tmp", "token.0a1b2c3d", "0a1b2c3d.tmp"})
    home.write(name, "kept");
  fs::create_directories(home / "hub.0a1b2c3d.tmp");
  remove_unfinished_files(home.path());
  remove_unfinished_files(home / "none");
  CHECK(names(list_directory(home.path(), {}, [](const std::string&) { return true; })) ==
        std::vector<std::string>{"0a1b2c3d.tmp", "a.tmp", "hub.0a1b2c3d.tmp", "token", "token.0a1b2c3.tmp",
                                 "token.0a1b2c3d", "token.0a1b2c3g.tmp"});
}

TEST_CASE("a private file that others may have read is refused") {
  const TemporaryDirectory home;
  REQUIRE(write_private_file(home / "a", "secret\n") == "");
  CHECK(read_private_file(home / "a", 100).text == "secret\n");
  CHECK(read_private_file(home / "a", 3).text == "sec");
  const PrivateFile missing = read_private_file(home / "none", 100);
  CHECK_FALSE(missing.text);
  CHECK(missing.error.empty());
  for (const unsigned mode : {0640u, 0604u, 0660u}) {
    CAPTURE(mode);
    REQUIRE(::chmod((home / "a").c_str(), mode) == 0);
    const PrivateFile refused = read_private_file(home / "a", 100);
    CHECK_FALSE(refused.text);
    CHECK(contains(refused.error, "chmod 600 " + (home / "a")));
  }
  fs::create_symlink(home / "a", home / "link");
  CHECK(contains(read_private_file(home / "link", 100).error, "link: "));
  CHECK(contains(read_private_file(home.path(), 100).error, "not a regular file"));
}

TEST_CASE("a lock has one holder, whose process is known to others") {
  const TemporaryDirectory home;
  FileLock first = lock_file(home / "lock");
  REQUIRE(first.fd);
  CHECK(mode_of(home / "lock") == 0600);
  const FileLock second = lock_file(home / "lock");
  CHECK_FALSE(second.fd);
  CHECK(second.error == EWOULDBLOCK);
  CHECK(second.holder == std::to_string(::getpid()));
  first.fd.reset();
  CHECK(lock_file(home / "lock").fd);
  CHECK(lock_file(home / "none/lock").error == ENOENT);
}
