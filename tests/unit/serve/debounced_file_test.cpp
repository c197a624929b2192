#include "serve/debounced_file.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/serve/support.hpp"
#include "unit/support/temporary_directory.hpp"

using namespace earshot;
using serve::DebouncedFile;
using std::chrono::milliseconds;

namespace {

/// A file in a directory that a test creates: before, writing fails.
struct Fixture {
  explicit Fixture(milliseconds delay = milliseconds(1), bool is_private = false)
      : file(io, disk.get_executor(), {path, "the number", "it is 0", is_private, delay, milliseconds(1)},
             [this] { return [text = content] { return text; }; }) {}
  ~Fixture() { disk.join(); }
  void create_directory() const { std::filesystem::create_directory(home / "state"); }
  void write(const std::string& text) const {
    create_directory();
    home.write("state/file", text);
    std::filesystem::permissions(path, std::filesystem::perms(0600));
  }
  std::string stored() const { return std::filesystem::exists(path) ? home.read("state/file") : ""; }
  bool until(const std::function<bool()>& condition) { return test::run_until(io, condition); }
  std::optional<int> read() const {
    constexpr std::size_t bytes_max = 8;
    return file.read<int>(
        bytes_max, [](std::string_view text) { return text == "7" ? std::optional<int>(7) : std::nullopt; });
  }

  test::TemporaryDirectory home;
  const std::string path = home / "state/file";
  boost::asio::io_context io;
  boost::asio::thread_pool disk{1};
  std::string content = "1";
  DebouncedFile file;
};

}  // namespace

TEST_CASE("changes of a file are written after its delay") {
  Fixture fixture;
  fixture.create_directory();
  fixture.file.changed();
  fixture.content = "2";
  fixture.file.changed();
  REQUIRE(fixture.until([&] { return fixture.stored() == "2"; }));
  CHECK(fixture.file.problem().empty());
}

TEST_CASE(
    "fault 150: what could not be written is written when that is possible, and until then it is a problem") {
  Fixture fixture;
  fixture.file.changed();
  REQUIRE(fixture.until([&] { return !fixture.file.problem().empty(); }));
  CHECK(fixture.file.problem().starts_with("the number is not remembered: "));
  fixture.content = "2";
  fixture.file.changed();
  fixture.create_directory();
  REQUIRE(fixture.until([&] { return fixture.file.problem().empty(); }));
  REQUIRE(fixture.until([&] { return fixture.stored() == "2"; }));
}

TEST_CASE("fault 150: store() answers with the result of the write, and an error is repaired later") {
  Fixture fixture;
  std::optional<std::string> result;
  const auto store = [&] {
    result.reset();
    fixture.file.store([&](const std::string& error) { result = error; });
    REQUIRE(fixture.until([&] { return result.has_value(); }));
  };
  store();
  CHECK_FALSE(result->empty());
  fixture.create_directory();
  REQUIRE(fixture.until([&] { return fixture.stored() == "1"; }));
  fixture.content = "2";
  store();
  CHECK(result->empty());
  CHECK(fixture.stored() == "2");
}

TEST_CASE("fault 150: flush() writes what is not stored, also after an error") {
  Fixture fixture(std::chrono::hours(1));
  fixture.file.changed();
  fixture.file.flush();
  CHECK_FALSE(fixture.file.problem().empty());
  fixture.create_directory();
  fixture.file.flush();
  CHECK(fixture.stored() == "1");
  fixture.content = "2";
  fixture.file.flush();  // nothing has changed
  CHECK(fixture.stored() == "1");
}

TEST_CASE("a damaged file is set aside") {
  const bool is_private = GENERATE(true, false);
  Fixture fixture(milliseconds(1), is_private);
  CHECK(fixture.read() == std::nullopt);
  CHECK_FALSE(std::filesystem::exists(fixture.path + ".torn"));
  fixture.write("7");
  CHECK(fixture.read() == 7);
  for (const std::string damaged : {"", "6", "7777777777"}) {
    fixture.write(damaged);
    CHECK(fixture.read() == std::nullopt);
    CHECK_FALSE(std::filesystem::exists(fixture.path));
    CHECK(fixture.home.read("state/file.torn") == damaged);
  }
}

TEST_CASE("only a private file must not be readable by others") {
  const bool is_private = GENERATE(true, false);
  Fixture fixture(milliseconds(1), is_private);
  fixture.write("7");
  std::filesystem::permissions(fixture.path, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  CHECK(fixture.read().has_value() == !is_private);
}
