// Queries: hostile texts, the limit of their time, and the costs of the history.
#include <sys/resource.h>
#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <set>

#include "unit/search/index_fixture.hpp"

using namespace earshot;
using namespace earshot::test;

namespace {

constexpr auto no_time = std::chrono::milliseconds(0);

std::size_t results_of(const serve::HttpResponse& response) {
  std::size_t count = 0;
  while (at(response.body, "/results/" + std::to_string(count)) != "absent") ++count;
  return count;
}

std::string text_at(const serve::HttpResponse& response, std::string_view pointer) {
  const std::string json = at(response.body, pointer);
  return json.size() > 1 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

}  // namespace

TEST_CASE("operators of FTS5 and SQL in a query are words like others") {
  IndexFixture index;
  index.write("s", prompt(1, "alpha beta gamma near or not and text words") + answer(2, "alpha only"));
  index.index({"s"});
  struct Case {
    std::string text;
    std::size_t results;
  };
  const Case cases[] = {
      {"alpha", 2},
      {"alpha OR missing", 0},  // "or" and "missing" have to occur too
      {"alpha NOT beta", 1},
      {"alpha AND beta", 1},
      {"NEAR(alpha beta)", 0},  // the phrase `near alpha`, and `beta`
      {"NEAR (alpha gamma)", 1},
      {"text: alpha", 1},
      {"text : gamma", 1},
      {"{text} : missing", 0},
      {"- {text} : alpha", 1},
      {"^beta", 1},
      {"alp*", 2},
      {"*pha", 0},
      {"al*ha", 0},
      {"alpha + beta", 1},
      {"(alpha)", 2},
      {"alpha\" OR \"x", 0},  // the phrase `alpha`, then `OR`, …
      {"\"alpha\"\"beta\"", 1},
      {"'; DROP TABLE documents; --", 0},
      {"words MATCH alpha", 0},
      {std::string("alpha\0beta", 10), 1},
      {"alpha\x01gamma\x02", 1},
      {"\xE2\x80\xAE"
       "alpha",
       2},  // U+202E separates
      {"alpha\xE2\x81\xA6"
       "beta\xE2\x81\xA9",
       1},
      {"\xFF\xFE"
       "alpha",
       2},
  };
  for (const auto& [text, results] : cases) {
    CAPTURE(text);
    const auto response = index.find(text);
    CHECK(response.status == 200);
    CHECK(results_of(response) == results);
  }
  for (const std::string& text :
       {std::string(1 << 20, 'a'), std::string(1 << 20, '"'), std::string(513, '-')}) {
    const auto response = index.find(text);
    CHECK(response.status == 400);
    CHECK(response.body.size() < 200);
  }
  index.check_words();
}

TEST_CASE("a query that reaches its time limit ends, and its pages lose no result") {
  IndexFixture index;
  std::string text;
  for (int n = 1; n <= 400; ++n) text += prompt(n, "shared word " + std::to_string(n));
  index.write("s", text);
  index.index({"s"});
  search::Reader reader(index.file(), "h", index.models);
  reader.set_time_max(no_time);
  serve::SearchRequest request{.text = "shared", .kinds = 1, .limit = 200};
  std::set<std::string> cursors;
  std::size_t pages = 0, incomplete = 0, refused = 0;
  while (true) {
    search::Reader::Fault fault{};
    const auto page = reader.run(request, {}, fault);
    if (page.status == 503 && ++refused < 100) continue;  // found nothing yet
    REQUIRE(page.status == 200);
    CHECK(fault == search::Reader::Fault::none);
    ++pages;
    if (at(page.body, "/incomplete") == "true") ++incomplete;
    for (std::size_t n = 0; n < results_of(page); ++n)
      CHECK(cursors.insert(text_at(page, "/results/" + std::to_string(n) + "/cursor")).second);
    const std::string next = text_at(page, "/next");
    if (next == "absent") break;
    REQUIRE(next != request.after);
    CHECK(next.find_first_not_of("0123456789") == std::string::npos);  // outlives the process
    request.after = next;
  }
  CHECK(incomplete > 0);
  CHECK(pages > 2);
  CHECK(cursors.size() == 400);
}

TEST_CASE("a time limit does not name the time of a document that a restricted user may not see") {
  IndexFixture index;
  std::string seen, unseen;
  for (int n = 1; n <= 200; ++n) {
    seen += prompt(4 * n, "shared word " + std::to_string(n), "/home/u/api");
    unseen += prompt(4 * n + 2, "shared word " + std::to_string(n), "/home/u/secret");
  }
  index.write("seen", seen), index.write("unseen", unseen);
  index.index({"seen", "unseen"});
  search::Reader reader(index.file(), "h", index.models);
  reader.set_time_max(no_time);
  serve::SearchRequest request{.text = "shared", .allowed = {.project = {"*/api"}}, .kinds = 1, .limit = 200};
  std::set<std::string> cursors;
  std::size_t incomplete = 0, refused = 0;
  while (true) {
    search::Reader::Fault fault{};
    const auto page = reader.run(request, {}, fault);
    if (page.status == 503 && ++refused < 100) continue;  // found nothing yet
    REQUIRE(page.status == 200);
    CHECK(page.body.find("secret") == std::string::npos);
    for (std::size_t n = 0; n < results_of(page); ++n)
      CHECK(cursors.insert(text_at(page, "/results/" + std::to_string(n) + "/cursor")).second);
    const std::string next = text_at(page, "/next");
    if (next == "absent") break;
    REQUIRE(next != request.after);
    if (at(page.body, "/incomplete") == "true") {
      ++incomplete;
      CHECK(next.size() == 33);
      CHECK(next[0] == 'p');
    }
    request.after = next;
  }
  CHECK(incomplete > 0);
  CHECK(cursors.size() == 200);
  request.after = "p" + std::string(32, '0');
  search::Reader::Fault fault{};
  CHECK(reader.run(request, {}, fault).status == 400);
}

TEST_CASE("the places of restricted users are forgotten, the oldest first") {
  search::HiddenPlaces places;
  const std::string first = places.add(1), second = places.add(2);
  CHECK(first != second);
  for (std::size_t n = 2; n < search::HiddenPlaces::names_max; ++n) places.add(3);
  CHECK(places.find(first) == 1);
  places.add(4);
  CHECK_FALSE(places.find(first));
  CHECK(places.find(second) == 2);
  CHECK_FALSE(places.find(""));
}

TEST_CASE("a query that finds nothing by its time limit is refused with the reason") {
  IndexFixture index;
  std::string both, text;
  while (both.size() < search::document_bytes_max - 32) both += "alpha x omega x ";
  for (int n = 1; n <= 400; ++n) text += prompt(n, both);
  index.write("s", text);
  index.index({"s"});
  search::Reader reader(index.file(), "h", index.models);
  reader.set_time_max(std::chrono::minutes(10));
  search::Reader::Fault fault{};
  const serve::SearchRequest request{.text = "\"alpha omega\"",
                                     .limit = 1};  // both in all texts, never side by side
  auto response = reader.run(request, {}, fault);
  CHECK(response.status == 200);
  CHECK(results_of(response) == 0);
  reader.set_time_max(no_time);
  response = reader.run(request, {}, fault);
  CHECK(response.status == 503);
  CHECK(response.body.find("took too long") != std::string::npos);
  CHECK(fault == search::Reader::Fault::none);
  reader.set_time_max(std::chrono::minutes(10));
  CHECK(reader.run(request, {}, fault).status == 200);  // the connection is still usable
  reader.stop();
  CHECK(reader.run(request, {}, fault).status == 503);
}

TEST_CASE("costs of the history are recorded or estimated, as a session frame states them") {
  IndexFixture index;
  index.models = std::get<ModelTable>(
      ModelTable::with_user_file("[[model]]\npattern = \"opus\"\ninput = 1\noutput = 2\ncache_read = 3\n"
                                 "cache_write_5m = 4\ncache_write_1h = 5\n",
                                 "models.toml"));
  index.write("s", prompt(1, "question") + answer(2, "reply") + answer(3, "reply"));
  index.index({"s"});
  const serve::SearchRequest history{.what = serve::SearchRequest::What::history};
  auto response = index.ask(history);
  // Of each answer 10 tokens of input, 5 of output, 100 of cache read and 1 of cache written.
  CHECK(std::stod(at(response.body, "/sessions/0/cost_usd")) == Approx(2 * (10 + 10 + 300 + 4) / 1e6));
  CHECK(at(response.body, "/sessions/0/cost_source") == R"("estimated")");
  index.models = std::get<ModelTable>(ModelTable::with_user_file(
      "[[model]]\npattern = \"opus\"\ninput = 10\noutput = 20\ncache_read = 30\ncache_write_5m = 40\n",
      "models.toml"));
  response = index.ask(history);  // other prices need no other index
  CHECK(std::stod(at(response.body, "/sessions/0/cost_usd")) == Approx(2 * (10 + 10 + 300 + 4) / 1e5));
  index.models = ModelTable();
  response = index.ask(history);
  CHECK(at(response.body, "/sessions/0/cost_usd") == "absent");
  CHECK(at(response.body, "/sessions/0/cost_source") == "absent");
}

TEST_CASE("tokens of models are stored as text") {
  std::vector<ModelUsage> models(2);
  models[0] = {"a model", {{}, {1, 2, 3, 4, 5}}};
  models[1] = {"", {{}, {UINT64_MAX, 0, 0, 0, 0}}};
  const auto read = search::decode_models(search::encode_models(models));
  REQUIRE(read.size() == 2);
  for (std::size_t n = 0; n < 2; ++n) {
    CHECK(read[n].model == models[n].model);
    CHECK(read[n].all.without_cost == models[n].all.without_cost);
  }
  CHECK(search::encode_models({{"unused", {{7, 7, 7, 7, 7}}}}).empty());
  CHECK(search::decode_models("").empty());
  CHECK(search::decode_models("nonsense\n\n1 2").size() == 3);
}

TEST_CASE("an index that cannot be written says so, and is completed when it can") {
  IndexFixture index;
  std::string text;
  for (int n = 1; n <= 300; ++n)
    text += prompt(n, "shared word " + std::string(2000, 'x') + std::to_string(n));
  index.write("s", text);
  index.write("t", prompt(1, "before"));
  index.index({"t"});
  struct FileSizeLimit {  // writing beyond it fails, as on a full disk
    FileSizeLimit() {
      handler = std::signal(SIGXFSZ, SIG_IGN);
      ::getrlimit(RLIMIT_FSIZE, &before);
      const rlimit small{200 << 10, before.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~FileSizeLimit() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, handler);
    }
    rlimit before{};
    void (*handler)(int) = nullptr;
  };
  std::string problem;
  {
    const FileSizeLimit limit;
    index.append("t", prompt(2, "after"));
    index.indexer->changed(index.job("s"));
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while ((problem = index.indexer->state().problem).empty() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK_FALSE(problem.empty());
  index.index({"s", "t"});
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (index.documents().size() < 304 && std::chrono::steady_clock::now() < end) index.settle();
  CHECK(index.documents().size() == 300 + 2 + 2);  // and a title each
  CHECK(index.indexer->state().problem.empty());
  index.check_words();
}

TEST_CASE("while another process writes to the file queries are answered, and the index is completed later") {
  IndexFixture index;
  index.write("s", prompt(1, "before"));
  index.index({"s"});
  {
    search::Database other(index.file(), search::Database::Mode::write);
    other.run("BEGIN IMMEDIATE");
    index.append("s", prompt(2, "after"));
    index.indexer->changed(index.job("s"));
    CHECK(results_of(index.find("before")) == 1);
    CHECK(results_of(index.find("after")) == 0);
    other.run("ROLLBACK");
  }
  index.settle();
  CHECK(results_of(index.find("after")) == 1);
  index.check_words();
}

TEST_CASE("an index whose directory is missing is built when there is one") {
  IndexFixture index;
  index.directory_name = "/later";
  index.write("s", prompt(1, "question"));
  index.start();
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (index.indexer->state().problem.empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(index.indexer->state().problem.find("cannot create") == 0);
  CHECK(index.find("question").status == 503);
  std::filesystem::create_directory(index.directory / "later");
  index.index({"s"});
  CHECK(index.indexer->state().problem.empty());
  CHECK(results_of(index.find("question")) > 0);
}
