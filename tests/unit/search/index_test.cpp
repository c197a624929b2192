// The index is a function of the transcripts' bytes, however they grew and whenever the process ended.
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

#include "base/json_writer.hpp"
#include "unit/redact/canaries.hpp"
#include "unit/search/index_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

/// `turns` turns of a session.
std::string turns(int first, int count) {
  std::string text;
  for (int n = first; n < first + count; ++n) {
    const std::string number = std::to_string(n);
    text += prompt(n * 10, "question " + number) +
            call(n * 10 + 1, "Bash", R"({"command":"make target)" + number + R"("})", "c" + number) +
            result(n * 10 + 2, "c" + number, "output " + number) + answer(n * 10 + 3, "reply " + number);
  }
  return text;
}

std::string title_line(std::string_view title) {
  return R"({"type":"custom-title","customTitle":")" + std::string(title) +
         R"(","sessionId":"s"})"
         "\n";
}

std::string as_json_string(std::string_view text) {
  std::string json;
  append_json_string(json, text);
  return json;
}

std::string at_result(const serve::HttpResponse& response, std::string_view pointer) {
  return at(response.body, "/results/0" + std::string(pointer));
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a list of streams is sorted by time, the newest last") {
  search::StreamList list;
  CHECK(list.size() == 0);
  list.add("r/p/new", 3);
  list.add("", 1);
  list.add("r/p/middle", 2);
  list.sort();
  REQUIRE(list.size() == 3);
  CHECK(list.name(0) == "");
  CHECK(list.name(1) == "r/p/middle");
  CHECK(list.name(2) == "r/p/new");
}

TEST_CASE("prompts, answers, tool inputs and titles are found, outputs are not") {
  IndexFixture index;
  index.write("s", turns(1, 3));
  index.index({"s"});
  CHECK(at_result(index.find("question 2"), "/kind") == R"("prompt")");
  CHECK(at_result(index.find("reply 2"), "/kind") == R"("answer")");
  CHECK(at_result(index.find("target2"), "/kind") == R"("tool")");
  CHECK(at_result(index.find("home api"), "/kind") == R"("title")");
  CHECK(at_result(index.find("output"), "") == "absent");
  const auto found = index.find("targ");
  CHECK(at_result(found, "/session") == R"("s")");
  CHECK(at_result(found, "/stream") == R"("r/p/s")");
  CHECK(at_result(found, "/project") == R"("/home/u/api")");
  CHECK(at_result(found, "/host") == R"("h")");
  CHECK(at_result(found, "/snippet/text") == R"("Bash make target3")");
  CHECK(at_result(found, "/snippet/matches") == "[[10,7]]");
  CHECK(count_of(found.body, "\"cursor\"") == 3);
}

TEST_CASE("any split of appends, with any restarts, makes the same index as the whole file") {
  const std::string text = turns(1, 12);
  IndexFixture whole;
  whole.write("s", text);
  whole.index({"s"});
  const auto expected = whole.documents();
  REQUIRE(expected.size() > 36);
  for (unsigned seed = 0; seed < 12; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    IndexFixture index;
    if (seed % 3 == 0) index.batch_bytes_max = 1;  // a transaction per piece
    index.write("s", "");
    index.index({"s"});
    for (std::size_t done = 0; done < text.size();) {
      const std::size_t size = std::min<std::size_t>(text.size() - done, 1 + random() % 700);
      index.append("s", text.substr(done, size));
      done += size;
      if (random() % 4 == 0) index.stop();
      index.indexer ? index.grow("s") : index.index({"s"});
    }
    index.index({"s"});
    REQUIRE(index.documents() == expected);
    REQUIRE(index.rows() == whole.rows());
    index.check_words();
  }
}

TEST_CASE("the growth of a live stream makes the same index as its file") {
  const std::string text = turns(1, 12) + title_line("named later") + turns(13, 2);
  IndexFixture whole;
  whole.write("s", text);
  whole.index({"s"});
  REQUIRE(whole.documents().size() > 40);
  for (unsigned seed = 0; seed < 24; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    IndexFixture index;
    if (seed % 3 == 0) index.batch_bytes_max = 1;
    std::size_t done = random() % 2 == 0 ? 0 : random() % text.size();
    index.write("s", text.substr(0, done));
    if (random() % 2 == 0) index.index({"s"});
    index.follow("s", random() % 2 == 0);
    if (!index.indexer) index.index({"s"});
    while (done < text.size()) {
      const std::size_t size = std::min<std::size_t>(text.size() - done, 1 + random() % 700);
      index.append("s", text.substr(done, size));
      done += size;
      if (random() % 8 != 0) index.read("s", random() % 4 == 0 ? size / 2 : SIZE_MAX);
      if (random() % 8 == 0) index.forget_growth("s");
      switch (random() % 8) {
        case 0:  // the daemon restarts
          index.stop();
          index.follow("s");
          index.index({"s"});
          break;
        case 1:  // another pass over all streams
          index.index({"s"});
          break;
        case 2:  // jobs wait
          index.indexer->changed(index.job("s"));
          break;
        default:
          index.grow("s");
      }
    }
    index.read("s");
    index.grow("s");
    REQUIRE(index.documents() == whole.documents());
    REQUIRE(index.rows() == whole.rows());
    index.check_words();
  }
}

TEST_CASE("a stream that appears before the first list was handled is not removed by it") {
  IndexFixture fixture;
  fixture.write("a", turns(0, 1));
  fixture.make();
  fixture.indexer->scan({});
  fixture.indexer->changed(fixture.job("a"));
  fixture.indexer->start();
  fixture.settle();
  CHECK_FALSE(fixture.documents().empty());
}

TEST_CASE("a stream with another history is indexed anew, and a removed one is removed") {
  IndexFixture index;
  index.write("s", turns(1, 5));
  index.write("t", turns(50, 1));
  index.index({"s", "t"});
  SECTION("rewritten while it is followed") {
    index.write("s", turns(20, 5));
    index.indexer->dropped("r/p/s");
    index.grow("s");
    CHECK(at_result(index.find("question 22"), "/session") == R"("s")");
    CHECK(at_result(index.find("\"question 2\""), "") == "absent");
  }
  SECTION("rewritten while no process ran") {
    index.stop();
    index.write("s", turns(20, 9));
    index.index({"s", "t"});
    CHECK(at_result(index.find("question 22"), "/session") == R"("s")");
    CHECK(at_result(index.find("\"question 2\""), "") == "absent");
  }
  SECTION("truncated while no process ran") {
    index.stop();
    index.write("s", turns(1, 2));
    index.index({"s", "t"});
    CHECK(at_result(index.find("question 2"), "/session") == R"("s")");
    CHECK(at_result(index.find("question 5"), "/session") == "absent");
  }
  SECTION("removed while it is followed") {
    fs::remove(index.path("s"));
    index.indexer->dropped("r/p/s");
    index.index({"t"});
    CHECK(at_result(index.find("\"question 2\""), "") == "absent");
  }
  SECTION("removed while no process ran") {
    index.stop();
    fs::remove(index.path("s"));
    index.index({"t"});
    CHECK(at_result(index.find("\"question 2\""), "") == "absent");
    CHECK(at(index.ask({.what = serve::SearchRequest::What::history}).body, "/sessions/0/session") ==
          R"("t")");
    CHECK(at(index.ask({.what = serve::SearchRequest::What::history}).body, "/sessions/1") == "absent");
  }
  CHECK(at_result(index.find("question 50"), "/session") == R"("t")");
  index.check_words();
}

TEST_CASE("an index that is lost, corrupt, or of another schema or key is built again") {
  IndexFixture index;
  index.write("s", turns(1, 5));
  index.index({"s"});
  const auto expected = index.documents();
  SECTION("deleted while no process ran") {
    index.stop();
    search::remove_database(index.file());
  }
  SECTION("deleted while the process runs: the next query notices") {
    search::remove_database(index.file());
    search::Reader reader(index.file(), "h", ModelTable::built_in());
    search::Reader::Fault fault{};
    CHECK(reader.run({.text = "question", .limit = 1}, {}, fault).status == 503);
    CHECK(fault == search::Reader::Fault::missing);
    index.indexer->check_file(false);
  }
  SECTION("deleted while the process runs: the next write notices") {
    search::remove_database(index.file());
    index.append("s", "\n");
    index.indexer->changed(index.job("s"));
  }
  SECTION("not a database") {
    index.stop();
    index.directory.write("search.sqlite", std::string(5000, 'x'));
  }
  SECTION("truncated") {
    index.stop();
    { search::Database(index.file(), search::Database::Mode::write).run("PRAGMA wal_checkpoint(TRUNCATE)"); }
    fs::resize_file(index.file(), 8192);
  }
  SECTION("no table") {
    index.stop();
    search::Database(index.file(), search::Database::Mode::write).run("DROP TABLE streams");
  }
  SECTION("an older schema") {
    index.stop();
    search::Database(index.file(), search::Database::Mode::write)
        .run("PRAGMA user_version=" + std::to_string(search::schema_version - 1));
  }
  SECTION("another schema") {
    index.stop();
    search::Database(index.file(), search::Database::Mode::write).run("PRAGMA user_version=99");
  }
  SECTION("another key or set of rules") {
    index.stop();
    index.identity = "two";
  }
  if (!index.indexer) {
    index.index({"s"});
  } else {
    const auto is_built = [&] {
      try {
        return index.indexer->state().rebuilt == 1 && index.documents() == expected;
      } catch (const search::DatabaseError&) {
        return false;  // being created
      }
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!is_built() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(index.documents() == expected);
  CHECK(fs::status(index.file()).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("no secret is in the bytes of the index") {
  IndexFixture index(&redactor());
  std::string text, log;
  int n = 0;
  for (const Canary& canary : canaries()) {
    const std::string quoted = as_json_string(canary.text());
    ++n;
    text += prompt(n * 10, canary.text()) + answer(n * 10 + 1, canary.text()) +
            call(n * 10 + 2, "Bash", R"({"command":)" + quoted + R"(,"password":"hunter2hunter2"})",
                 "c" + std::to_string(n));
  }
  index.write("s", text);
  index.index({"s"});
  REQUIRE(index.indexer->state().documents > canaries().size() * 2);
  index.stop();
  std::string bytes;
  for (const char* suffix : {"", "-wal"}) bytes += read_text(index.file() + suffix);
  for (const Canary& canary : canaries()) {
    CAPTURE(canary.rule);
    CHECK_FALSE(leaks(bytes, canary));
  }
  CHECK(bytes.find("hunter2hunter2") == bytes.npos);
}

TEST_CASE(
    "above the limit the documents of the oldest streams are removed, and its sessions stay in the history") {
  IndexFixture index;
  index.bytes_max = 400'000;
  index.batch_bytes_max = 20'000;
  std::vector<std::string> names;
  for (int n = 0; n < 40; ++n) {
    names.push_back("s" + std::to_string(100 + n));
    index.write(names.back(), turns(n * 20 + 1, 20));
  }
  index.index(names);
  const auto state = index.indexer->state();
  CHECK(state.evicted > 0);
  CHECK(state.bytes <= index.bytes_max);
  serve::SearchRequest history{.what = serve::SearchRequest::What::history, .limit = 1000};
  CHECK(count_of(index.ask(history).body, "\"session\":") == names.size());
  const auto documents = index.documents();
  index.index(names);  // they are not indexed again
  CHECK(index.documents() == documents);
  index.check_words();
}

TEST_CASE("pages of a search and of the history have every result once, newest first") {
  IndexFixture index;
  std::vector<std::string> names;
  for (int n = 0; n < 7; ++n) {
    names.push_back("s" + std::to_string(n));
    index.write(names.back(), turns(n * 10 + 1, 5));
  }
  index.index(names);
  for (const bool is_history : {false, true}) {
    serve::SearchRequest request{.text = "question", .limit = is_history ? 3u : 4u};
    if (is_history) request.what = serve::SearchRequest::What::history;
    std::vector<std::string> seen, times;
    while (true) {
      const auto page = index.ask(request);
      REQUIRE(page.status == 200);
      const std::string list = is_history ? "/sessions/" : "/results/";
      for (int n = 0; at(page.body, list + std::to_string(n)) != "absent"; ++n) {
        seen.push_back(at(page.body, list + std::to_string(n) + (is_history ? "/session" : "/cursor")) +
                       at(page.body, list + std::to_string(n) + "/stream"));
        times.push_back(at(page.body, list + std::to_string(n) + (is_history ? "/last_time" : "/time")));
      }
      const std::string next = at(page.body, "/next");
      if (next == "absent") break;
      request.after = next.substr(1, next.size() - 2);
    }
    CHECK(seen.size() == (is_history ? 7u : 35u));
    CHECK(std::is_sorted(times.rbegin(), times.rend()));
    std::sort(seen.begin(), seen.end());
    CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
  }
}

TEST_CASE("filters, and what a restricted user may see") {
  IndexFixture index;
  index.write("a", prompt(1, "shared word", "/home/u/api") + answer(2, "shared reply"));
  index.write("b", prompt(3, "shared word", "/home/u/web") + answer(4, "shared reply"));
  index.index({"a", "b"});
  const auto sessions = [&](serve::SearchRequest request) {
    request.text = "shared";
    const auto response = index.ask(request);
    return std::pair(count_of(response.body, R"("session":"a")"),
                     count_of(response.body, R"("session":"b")"));
  };
  CHECK(sessions({}) == std::pair<std::size_t, std::size_t>(2, 2));
  CHECK(sessions({.filter = {.project = {"*/web"}}}) == std::pair<std::size_t, std::size_t>(0, 2));
  CHECK(sessions({.filter = {.session = {"a*"}}, .kinds = 1}) == std::pair<std::size_t, std::size_t>(1, 0));
  CHECK(sessions({.filter = {.host = {"other"}}}) == std::pair<std::size_t, std::size_t>(0, 0));
  CHECK(sessions({.allowed = {.project = {"*/api"}}}) == std::pair<std::size_t, std::size_t>(2, 0));
  CHECK(sessions({.filter = {.project = {"*/web"}}, .allowed = {.project = {"*/api"}}}) ==
        std::pair<std::size_t, std::size_t>(0, 0));
  CHECK(sessions({.until_ms = 1}) == std::pair<std::size_t, std::size_t>(0, 0));
  serve::SearchRequest history{
      .what = serve::SearchRequest::What::history, .allowed = {.project = {"*/api"}}, .meta = true};
  const auto response = index.ask(history);
  CHECK(count_of(response.body, "web") == 0);
  CHECK(count_of(response.body, "title") == 0);
  CHECK(count_of(response.body, "shared") == 0);
  CHECK(at(response.body, "/index/total") == "absent");
  CHECK(at(response.body, "/sessions/0/prompts") == "1");
}
