// New files that begin with the history of another transcript: forks, branches, resumed copies.
#include <catch2/catch.hpp>
#include <filesystem>

#include "unit/support/compressed.hpp"
#include "unit/tail/tail_fixture.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::Mode;

namespace copied_history_test {

const std::string title = R"({"type":"custom-title","customTitle":"a fork"})"
                          "\n";

struct Fork {
  Fork() {
    fs::create_directories(root / "projects/p");
    append(root / "projects/p/s.jsonl", prompts(0, 5));
    fixture.start();
    fixture.read("r/p/s");
  }
  /// The same records in another session.
  static std::string fork_of(int from, int to) {
    std::string text;
    for (int n = from; n < to; ++n) text += prompt(n, "fork");
    return text;
  }
  const Lines& events() { return fixture.observer.streams["r/p/fork"].events; }
  TemporaryDirectory root;
  const std::string path = root / "projects/p/fork.jsonl";
  TailFixture fixture{root.path(), Mode::both};
};

TEST_CASE("fault 125: what a fork repeats is its history, what follows is new") {
  Fork fork;
  const bool in_one_append = GENERATE(true, false);
  if (!in_one_append) {
    append(fork.path, title);  // no record of it can be found elsewhere
    fork.fixture.idle();
    CHECK_FALSE(fork.fixture.observer.has("r/p/fork"));
  }
  const std::string all = title + Fork::fork_of(0, 5) + prompt(100, "fork");
  append(fork.path, in_one_append ? all : all.substr(title.size()));
  fork.fixture.read("r/p/fork");
  const Fold whole(all, {}, all.size() - prompt(100, "fork").size());
  CHECK(fork.events() ==
        Lines(whole.events.begin() + static_cast<std::ptrdiff_t>(whole.events_known), whole.events.end()));
  CHECK(fork.fixture.observer.streams["r/p/fork"].resets.empty());
  append(fork.path, prompt(101, "fork"));
  fork.fixture.read("r/p/fork");
  CHECK(fork.events().size() == fold_of(all + prompt(101, "fork")).size() - whole.events_known);
}

TEST_CASE("fault 125: a fork that begins with records of its own without an id") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompts(0, 5));
  const bool is_fork = GENERATE(true, false);
  tail::Options options = TailFixture::options(root.path());
  if (is_fork) options.linger = 3600s;  // until more is written
  TailFixture fixture(std::move(options), Mode::both);
  fixture.start();
  fixture.read("r/p/s");
  const std::string path = root / "projects/p/fork.jsonl";
  append(path, R"({"type":"queue-operation","operation":"enqueue","sessionId":"fork","content":"and now"})"
               "\n");
  if (!is_fork) return fixture.read("r/p/fork");
  fixture.idle();
  CHECK_FALSE(fixture.observer.has("r/p/fork"));
  append(path, Fork::fork_of(0, 5));
  const std::size_t known = fold_of(contents(path)).size();
  append(path, prompt(100, "fork"));
  fixture.read("r/p/fork");
  CHECK(fixture.observer.streams["r/p/fork"].events.size() == fold_of(contents(path)).size() - known);
}

TEST_CASE("fault 125: a fork that is written record by record") {
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompts(0, 5));
  tail::Options options = TailFixture::options(root.path());
  options.linger = 3600s;  // as long as all of it is repeated
  TailFixture fixture(std::move(options), Mode::both);
  fixture.start();
  fixture.read("r/p/s");
  const std::string path = root / "projects/p/fork.jsonl";
  for (int n = 0; n < 5; ++n) {
    append(path, prompt(n, "fork"));
    fixture.idle();
    CHECK_FALSE(fixture.observer.has("r/p/fork"));
  }
  bool is_folded = false;  // as a client or a status asks for it
  fixture.tail->fold("r/p/fork", [&](const tail::Stream* stream) { is_folded = stream != nullptr; });
  fixture.idle();
  CHECK_FALSE(is_folded);
  append(path, prompt(100, "fork"));
  fixture.read("r/p/fork");
  CHECK(fixture.observer.streams["r/p/fork"].events.size() ==
        fold_of(contents(path)).size() - fold_of(Fork::fork_of(0, 5)).size());
  CHECK(is_folded);
}

TEST_CASE("fault 125: a copy that repeats a transcript in part, and one that repeats a large one") {
  Fork fork;
  const std::string repeated = Fork::fork_of(0, 2),
                    rewound = repeated + prompt(100, "fork") + prompt(3, "fork");
  append(fork.path, rewound);
  fork.fixture.read("r/p/fork");
  CHECK(fork.events().size() == fold_of(rewound).size() - fold_of(repeated).size());

  const auto large = [](std::string_view session) {
    std::string text;
    for (int n = 1000; text.size() < (5u << 20); ++n) {
      std::string line = prompt(n, session);
      line.insert(line.size() - std::string_view("\"}}\n").size(), 100'000, 'x');
      text += line;
    }
    return text;
  };
  const auto append_and_read = [&](const std::string& name, const std::string& text) {
    append(fork.root / ("projects/p/" + name + ".jsonl"), text);
    fork.fixture.until([&] {
      const auto* const stream = fork.fixture.tail->find("r/p/" + name);
      return stream && stream->transcript() && stream->transcript()->bytes_read() == text.size();
    });
  };
  append_and_read("large", large("large"));
  append_and_read("copy", large("copy") + prompt(7, "copy"));
  CHECK(fork.fixture.observer.streams["r/p/copy"].events.size() ==
        fold_of(large("copy") + prompt(7, "copy")).size() - fold_of(large("copy")).size());
}

TEST_CASE("fault 125: a new transcript that repeats nothing is delivered wholly") {
  Fork fork;
  const std::string text = GENERATE(prompts(200, 203), std::string("not JSON\n"), title + prompts(200, 201),
                                    prompts(0, 3), prompt(300).substr(0, 40));  // prompts(0, 3): a mere copy
  append(fork.path, text);
  if (!text.ends_with('\n')) {
    fork.fixture.idle();
    append(fork.path, prompt(300).substr(40));
  }
  fork.fixture.same("r/p/fork", fork.path);
}

TEST_CASE("fault 125: a copy is removed, or cut, while what it repeats is found") {
  Fork fork;
  const bool is_removed = GENERATE(true, false);
  append(fork.path, title + Fork::fork_of(0, 5));
  if (is_removed)
    fs::remove(fork.path);
  else
    fs::resize_file(fork.path, title.size());
  fork.fixture.idle();
  append(fork.path, prompt(400, "fork"));
  const Lines events = fold_of(contents(fork.path));
  fork.fixture.until([&] { return fork.events() == events; });
}

TEST_CASE("fault 125: a copy is compressed while it waits for more") {
  Fork fork;
  append(fork.path, Fork::fork_of(0, 5));
  fork.fixture.idle();
  CHECK_FALSE(fork.fixture.observer.has("r/p/fork"));
  rewrite(fork.path + ".zst", compressed(contents(fork.path)));
  fs::remove(fork.path);
  fork.fixture.until([&] { return fork.fixture.observer.has("r/p/fork"); });
  CHECK(fork.events().empty());
}

TEST_CASE("fault 125: an empty transcript is compressed, and a client wants it") {
  Fork fork;
  append(fork.root / "projects/p/empty.jsonl", "");
  fork.fixture.idle();
  rewrite(fork.root / "projects/p/empty.jsonl.zst", compressed(""));
  fs::remove(fork.root / "projects/p/empty.jsonl");
  bool is_answered = false;
  fork.fixture.tail->fold("r/p/empty", [&](const tail::Stream*) { is_answered = true; });
  fork.fixture.until([&] { return is_answered; });
}

TEST_CASE("fault 125: each record that a copy repeats is waited for as long") {
  constexpr auto linger = 300ms;
  TemporaryDirectory root;
  fs::create_directories(root / "projects/p");
  append(root / "projects/p/s.jsonl", prompts(0, 5));
  tail::Options options = TailFixture::options(root.path());
  options.linger = linger;
  TailFixture fixture(std::move(options), Mode::both);
  fixture.start();
  fixture.read("r/p/s");
  const std::string path = root / "projects/p/fork.jsonl";
  auto last = Clock::now();
  const auto append_now = [&](int n) {
    append(path, prompt(n, "fork"));
    last = Clock::now();
  };
  append_now(0);
  for (int n = 1; n < 5; ++n) {
    const auto until = last + linger * 2 / 3;
    fixture.until([&] { return Clock::now() >= until; });
    if (Clock::now() > last + linger * 9 / 10) return;  // this machine is too busy to tell
    append_now(n);
  }
  fixture.until([&] { return fixture.observer.has("r/p/fork"); });
  CHECK(fixture.observer.streams["r/p/fork"].events.empty());
}

}  // namespace copied_history_test
