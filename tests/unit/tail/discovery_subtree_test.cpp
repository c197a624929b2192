// A watcher like that of macOS: the changes of an interval become one late hint, "check below this
// directory", which covers more than what changed.
#include <catch2/catch.hpp>
#include <random>

#include "unit/tail/tail_fixture.hpp"
#include "watch/inotify.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::ChangeHint;

namespace {

/// The deepest directory that contains both.
std::string common(const std::string& one, const std::string& other) {
  std::string both = one;
  while (!watch::at_or_below(other, both)) both = fs::path(both).parent_path();
  return both;
}

/// Merges inotify hints: sends one after `hints_max` of them, or on request.
class CoalescingWatcher final : public watch::Watcher {
 public:
  static constexpr int hints_max = 20;

  CoalescingWatcher(boost::asio::io_context& io, watch::WatchMux& mux)
      : mux_(mux), inotify_(io, [this](const ChangeHint& hint) { on_change(hint); }) {
    mux.add_backend(*this);
  }
  void watch(const std::string& directory) override { inotify_.watch(directory); }
  void unwatch(const std::string& directory) override { inotify_.unwatch(directory); }

  bool flush() {
    if (hints_ == 0) return false;
    hints_ = 0;
    ++sent;
    mux_.notify({ChangeHint::Where::directory, std::exchange(below_, {})});
    return true;
  }
  int sent = 0, coalesced = 0;

 private:
  void on_change(const ChangeHint& hint) {
    REQUIRE(hint.where != ChangeHint::Where::everything);
    // Files are never named, only directories.
    const std::string at =
        hint.where == ChangeHint::Where::path ? fs::path(hint.path).parent_path().string() : hint.path;
    below_ = below_.empty() ? at : common(below_, at);
    ++coalesced;
    if (++hints_ >= hints_max) flush();
  }

  watch::WatchMux& mux_;
  watch::Inotify inotify_;
  std::string below_;
  int hints_ = 0;
};

struct SubtreeFixture {
  SubtreeFixture()
      : fixture((fs::create_directories(root / "projects"), TailFixture::options(root.path())), mux) {
    watcher = std::make_unique<CoalescingWatcher>(fixture.io, mux);
    fixture.start();
  }
  ~SubtreeFixture() { fixture.tail->stop(); }

  /// Delivers hints until there are no more.
  void settle() {
    do fixture.idle();
    while (watcher->flush());
  }

  TemporaryDirectory root;
  watch::WatchMux mux;
  TailFixture fixture;
  std::unique_ptr<CoalescingWatcher> watcher;
};

}  // namespace

TEST_CASE("fault 60: hints that only name a parent directory lead to the same streams and events") {
  const unsigned seed = GENERATE(1u, 2u, 3u, 4u);
  CAPTURE(seed);
  std::mt19937 random(seed);
  SubtreeFixture subtree;
  int n = 0;
  const auto place = [&] {
    static constexpr const char* folders[] = {"a", "b", "a/s/subagents", "c/s/subagents/workflows/w"};
    return subtree.root / (std::string("projects/") + folders[random() % std::size(folders)]);
  };
  for (int step = 0; step < 300; ++step) {
    const std::string folder = place();
    const std::string file = folder + "/t" + std::to_string(random() % 3) + ".jsonl";
    switch (random() % 12) {
      case 0:
        fs::remove(file);
        break;
      case 1:
        fs::remove_all(folder);
        break;
      case 2:
        if (fs::exists(folder) && !fs::exists(subtree.root / "projects/moved"))
          fs::rename(folder, subtree.root / "projects/moved");
        break;
      case 3:
        if (fs::exists(file)) fs::resize_file(file, fs::file_size(file) / 2);
        break;
      case 4:
        subtree.settle();
        break;
      default:
        fs::create_directories(folder);
        append(file, prompts(n, n + 3));
        n += 3;
    }
    if (step % 7 == 0) {
      subtree.fixture.io.restart();
      subtree.fixture.io.poll();
    }
  }
  std::map<std::string, Lines> expected;
  for (const auto& each : fs::recursive_directory_iterator(subtree.root / "projects")) {
    if (!each.is_regular_file()) continue;
    const std::string name =
        fs::relative(each.path(), subtree.root / "projects").replace_extension().string();
    expected["r/" + name] = fold_of(contents(each.path()));
  }
  REQUIRE_FALSE(expected.empty());
  subtree.fixture.until([&] {
    subtree.watcher->flush();
    std::map<std::string, Lines> received;
    for (const auto& [name, stream] : subtree.fixture.observer.streams)
      if (stream.present) received[name] = stream.events;
    return received == expected;
  });
  REQUIRE(subtree.watcher->sent > 0);
  REQUIRE(subtree.watcher->coalesced > 3 * subtree.watcher->sent);
}
