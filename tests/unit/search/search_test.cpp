// What connects the index with the event loop: the limits of queries in flight.
#include "search/search.hpp"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "unit/support/fake_filter.hpp"
#include "unit/support/temporary_directory.hpp"
#include "unit/tail/tail_fixture.hpp"

using namespace earshot;
using namespace earshot::test;

namespace {

struct Answer {
  std::string client;
  unsigned status = 0;
  std::string body;
};

struct SearchFixture {
  SearchFixture() {
    tail.start();
    search.start(*tail.tail);
  }
  ~SearchFixture() { search.stop(); }

  void ask(const std::string& client, int count = 1) {
    for (int n = 0; n < count; ++n, ++asked)
      search.run({.text = "word", .limit = 1, .client = client},
                 [this, client](const serve::HttpResponse& got) {
                   answers.push_back({client, got.status, got.body});
                 });
  }
  void until_answered() {
    tail.until([&] { return answers.size() == asked; });
  }
  std::size_t count(std::string_view client, unsigned status, std::string_view text) const {
    return static_cast<std::size_t>(std::count_if(answers.begin(), answers.end(), [&](const Answer& each) {
      return each.client == client && each.status == status && each.body.find(text) != std::string::npos;
    }));
  }

  TemporaryDirectory root, state;
  TailFixture tail{root.path(), watch::Mode::both};
  FakeFilter filter;
  RecordingObserver observer;
  search::Search search{
      tail.io, {.directory = state.path(), .identity = "one", .host = "h"}, filter, observer};
  std::vector<Answer> answers;
  std::size_t asked = 0;
};

}  // namespace

TEST_CASE("more queries of one client than its limit get 429, and more of all clients 503") {
  SearchFixture fixture;
  fixture.ask("a", 9);  // the loop does not run: no query is finished
  for (const char* client : {"b", "c", "d"}) fixture.ask(client, 8);
  fixture.ask("e");
  fixture.until_answered();
  CHECK(fixture.count("a", 429, "too many searches at once") == 1);
  CHECK(fixture.count("e", 503, "too many searches are waiting") == 1);
  for (const char* client : {"a", "b", "c", "d"}) {
    CHECK(fixture.count(client, 503, "too many") == 0);
    CHECK(fixture.count(client, 200, "") + fixture.count(client, 503, "not available") == 8);
  }
  fixture.answers.clear(), fixture.asked = 0;
  fixture.ask("a", 8);
  fixture.ask("e");
  fixture.until_answered();
  CHECK(fixture.count("a", 429, "") == 0);
  CHECK(fixture.count("e", 503, "too many") == 0);
}

TEST_CASE("before the start and after the end a query is refused, and none is left unanswered") {
  SearchFixture fixture;
  fixture.search.stop();
  fixture.ask("a", 3);
  fixture.until_answered();
  CHECK(fixture.count("a", 503, "not available") == 3);
}

TEST_CASE("clients alternate, in the order of each one's queries") {
  std::mutex mutex;
  std::condition_variable wake;
  bool all_queued = false;
  std::string order;
  const TemporaryDirectory state;
  search::QueryThread thread(state / "none", "h", ModelTable::built_in());
  const auto ask = [&](const std::string& client) {
    thread.run({.text = "word", .client = client}, {}, [&, client](const serve::HttpResponse&, auto) {
      std::unique_lock lock(mutex);
      order += client;
      wake.notify_all();
      wake.wait(lock, [&] { return all_queued; });  // the first one holds the others back
    });
  };
  for (const char* client : {"a", "a", "a", "a", "b", "c", "b"}) ask(client);
  std::unique_lock lock(mutex);
  all_queued = true;
  wake.notify_all();
  REQUIRE(wake.wait_for(lock, std::chrono::minutes(2), [&] { return order.size() == 7; }));
  CHECK(order == "abacaba");
}
