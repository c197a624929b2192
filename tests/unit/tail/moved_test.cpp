// Transcripts that their program moves: a worktree entered or left, a session archived.
#include <catch2/catch.hpp>

#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

constexpr std::chrono::milliseconds soon{50};
constexpr std::chrono::hours no_end{1};

/// `linger`: for how long a missing file may be found elsewhere.
struct Moved {
  explicit Moved(watch::Mode mode = watch::Mode::both, std::chrono::milliseconds linger = no_end)
      : fixture(options(linger), mode) {
    fs::create_directories(root / "projects/home");
    fs::create_directories(root / "projects/tree");
    fixture.start();
    append(home, prompts(0, 3));
    fixture.same("r/home/s", home);
  }
  RecordingObserver& observer() { return fixture.observer; }
  tail::Options options(std::chrono::milliseconds linger) const {
    tail::Options options = TailFixture::options(root.path());
    options.linger = linger;
    return options;
  }

  TemporaryDirectory root;
  const std::string home = root / "projects/home/s.jsonl", tree = root / "projects/tree/s.jsonl";
  TailFixture fixture;
};

}  // namespace

TEST_CASE("fault 125: a transcript that is moved goes on under its new name, and no event is sent twice") {
  Moved moved(GENERATE(watch::Mode::both, watch::Mode::sweep));
  fs::rename(moved.home, moved.tree);
  if (GENERATE(true, false)) append(moved.tree, prompts(3, 5));
  moved.fixture.same("r/tree/s", moved.tree);
  CHECK(moved.observer().renamed == Lines{"r/home/s → r/tree/s"});
  CHECK(moved.observer().streams["r/tree/s"].added == 1);
  CHECK_FALSE(moved.observer().has("r/home/s"));
  append(moved.tree, prompts(5, 6));
  moved.fixture.same("r/tree/s", moved.tree);
  // The former name leads there.
  REQUIRE(moved.fixture.tail->find("r/home/s"));
  CHECK(moved.fixture.tail->find("r/home/s")->name() == "r/tree/s");

  fs::rename(moved.tree, moved.home);
  append(moved.home, prompts(6, 7));
  moved.fixture.same("r/home/s", moved.home);
  CHECK(moved.observer().renamed == Lines{"r/home/s → r/tree/s", "r/tree/s → r/home/s"});
  CHECK(moved.fixture.tail->find("r/tree/s")->name() == "r/home/s");
  CHECK(moved.observer().streams["r/home/s"].added == 1);
  CHECK(moved.observer().streams["r/home/s"].resets.empty());
  CHECK(moved.observer().events == static_cast<int>(moved.observer().streams["r/home/s"].events.size()));
}

TEST_CASE("fault 125: where a moved transcript was another one can begin") {
  Moved moved(watch::Mode::both, soon);
  fs::rename(moved.home, moved.tree);
  append(moved.home, prompts(20, 22));
  moved.fixture.same("r/tree/s", moved.tree);
  moved.fixture.same("r/home/s", moved.home);
  CHECK(moved.observer().renamed == Lines{"r/home/s → r/tree/s"});
  CHECK(moved.fixture.tail->find("r/home/s")->name() == "r/home/s");
}

TEST_CASE("fault 125: a transcript that another session takes over is removed, and another stream there") {
  Moved moved(watch::Mode::both, soon);
  const std::string other = moved.root / "projects/tree/t.jsonl";
  fs::rename(moved.home, other);
  moved.fixture.same("r/tree/t", other);
  moved.fixture.until([&] { return !moved.observer().has("r/home/s"); });
  CHECK(moved.observer().renamed.empty());
}

TEST_CASE("fault 125: a transcript that leaves the directories is removed") {
  Moved moved(watch::Mode::both, soon);
  TemporaryDirectory outside;
  fs::rename(moved.home, outside / "s.jsonl");
  moved.fixture.until([&] { return !moved.observer().has("r/home/s"); });
  CHECK(moved.observer().renamed.empty());
  CHECK(moved.fixture.tail->find("r/home/s") == nullptr);
}

TEST_CASE("fault 125: a cold transcript is moved, too") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/home");
  fs::create_directories(root / "projects/tree");
  const std::string home = root / "projects/home/s.jsonl", tree = root / "projects/tree/s.jsonl";
  append(home, prompts(0, 3));
  tail::Options options = TailFixture::options(root.path());
  options.recent = std::chrono::seconds(-3600);  // folds nothing at start
  TailFixture fixture(options, watch::Mode::both);
  fixture.start();
  const std::uint64_t known = fixture.tail->find("r/home/s")->published_bytes();
  fs::rename(home, tree);
  fixture.until([&] { return !fixture.observer.renamed.empty(); });
  CHECK(fixture.observer.renamed == Lines{"r/home/s → r/tree/s"});
  CHECK(fixture.tail->find("r/tree/s")->published_bytes() == known);
  CHECK(fixture.tail->find("r/tree/s")->transcript() == nullptr);
  fs::remove(tree);
  fixture.until([&] { return fixture.tail->find("r/tree/s") == nullptr; });
}

TEST_CASE("fault 125: a transcript that is copied goes on there if the first one is removed") {
  Moved moved(GENERATE(watch::Mode::both, watch::Mode::sweep));
  const bool is_late = GENERATE(false, true);
  fs::copy_file(moved.home, moved.tree);
  for (int n = 0; is_late && n < 5; ++n) moved.fixture.io.run_one_for(std::chrono::milliseconds(10));
  fs::remove(moved.home);
  append(moved.tree, prompts(3, 5));
  moved.fixture.same("r/tree/s", moved.tree);
  CHECK(moved.observer().renamed == Lines{"r/home/s → r/tree/s"});
  CHECK(moved.observer().streams["r/tree/s"].added == 1);
  CHECK(moved.observer().streams["r/tree/s"].resets.empty());
  CHECK(moved.observer().events == static_cast<int>(moved.observer().streams["r/tree/s"].events.size()));
}

TEST_CASE("fault 125: a copy is another stream while the first one stays") {
  Moved moved(watch::Mode::both, soon);
  fs::copy_file(moved.home, moved.tree);
  moved.fixture.same("r/tree/s", moved.tree);
  moved.fixture.same("r/home/s", moved.home);
  CHECK(moved.observer().renamed.empty());
}

TEST_CASE("after a restart a former name leads to the one transcript of the session") {
  Moved moved(watch::Mode::both, soon);
  CHECK(moved.fixture.tail->find("r/before/s") == nullptr);
  REQUIRE(moved.fixture.tail->find_moved("r/before/s"));
  CHECK(moved.fixture.tail->find_moved("r/before/s")->name() == "r/home/s");
  CHECK(moved.fixture.tail->find_moved("r/before/t") == nullptr);
  append(moved.tree, prompts(0, 3));  // now there are two
  moved.fixture.same("r/tree/s", moved.tree);
  CHECK(moved.fixture.tail->find_moved("r/before/s") == nullptr);
}
