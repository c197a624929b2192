#include "base/bounded_calls.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/system.hpp"
#include "unit/support/temporary_directory.hpp"

using namespace earshot;
using namespace std::chrono_literals;

namespace {

/// The event loop's calls are those with less patience than others. A busy machine may take long to run a
/// call that returns.
constexpr auto patient = call_patience - 1ms, impatient = 20ms;

/// Bounds the calls below a directory and waits for its answers.
struct Bounded {
  explicit Bounded(const std::string& directory) {
    bound_calls_below({directory}, [to = answered](const std::string& path) { to->set_value(path); });
    set_call_patience(patient);
  }
  ~Bounded() {
    set_call_patience(call_patience);
    bound_calls_below({}, {});
  }
  /// An abandoned call may return later.
  const std::shared_ptr<std::promise<std::string>> answered = std::make_shared<std::promise<std::string>>();
};

}  // namespace

TEST_CASE("fault 80: a call that does not return is abandoned, further calls fail at once until it returns") {
  Bounded bounds("/slow");
  std::promise<void> release;
  const auto directory = bounded_directory_of("/slow/a");
  REQUIRE(directory);
  REQUIRE(bounded(
              directory, [] { return 1; }, -1) == 1);
  auto hangs = [released = release.get_future().share()] {
    released.wait();
    return 2;
  };
  set_call_patience(impatient);
  REQUIRE(bounded(directory, hangs, -1) == -1);
  REQUIRE(errno == ETIMEDOUT);
  std::atomic<bool> began = false;
  const auto begins = [&began] { return began = true, 3; };
  REQUIRE(bounded(directory, begins, -1) == -1);
  REQUIRE_FALSE(began);

  // Another thread's calls do not wait behind the abandoned one of this thread.
  REQUIRE(std::async(std::launch::async, [&] {
            return bounded(
                directory, [] { return 4; }, -1);
          }).get() == 4);

  set_call_patience(patient);
  release.set_value();
  REQUIRE(bounds.answered->get_future().get() == "/slow");
  REQUIRE(bounded(
              directory, [] { return 5; }, -1) == 5);
}

TEST_CASE("calls elsewhere are not bounded") {
  Bounded bounds("/slow");
  REQUIRE(bounded_directory_of("/slow"));
  REQUIRE(bounded_directory_of("/slow/a"));
  REQUIRE_FALSE(bounded_directory_of("/slower/a"));
  REQUIRE_FALSE(bounded_directory_of("/"));
  REQUIRE_FALSE(bounded_directory_of(0));
}

TEST_CASE("bounded calls have the results of the calls") {
  const test::TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/file";
  std::ofstream(path) << "content";
  Bounded bounds(temporary.path());
  REQUIRE(stat_file(path).size == 7);
  REQUIRE(stat_file(path + "x").is_missing());
  REQUIRE(real_path(temporary.path() + "/./file") == std::filesystem::canonical(path).string());
  std::string text(16, '\0');
  {
    const Fd fd = open_for_reading(path);
    REQUIRE(fd);
    REQUIRE(bounded_directory_of(fd.get()));
    REQUIRE(stat_file(fd.get()).size == 7);
    REQUIRE(read_at(fd.get(), text.data(), text.size(), 3) == 4);
    REQUIRE(text.starts_with("tent"));
  }
  REQUIRE_FALSE(open_for_reading(path + "x"));
  REQUIRE(errno == ENOENT);
  const Directory directory(temporary.path());
  std::string names;
  REQUIRE(directory.for_each([&](std::string_view name, FileType) { names += name; }) == 0);
  REQUIRE(names == "file");
  REQUIRE(directory.stat_entry("file").size == 7);
}

TEST_CASE("a descriptor that arrives after its call was abandoned is closed") {
  Bounded bounds("/slow");
  std::promise<void> release;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reading(ends[0]);
  auto opens = [released = release.get_future().share(), end = ends[1]] {
    released.wait();
    return Fd(end);
  };
  set_call_patience(impatient);
  REQUIRE_FALSE(bounded(bounded_directory_of("/slow"), opens, Fd()));
  release.set_value();
  char byte;
  REQUIRE(::read(reading.get(), &byte, 1) == 0);  // ends when the other end is closed
}
