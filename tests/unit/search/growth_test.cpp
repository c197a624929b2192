// What is read of transcripts that grow: their new bytes.
#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/search/index_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

constexpr std::size_t large_bytes = 512 << 10;  // several pieces of one read

std::string large() {
  std::string text;
  for (int n = 1; text.size() < large_bytes; ++n)
    text += prompt(n, "question " + std::to_string(n) + std::string(2000, ' '));
  return text;
}

std::uint64_t read_bytes(const IndexFixture& index) { return index.indexer->state().read_bytes; }

/// Appends a line and returns how many bytes were read for it beyond its own.
std::uint64_t extra_of_append(IndexFixture& index, const std::string& name, int number) {
  const std::string line = prompt(1'000'000 + number, "appended " + std::to_string(number));
  const std::uint64_t before = read_bytes(index);
  index.append(name, line);
  index.grow(name);
  const std::uint64_t read = read_bytes(index) - before;
  REQUIRE(read >= line.size());
  CHECK(index.find("\"appended " + std::to_string(number) + "\"").body.find("r/p/" + name) !=
        std::string::npos);
  return read - line.size();
}

void set_age(const IndexFixture& index, const std::string& name, std::chrono::hours age) {
  fs::last_write_time(index.path(name), fs::file_time_type::clock::now() - age);
}

}  // namespace

TEST_CASE("after an append only the new bytes are read, from the first append on") {
  IndexFixture index;
  index.kept_file_bytes_min = search::IndexerOptions{}.kept_file_bytes_min;
  const std::string text = large();
  index.write("s", text), index.write("t", text);
  index.index({"s", "t"});
  CHECK(read_bytes(index) == 2 * text.size());
  for (int n = 0; n < 10; ++n) CHECK(extra_of_append(index, n % 3 ? "s" : "t", n) == 0);
  index.index({"s", "t"});  // another pass over all streams
  CHECK(extra_of_append(index, "s", 10) == 0);
  index.check_words();
}

TEST_CASE("a line that is longer than the limit, with a hole of NULs, is read once") {
  IndexFixture index;
  index.kept_file_bytes_min = search::IndexerOptions{}.kept_file_bytes_min;
  index.write("s", prompt(1, "before"));
  constexpr std::uint64_t hole = 64 << 20;
  fs::resize_file(index.path("s"), hole);  // a sparse file
  index.index({"s"});
  CHECK(read_bytes(index) == hole);
  index.append("s", "\n");
  for (int n = 0; n < 5; ++n) CHECK(extra_of_append(index, "s", n) == (n == 0 ? 1 : 0));
  CHECK(read_bytes(index) < hole + 4096);
}

TEST_CASE("a transcript that did not change for long is read once more when it grows") {
  IndexFixture index;
  index.kept_file_bytes_min = search::IndexerOptions{}.kept_file_bytes_min;
  const std::string text = large();
  index.write("old", text);
  set_age(index, "old", std::chrono::hours(48));
  index.index({"old"});
  const std::uint64_t size = text.size();
  CHECK(extra_of_append(index, "old", 1) == size);
  for (int n = 2; n < 6; ++n) CHECK(extra_of_append(index, "old", n) == 0);
}

TEST_CASE("of more transcripts than are kept those that grew last are") {
  IndexFixture index;  // keeps small ones too
  std::vector<std::string> names;
  for (std::size_t n = 0; n < search::Indexer::folds_max + 8; ++n) {
    names.push_back("s" + std::to_string(n));
    index.write(names.back(), prompt(1, "short"));
  }
  const std::uint64_t size = fs::file_size(index.path("s0"));
  index.index(names);
  std::uint64_t again = 0;
  for (int n = 0; n < 4; ++n) again += extra_of_append(index, names[static_cast<std::size_t>(n)], n);
  CHECK(again <= 4 * size);
  for (int n = 0; n < 4; ++n) CHECK(extra_of_append(index, names[static_cast<std::size_t>(n)], 10 + n) == 0);
}
