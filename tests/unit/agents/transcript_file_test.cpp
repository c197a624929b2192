#include "agents/transcript_file.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <random>

#include "unit/support/compressed.hpp"
#include "unit/support/raw_files.hpp"
#include "unit/support/temporary_directory.hpp"

using namespace earshot;
using namespace earshot::test;

namespace {

/// Lines that compress well, longer than what a file keeps and than what is unpacked at a time.
std::string numbered_lines(std::size_t count) {
  std::string text;
  for (std::size_t n = 0; n < count; ++n) text += "{\"n\":" + std::to_string(n * 2654435761u) + "}\n";
  return text;
}

struct Compressed {
  explicit Compressed(std::string_view bytes) { rewrite(path + ".zst", bytes); }
  int error_at_end() {
    TranscriptFile file;
    if (const int error = file.open(path)) return error;
    std::string buffer(4096, '\0');
    for (std::uint64_t offset = 0;;) {
      const long got = file.read_fully(buffer.data(), buffer.size(), offset);
      if (got < 0) return static_cast<int>(-got);
      if (got < static_cast<long>(buffer.size())) return 0;
      offset += buffer.size();
    }
  }
  TemporaryDirectory directory;
  const std::string path = directory / "t.jsonl";
};

}  // namespace

TEST_CASE("fault 133: a compressed transcript reads as the transcript, at any place") {
  const std::string first = numbered_lines(30'000), second = numbered_lines(500), all = first + second;
  Compressed copy(compressed(first) + compressed(second));
  TranscriptFile file;
  REQUIRE(file.open(copy.path) == 0);
  CHECK(file.is_compressed());
  CHECK(file.stat().size == unknown_bytes);
  std::string buffer(all.size() + 1, '\0');
  REQUIRE(file.read_fully(buffer.data(), buffer.size(), 0) == static_cast<long>(all.size()));
  CHECK(std::string_view(buffer).substr(0, all.size()) == all);
  CHECK(file.stat().size == all.size());
  CHECK(file.read_at(buffer.data(), 1, all.size()) == 0);
  CHECK(file.read_at(buffer.data(), 1, all.size() + 100) == 0);

  std::minstd_rand random(3);
  for (int n = 0; n < 100; ++n) {
    const std::size_t offset = random() % all.size(), wanted = 1 + random() % 200'000;
    const long got = file.read_fully(buffer.data(), wanted, offset);
    REQUIRE(got == static_cast<long>(std::min(wanted, all.size() - offset)));
    REQUIRE(all.compare(offset, static_cast<std::size_t>(got), buffer, 0, static_cast<std::size_t>(got)) ==
            0);
  }
}

TEST_CASE("fault 133: a compressed file may end with a full buffer, but not go on without content") {
  for (const std::size_t bytes : {std::size_t{1} << 17, std::size_t{1} << 18})
    CHECK(Compressed(compressed(std::string(bytes, 'a'))).error_at_end() == 0);
  const std::string empty = compressed("");
  std::string many;
  while (many.size() < 4096) many += empty;
  CHECK(Compressed(many + compressed("a")).error_at_end() == 0);
  while (many.size() <= TranscriptFile::empty_bytes_max + (128 << 10)) many += many;
  CHECK(Compressed(many + compressed("a")).error_at_end() == EBADMSG);
}

TEST_CASE("fault 133: the transcript comes before its compressed copy") {
  Compressed copy(compressed("copy\n"));
  CHECK(stat_transcript(copy.path).size == unknown_bytes);
  rewrite(copy.path, "plain\n");
  TranscriptFile file;
  char buffer[16];
  REQUIRE(file.open(copy.path) == 0);
  CHECK_FALSE(file.is_compressed());
  CHECK(std::string(buffer, static_cast<std::size_t>(file.read_at(buffer, sizeof buffer, 0))) == "plain\n");
  CHECK(stat_transcript(copy.path).size == 6);
  REQUIRE(file.open(copy.path, 7) == 0);  // it is being unpacked
  CHECK(file.is_compressed());
  CHECK(stat_transcript(copy.path, 7).size == unknown_bytes);
  REQUIRE(file.open(copy.path + ".zst") == 0);
  CHECK(std::string(buffer, static_cast<std::size_t>(file.read_at(buffer, sizeof buffer, 0))) == "copy\n");
  std::filesystem::remove(copy.path + ".zst");
  std::filesystem::remove(copy.path);
  CHECK(file.open(copy.path) == ENOENT);
  CHECK(stat_transcript(copy.path).error == ENOENT);
  std::filesystem::create_directory(copy.path + ".zst");
  CHECK(file.open(copy.path) == EINVAL);
}

TEST_CASE("fault 133: a compressed transcript that is damaged, or needs too much memory, says so") {
  const std::string whole = compressed(numbered_lines(30'000));
  CHECK(Compressed(whole).error_at_end() == 0);
  CHECK(Compressed("").error_at_end() == EBADMSG);
  CHECK(Compressed("{\"type\":\"user\"}\n").error_at_end() == EBADMSG);
  for (const std::size_t bytes : {std::size_t{3}, std::size_t{20}, whole.size() / 2, whole.size() - 1})
    CHECK(Compressed(std::string_view(whole).substr(0, bytes)).error_at_end() == EBADMSG);
  CHECK(Compressed(compressed(numbered_lines(10), TranscriptFile::window_log_max)).error_at_end() == 0);
  CHECK(Compressed(compressed(numbered_lines(10), TranscriptFile::window_log_max + 1)).error_at_end() ==
        EFBIG);
}
