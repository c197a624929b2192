// What is read of transcripts that grow: nothing that the event loop has.
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

bool is_found(const IndexFixture& index, const std::string& name, const std::string& text) {
  return index.find('"' + text + '"').body.find("r/p/" + name) != std::string::npos;
}

/// Appends a line to a live stream and returns how many bytes are read for it; `forgets`: the loop has its
/// events no more.
std::uint64_t read_for_append(IndexFixture& index, const std::string& name, int number,
                              bool forgets = false) {
  const std::uint64_t before = read_bytes(index);
  index.append(name, prompt(1'000'000 + number, "appended " + std::to_string(number)));
  index.read(name);
  if (forgets) index.forget_growth(name);
  index.grow(name);
  CHECK(is_found(index, name, "appended " + std::to_string(number)));
  return read_bytes(index) - before;
}

}  // namespace

TEST_CASE("after an append nothing is read again, from the first append on") {
  IndexFixture index;
  const std::string text = large();
  index.write("s", text), index.write("t", text);
  index.follow("s"), index.follow("t");
  index.index({"s", "t"});
  CHECK(read_bytes(index) == 2 * text.size());
  for (int n = 0; n < 10; ++n) CHECK(read_for_append(index, n % 3 ? "s" : "t", n) == 0);
  index.index({"s", "t"});  // another pass over all streams
  CHECK(read_for_append(index, "s", 10) == 0);
  CHECK(read_bytes(index) == 2 * text.size());
  index.check_words();
}

TEST_CASE("a new stream is not read, nor is one that was cold and is folded before it grows") {
  IndexFixture index;
  index.write("old", large());
  index.index({"old"});
  const std::uint64_t before = read_bytes(index);
  index.follow("old");
  CHECK(read_for_append(index, "old", 1) == 0);
  index.write("new", prompt(1, "first"));
  index.follow("new", true);
  index.grow("new");
  CHECK(is_found(index, "new", "first"));
  CHECK(read_for_append(index, "new", 2) == 0);
  CHECK(read_bytes(index) == before);
}

TEST_CASE("lines without events, and jobs that wait for each other, leave no gap") {
  IndexFixture index;
  index.write("s", large());
  index.follow("s");
  index.index({"s"});
  const std::uint64_t before = read_bytes(index);
  const std::string silent = R"({"type":"unheard-of","sessionId":"s"})"
                             "\n";
  index.append("s", silent);
  index.read("s");
  index.grow("s");
  index.append("s", silent + prompt(1'000'001, "after silence") + silent);
  index.read("s", 50);  // not all of the first line, then the rest
  index.read("s");
  index.indexer->changed(index.job("s"));
  index.append("s", prompt(1'000'002, "later on"));
  index.read("s");
  index.grow("s");
  CHECK(is_found(index, "s", "after silence"));
  CHECK(is_found(index, "s", "later on"));
  CHECK(read_bytes(index) == before);
}

TEST_CASE("of growth that is not kept, the file is read once from its beginning, then where it grew") {
  IndexFixture index;
  const std::string text = large();
  index.write("s", text);
  index.follow("s");
  index.index({"s"});
  const auto size = [&] { return fs::file_size(index.path("s")); };
  std::uint64_t read = read_for_append(index, "s", 1, true);
  CHECK(read == size());
  std::uint64_t folded = size();
  for (int n = 2; n < 6; ++n) {
    read = read_for_append(index, "s", n, true);
    CHECK(read == size() - folded);
    folded = size();
  }
  CHECK(read_for_append(index, "s", 6) == 0);
  read = read_for_append(index, "s", 7, true);
  CHECK(read == size() - folded);  // again over what it did not read before
  index.check_words();
}

TEST_CASE("the growth that is kept is limited, for one stream and for all") {
  using search::GrowthLog, search::Indexer;
  IndexFixture index;
  int number = 0;
  const auto grow_by = [&](const std::string& name, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += prompt(++number, std::string(8000, 'w'));
    index.append(name, text);
    index.read(name);
  };
  std::size_t kept = 0, incomplete = 0;
  constexpr std::size_t large_part = GrowthLog::stream_bytes_max / 2;
  constexpr std::size_t streams = 2 * GrowthLog::bytes_max / large_part;
  std::vector<std::string> names;
  for (std::size_t n = 0; n < streams; ++n) {
    const std::string name = names.emplace_back("s" + std::to_string(n));
    index.write(name, "");
    index.follow(name, true);
    grow_by(name, large_part);
  }
  std::vector<search::IndexJob> jobs;
  for (const std::string& name : names) {
    jobs.push_back(index.job(name));
    kept += jobs.back().growth->bytes;
    incomplete += !jobs.back().growth->is_complete;
  }
  CHECK(kept > GrowthLog::bytes_max / 2);
  CHECK(kept <= GrowthLog::bytes_max);
  CHECK(incomplete > 0);
  CHECK(incomplete < streams);
  index.index({});
  for (search::IndexJob& job : jobs) index.indexer->changed(std::move(job));
  index.settle();
  grow_by("s0", GrowthLog::stream_bytes_max + large_part);
  auto beyond = index.job("s0");
  CHECK_FALSE(beyond.growth->is_complete);
  CHECK(beyond.growth->bytes == 0);
  index.indexer->changed(std::move(beyond));
  index.settle();
  IndexFixture whole;
  for (const std::string& name : names) whole.write(name, read_text(index.path(name)));
  whole.index(names);
  CHECK(index.documents() == whole.documents());
  CHECK(index.rows() == whole.rows());
}

TEST_CASE("a live stream with another history is indexed anew from the loop's events") {
  IndexFixture index;
  index.write("s", prompt(1, "the former text"));
  index.follow("s");
  index.index({"s"});
  index.append("s", prompt(2, "not indexed yet"));
  index.read("s");
  index.write("s", prompt(3, "another beginning"));
  index.indexer->dropped("r/p/s");
  index.follow("s", true);
  const std::uint64_t before = read_bytes(index);
  index.grow("s");
  CHECK(is_found(index, "s", "another beginning"));
  CHECK_FALSE(is_found(index, "s", "former"));
  CHECK_FALSE(is_found(index, "s", "not indexed yet"));
  CHECK(read_bytes(index) == before);
}

TEST_CASE("a row that is not of the loop's history is not continued") {
  IndexFixture index;
  index.write("s", prompt(1, "the former text") + prompt(2, "and more"));
  index.index({"s"});
  index.stop();
  index.write("s", prompt(3, "another beginning"));  // while no process ran
  index.follow("s");
  index.append("s", prompt(4, "appended to it"));
  index.read("s");
  index.index({"s"});
  CHECK(is_found(index, "s", "another beginning"));
  CHECK(is_found(index, "s", "appended to it"));
  CHECK_FALSE(is_found(index, "s", "former"));
}

TEST_CASE("a line that is longer than the limit, with a hole of NULs, is read once") {
  IndexFixture index;
  index.write("s", prompt(1, "before"));
  constexpr std::uint64_t hole = 64 << 20;
  fs::resize_file(index.path("s"), hole);  // a sparse file
  index.index({"s"});
  CHECK(read_bytes(index) == hole);
  index.append("s", "\n");
  index.follow("s");
  index.grow("s");
  const std::uint64_t after = read_bytes(index);
  CHECK(after == 2 * hole + 1);  // the loop is behind the line, the index before it
  for (int n = 0; n < 5; ++n) CHECK(read_for_append(index, "s", n) == 0);
}
