// Changes of cold transcripts: clients that read one from its file learn that it was removed or replaced.
#include <catch2/catch.hpp>

#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

struct Cold {
  explicit Cold(const std::string& text) {
    fs::create_directories(root / "projects/p");
    append(file, text);
    tail::Options options = TailFixture::options(root.path());
    options.recent = std::chrono::seconds(-3600);  // folds nothing at start
    fixture = std::make_unique<TailFixture>(options, watch::Mode::both);
    fixture->start();
    REQUIRE(fixture->tail->find(name)->transcript() == nullptr);
  }
  /// A client reads the whole transcript from its file.
  void publish() { fixture->tail->mark_published(*fixture->tail->find(name), Fold(contents(file)).end); }
  const RecordingObserver::Received& received() { return fixture->observer.streams[name]; }

  TemporaryDirectory root;
  const std::string name = "r/p/s";
  const std::string file = root / "projects/p/s.jsonl";
  std::unique_ptr<TailFixture> fixture;
};

}  // namespace

TEST_CASE("a cold transcript that shrinks is reset and delivered from its first line") {
  Cold cold(prompts(0, 9));
  rewrite(cold.file, prompts(20, 23));
  cold.fixture->same(cold.name, cold.file);
  REQUIRE(cold.received().resets == Lines{"truncated"});
}

TEST_CASE("a removed cold transcript is reported") {
  Cold cold(prompts(0, 9));
  SECTION("alone") { fs::remove(cold.file); }
  SECTION("with its directory") { fs::remove_all(cold.root / "projects/p"); }
  cold.fixture->until([&] { return cold.fixture->observer.streams.contains(cold.name); });
  REQUIRE_FALSE(cold.received().present);
  REQUIRE(cold.received().added == 0);
}

TEST_CASE(
    "lines appended to a cold transcript since its last check are delivered when it is folded on demand") {
  Cold cold(prompts(0, 9));
  const std::size_t known = cold.fixture->tail->find(cold.name)->published_bytes();
  append(cold.file, prompts(9, 12));  // not noticed yet; a client that resumes expects what follows `known`
  bool folded = false;
  cold.fixture->tail->fold(cold.name, [&](const tail::Stream* stream) { folded = stream != nullptr; });
  cold.fixture->until([&] { return folded && !cold.received().events.empty(); });
  cold.fixture->idle();
  const Fold fold(contents(cold.file), {}, known);
  REQUIRE(cold.received().events ==
          Lines(fold.events.begin() + static_cast<long>(fold.events_known), fold.events.end()));
}

TEST_CASE("the published prefix of a cold transcript is verified when it is followed") {
  Cold cold(prompts(0, 9));
  cold.publish();
  const bool rewritten = GENERATE(true, false);
  if (rewritten)
    rewrite(cold.file, prompts(20, 40));  // longer: its size alone looks like growth
  else
    append(cold.file, prompts(9, 12));
  cold.fixture->until([&] {
    const auto* stream = cold.fixture->tail->find(cold.name);
    return stream && stream->transcript() && stream->transcript()->bytes_read() == contents(cold.file).size();
  });
  cold.fixture->idle();
  REQUIRE(cold.received().resets == (rewritten ? Lines{"rewritten"} : Lines{}));
  if (rewritten) cold.fixture->same(cold.name, cold.file);
}

TEST_CASE("an unterminated line of a cold transcript that was published is delivered as it is written then") {
  const std::string first = GENERATE(std::string(), prompts(0, 3));
  Cold cold(first + std::string(3000, 'x'));
  cold.publish();
  rewrite(cold.file, first + prompts(10, 40));  // longer, with the same complete lines
  const std::size_t known = first.size();
  cold.fixture->until([&] {
    const auto* stream = cold.fixture->tail->find(cold.name);
    return stream && stream->transcript() && stream->transcript()->bytes_read() == contents(cold.file).size();
  });
  cold.fixture->idle();
  const Fold fold(contents(cold.file), {}, known);
  REQUIRE(cold.received().resets.empty());
  REQUIRE(cold.received().events ==
          Lines(fold.events.begin() + static_cast<long>(fold.events_known), fold.events.end()));
}

TEST_CASE("several clients of one history that ends see it end once") {
  Cold cold(prompts(0, 9));
  bool folded = false;
  cold.fixture->tail->fold(cold.name, [&](const tail::Stream* stream) { folded = stream != nullptr; });
  cold.fixture->until([&] { return folded; });
  const Fold fold(contents(cold.file));
  SECTION("by another file at its path") {
    append(cold.root / "other", prompts(20, 40));
    fs::rename(cold.root / "other", cold.file);
  }
  SECTION("by a change in place") { rewrite(cold.file, prompts(20, 40)); }
  for (int client = 0; client < 8; ++client)
    cold.fixture->tail->mark_published(*cold.fixture->tail->find(cold.name), fold.end);
  cold.fixture->same(cold.name, cold.file);
  const auto retried = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  cold.fixture->until([&] { return std::chrono::steady_clock::now() > retried; });
  CHECK(cold.received().resets.size() == 1);
  cold.fixture->same(cold.name, cold.file);
}

TEST_CASE("two histories published for one cold transcript are both reset") {
  Cold cold(prompts(0, 9));
  cold.publish();
  rewrite(cold.file, prompts(50, 59));  // the loop does not run
  cold.publish();
  append(cold.file, prompts(59, 60));
  cold.fixture->same(cold.name, cold.file);
  REQUIRE(cold.received().resets == Lines{"rewritten"});
}
