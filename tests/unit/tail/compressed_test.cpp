// Transcripts that their program compresses some days after their last record, and unpacks to resume them.
#include <catch2/catch.hpp>

#include "agents/transcript_file.hpp"
#include "unit/support/compressed.hpp"
#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;

namespace {

struct Compressing {
  static constexpr std::chrono::milliseconds linger{300};

  explicit Compressing(std::chrono::seconds recent = std::chrono::hours(1),
                       watch::Mode mode = watch::Mode::both)
      : fixture(options(recent), mode) {
    fs::create_directories(root / "projects/p");
  }
  tail::Options options(std::chrono::seconds recent) const {
    tail::Options options = TailFixture::options(root.path());
    options.recent = recent;
    options.linger = linger;  // ten of them are longer than a test needs to unpack
    return options;
  }
  void compress() {
    rewrite(path + ".all", contents(path));
    rewrite(path + ".zst", compressed(contents(path)));
    fs::remove(path);
  }
  /// In pieces, under its own name or another one.
  void unpack(const std::string& more = {}) {
    const bool has_own_name = GENERATE(true, false);
    const std::string name = has_own_name ? path : path + ".new";
    rewrite(name, "");
    for (const std::size_t half : {std::size_t{0}, text.size() / 2}) {
      fixture.idle();
      append(name, std::string_view(text).substr(half, text.size() / 2));
    }
    append(name, std::string_view(text).substr(text.size() / 2 * 2));
    fixture.idle();
    if (!has_own_name) fs::rename(name, path);
    append(path, more);
    if (GENERATE(true, false)) fs::remove(path + ".zst");
  }
  void start_compressed() {
    rewrite(path, text);
    compress();
    fixture.start();
  }
  /// What follows the known text is sent, and nothing else.
  void check_resumes() {
    append(path, later);
    const Fold all(text + later, {}, text.size());
    const Lines fresh(all.events.begin() + static_cast<std::ptrdiff_t>(all.events_known), all.events.end());
    fixture.until([&] {
      return fixture.observer.has("r/p/s") && fixture.tail->find("r/p/s")->transcript()->end() == all.end;
    });
    CHECK(fixture.observer.streams["r/p/s"].events == fresh);
    CHECK(fixture.observer.streams["r/p/s"].resets.empty());
  }
  const tail::Stream* stream() { return fixture.tail->find("r/p/s"); }
  bool has_problem() { return !fixture.tail->problems().empty(); }

  TemporaryDirectory root;
  const std::string path = root / "projects/p/s.jsonl";
  const std::string text = prompts(0, 8), later = later_prompt();
  TailFixture fixture;

 private:
  static std::string later_prompt() {
    std::string line = prompt(8);
    return line.replace(line.find("2026"), 4, "2126");
  }
};

constexpr std::chrono::hours never{-1};  // folds nothing at start

}  // namespace

TEST_CASE("fault 133: a transcript that was compressed before the start is history") {
  Compressing test;
  test.start_compressed();
  REQUIRE(test.stream());
  CHECK(test.stream()->path() == test.path);
  CHECK(test.stream()->transcript() == nullptr);  // cold, however new
  CHECK(test.stream()->published_bytes() == unknown_bytes);

  const auto history = test.fixture.tail->history(*test.stream());
  std::string read;
  bool is_over = false;
  history->next(1 << 20, [&](tail::History::Piece piece) {
    read.assign(piece.bytes.begin(), piece.bytes.end());
    is_over = piece.end && piece.error == 0;
  });
  test.fixture.until([&] { return is_over; });
  CHECK(read == test.text);

  SECTION("it is folded when a client wants it, and stays") {
    const tail::Stream* folded = nullptr;
    test.fixture.tail->fold("r/p/s", [&](const tail::Stream* stream) { folded = stream; });
    test.fixture.until([&] { return folded != nullptr; });
    CHECK(folded->transcript()->end() == Fold(test.text).end);
    test.fixture.idle();
    CHECK(test.fixture.observer.has("r/p/s"));
    test.unpack();
    test.check_resumes();
  }
  SECTION("it is unpacked, and resumed later") {
    test.unpack();
    if (GENERATE(true, false))
      test.fixture.until([&] { return test.stream()->published_bytes() == test.text.size(); });
    test.check_resumes();
  }
  SECTION("it is unpacked and resumed at once") {
    append(test.path, test.text + test.later);
    fs::remove(test.path + ".zst");
    const Fold all(test.text + test.later, {}, test.text.size());
    test.fixture.until(
        [&] { return test.fixture.observer.has("r/p/s") && test.stream()->transcript()->end() == all.end; });
    CHECK(test.fixture.observer.streams["r/p/s"].events.size() == all.events.size() - all.events_known);
  }
  SECTION("a client wants it while it is unpacked") {
    append(test.path, test.text.substr(0, 300));
    const tail::Stream* folded = nullptr;
    test.fixture.tail->fold("r/p/s", [&](const tail::Stream* stream) { folded = stream; });
    test.fixture.until([&] { return folded != nullptr; });
    CHECK(folded->transcript()->end() == Fold(test.text).end);
    append(test.path, test.text.substr(300));
    fs::remove(test.path + ".zst");
    test.check_resumes();
  }
  SECTION("it is unpacked, and a client wants it then") {
    append(test.path, test.text + test.later);
    fs::remove(test.path + ".zst");
    const tail::Stream* folded = nullptr;
    test.fixture.tail->fold("r/p/s", [&](const tail::Stream* stream) { folded = stream; });
    test.fixture.until([&] { return folded != nullptr; });
    test.fixture.same("r/p/s", test.path, test.text.size());
  }
  SECTION("it is removed") {
    fs::remove(test.path + ".zst");
    test.fixture.until([&] { return test.stream() == nullptr; });
  }
}

TEST_CASE("fault 133: a transcript that is compressed while it is followed stays the same stream") {
  Compressing test(std::chrono::hours(1), GENERATE(watch::Mode::both, watch::Mode::sweep));
  rewrite(test.path, test.text);
  test.fixture.start();
  CHECK(test.fixture.observer.has("r/p/s"));
  test.compress();
  test.fixture.idle();
  CHECK(test.fixture.observer.has("r/p/s"));
  CHECK(test.fixture.observer.streams["r/p/s"].added == 1);
  SECTION("and resumed") {
    test.unpack();
    test.check_resumes();
    CHECK(test.fixture.observer.streams["r/p/s"].added == 1);
  }
  SECTION("and removed") {
    fs::remove(test.path + ".zst");
    test.fixture.until([&] { return !test.fixture.observer.has("r/p/s"); });
  }
}

TEST_CASE("fault 133: a transcript is compressed and resumed time and again") {
  Compressing test;
  rewrite(test.path, test.text);
  test.fixture.start();
  for (int n = 0; n < 2; ++n) {
    test.compress();
    test.fixture.idle();
    const std::string all = contents(test.path + ".all");
    rewrite(test.path, "");
    test.fixture.idle();
    // Longer than a file that does not grow is taken for one that is being unpacked.
    const auto until = Clock::now() + Compressing::linger * 12;
    append(test.path, all);
    test.fixture.until([&] { return Clock::now() >= until; });
    fs::remove(test.path + ".zst");
    append(test.path, prompt(100 + n));
    test.fixture.until([&] { return test.stream()->published_bytes() == contents(test.path).size(); });
  }
  CHECK(test.fixture.observer.streams["r/p/s"].resets.empty());
  CHECK(test.fixture.observer.streams["r/p/s"].events.size() ==
        fold_of(contents(test.path)).size() - fold_of(test.text).size());
}

TEST_CASE("fault 133: a transcript of which a copy was left is followed, whatever it becomes") {
  Compressing test(GENERATE(std::chrono::seconds(std::chrono::hours(1)), std::chrono::seconds(never)));
  rewrite(test.path, test.text);
  rewrite(test.path + ".zst", compressed(prompts(20, 22)));
  test.fixture.start();
  SECTION("another one that is shorter") {
    rewrite(test.path + ".new", test.later);
    fs::rename(test.path + ".new", test.path);
    test.fixture.same("r/p/s", test.path);
    CHECK(test.fixture.observer.streams["r/p/s"].resets.size() == 1);
  }
  SECTION("what is in the copy") {
    append(test.path, test.later);  // it is verified when a client resumes
    test.fixture.until([&] { return test.fixture.observer.has("r/p/s"); });
    test.fixture.read("r/p/s");
    fs::remove(test.path);
    const Cursor end = Fold(prompts(20, 22)).end;
    test.fixture.until([&] {
      const tail::Stream* const stream = test.stream();
      if (stream && stream->transcript()) test.fixture.tail->request_verify(*stream);
      return stream && stream->transcript() && stream->transcript()->end() == end;
    });
  }
}

TEST_CASE(
    "fault 133: a compressed transcript that is written under its final name is read when it is whole") {
  Compressing test;
  if (GENERATE(true, false)) test.fixture.start();
  const std::string bytes = compressed(test.text);
  append(test.path + ".zst", bytes.substr(0, bytes.size() / 2));
  if (!test.fixture.tail->counters().directories) test.fixture.start();
  test.fixture.until([&] { return test.has_problem(); });
  append(test.path + ".zst", bytes.substr(bytes.size() / 2));
  test.fixture.until([&] { return !test.has_problem(); });
  bool is_folded = false;
  test.fixture.tail->fold("r/p/s", [&](const tail::Stream* stream) { is_folded = stream != nullptr; });
  test.fixture.until([&] { return is_folded; });
}

TEST_CASE("fault 133: a cold transcript that is compressed is known to its former end") {
  Compressing test(never);
  rewrite(test.path, test.text);
  test.fixture.start();
  test.compress();
  test.fixture.idle();
  REQUIRE(test.stream());
  CHECK(test.stream()->published_bytes() == test.text.size());
  test.unpack(prompts(8, 9).substr(0, 10));  // the first bytes of the next record are already there
  append(test.path, prompts(8, 9).substr(10));
  const Fold all(test.text + prompts(8, 9), {}, test.text.size());
  test.fixture.until(
      [&] { return test.fixture.observer.has("r/p/s") && test.stream()->transcript()->end() == all.end; });
  CHECK(test.fixture.observer.streams["r/p/s"].events.size() == all.events.size() - all.events_known);
}

TEST_CASE("fault 133: a compressed transcript that appears is a stream with a history") {
  Compressing test;
  test.fixture.start();
  rewrite(test.root / "t", compressed(test.text));
  fs::rename(test.root / "t", test.path + ".zst");
  test.fixture.until([&] { return test.fixture.observer.has("r/p/s"); });
  CHECK(test.stream()->transcript()->end() == Fold(test.text).end);
  CHECK(test.fixture.observer.streams["r/p/s"].events.empty());
}

TEST_CASE("fault 133: a compressed transcript that cannot be unpacked is reported") {
  Compressing test;
  rewrite(test.path + ".zst", "no frame");
  test.fixture.start();
  test.fixture.until([&] { return test.has_problem(); });
  CHECK(test.fixture.tail->problems().front().path == test.path);
  CHECK(test.fixture.tail->problems().front().reason == "the compressed file is damaged or incomplete");
  bool is_answered = false;
  test.fixture.tail->fold("r/p/s", [&](const tail::Stream* stream) { is_answered = stream == nullptr; });
  test.fixture.until([&] { return is_answered; });
  CHECK(test.has_problem());
  fs::remove(test.path + ".zst");
  test.fixture.until([&] { return !test.has_problem(); });
}
