// What is left in the file of the index of a transcript that was removed: nothing.
#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/search/index_fixture.hpp"

using namespace earshot;
using namespace earshot::test;

namespace {

constexpr std::string_view secret_end =
    "yzzyva";  // the index may keep the beginning of a word with another one

std::string texts_of(const std::string& word, int first, int count) {
  std::string text;
  for (int n = first; n < first + count; ++n) text += prompt(n, word + " number" + std::to_string(n));
  return text;
}

bool is_in_file(const std::string& path) {
  for (const char* suffix : {"", "-wal"})
    if (std::filesystem::exists(path + suffix) &&
        read_text(path + suffix).find(secret_end) != std::string::npos)
      return true;
  return false;
}

search::Store::Change change(const std::string& name, const std::string& text, int documents) {
  search::Store::Change change;
  change.row.name = name;
  for (int n = 0; n < documents; ++n)
    change.documents.push_back({{static_cast<std::uint64_t>(n), 1, 0},
                                1000 + n,
                                search::Kind::prompt,
                                text + " number" + std::to_string(n)});
  return change;
}

void apply(search::Store& store, search::Store::Change change) { store.apply(std::span(&change, 1)); }

}  // namespace

TEST_CASE("words of a removed stream are in the file until they are merged, also after a restart") {
  const TemporaryDirectory directory;
  const std::string path = directory / "search.sqlite";
  {
    search::Store store(path, "one");
    apply(store, change("kept", "shared", 300));
    apply(store, change("gone", "zyzzyva", 300));
    apply(store, change("later", "shared", 300));
    CHECK_FALSE(store.has_stale_words());
    CHECK_FALSE(store.merge_words());
    store.remove("gone");
    CHECK(store.has_stale_words());
    store.checkpoint();
    CHECK(is_in_file(path));
  }
  search::Store store(path, "one");
  CHECK(store.has_stale_words());
  std::size_t slices = 1;
  while (store.merge_words()) {
    REQUIRE(++slices < 10'000);
    if (slices == 2) {  // parts that come meanwhile, and another removal
      apply(store, change("gone too", "zyzzyva", 10));
      store.remove("gone too");
    }
  }
  CHECK(slices > 2);
  CHECK_FALSE(store.has_stale_words());
  store.checkpoint();
  CHECK_FALSE(is_in_file(path));
  search::Database db(path, search::Database::Mode::write);
  db.run("INSERT INTO words(words, rank) VALUES('integrity-check', 1)");
  CHECK(db.number("SELECT count(*) FROM words WHERE words MATCH 'shared'") == 600);
}

TEST_CASE("a removed transcript leaves no words in the file, and the index goes on meanwhile") {
  IndexFixture index;
  index.write("kept", texts_of("shared", 1, 200));
  index.write("gone", texts_of("zyzzyva", 1000, 200));
  index.index({"kept", "gone"});
  CHECK(is_in_file(index.file()));
  index.indexer->dropped("r/p/gone");
  index.append("kept", texts_of("appended", 2000, 20));
  index.grow("kept");
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (is_in_file(index.file()) && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK_FALSE(is_in_file(index.file()));
  index.check_words();
  CHECK(index.find("appended").body.find("r/p/kept") != std::string::npos);
  CHECK(index.find("zyzzyva").body.find("\"results\":[]") != std::string::npos);
}
