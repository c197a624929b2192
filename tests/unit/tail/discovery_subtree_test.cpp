// A watcher like that of macOS: the changes of an interval become one late hint, "check below this
// directory", which covers more than what changed.
#include <catch2/catch.hpp>
#include <random>

#include "tail_fixture.hpp"
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

/// Merges inotify hints: sends one after `rings_max` of them, or on request.
class Coalescing final : public watch::Watcher {
 public:
  static constexpr int rings_max = 20;

  Coalescing(boost::asio::io_context& io, watch::WatchMux& mux)
      : mux_(mux), ears_(io, [this](const ChangeHint& hint) { hear(ring); }) {
    mux.add_backend(*this);
  }
  void watch(const std::string& directory) override { ears_.watch(directory); }
  void unwatch(const std::string& directory) override { ears_.unwatch(directory); }

  bool flush() {
    if (heard_ == 0) return false;
    heard_ = 0;
    ++received;
    mux_.notify({ChangeHint::Where::directory, std::exchange(below_, {})});
    return true;
  }
  int received = 0, coalesced = 0;

 private:
  void hear(const ChangeHint& hint) {
    REQUIRE(ring.where != ChangeHint::Where::everything);
    // Files are never named, only directories.
    const std::string at =
        ring.where == ChangeHint::Where::path ? fs::path(ring.path).parent_path().string() : ring.path;
    below_ = below_.empty() ? at : common(below_, at);
    ++coalesced;
    if (++heard_ >= rings_max) flush();
  }

  watch::WatchMux& mux_;
  watch::Inotify ears_;
  std::string below_;
  int heard_ = 0;
};

struct Mac {
  Mac() : fixture((fs::create_directories(root / "projects"), TailFixture::options(root.path())), mux) {
    watcher = std::make_unique<Coalescing>(fixture.io, mux);
    fixture.start();
  }
  ~Mac() { fixture.tail->stop(); }

  /// Delivers hints until there are no more.
  void settle() {
    do fixture.idle();
    while (watcher->flush());
  }

  Scratch root;
  watch::WatchMux mux;
  TailFixture fixture;
  std::unique_ptr<Coalescing> watcher;
};

}  // namespace

TEST_CASE(
    "fault 60: received only to look below a directory again, the same streams end up with the same events") {
  const unsigned seed = GENERATE(1u, 2u, 3u, 4u);
  CAPTURE(seed);
  std::mt19937 dice(seed);
  Mac mac;
  int n = 0;
  const auto place = [&] {
    static constexpr const char* folders[] = {"a", "b", "a/s/subagents", "c/s/subagents/workflows/w"};
    return mac.root / (std::string("projects/") + folders[dice() % std::size(folders)]);
  };
  for (int step = 0; step < 300; ++step) {
    const std::string folder = place();
    const std::string file = folder + "/t" + std::to_string(dice() % 3) + ".jsonl";
    switch (dice() % 12) {
      case 0:
        fs::remove(file);
        break;
      case 1:
        fs::remove_all(folder);
        break;
      case 2:
        if (fs::exists(folder) && !fs::exists(mac.root / "projects/moved"))
          fs::rename(folder, mac.root / "projects/moved");
        break;
      case 3:
        if (fs::exists(file)) fs::resize_file(file, fs::file_size(file) / 2);
        break;
      case 4:
        mac.settle();
        break;
      default:
        fs::create_directories(folder);
        append(file, prompts(n, n + 3));
        n += 3;
    }
    if (step % 7 == 0) {
      mac.fixture.io.restart();
      mac.fixture.io.poll();
    }
  }
  std::map<std::string, Lines> expected;
  for (const auto& each : fs::recursive_directory_iterator(mac.root / "projects")) {
    if (!each.is_regular_file()) continue;
    const std::string name = fs::relative(each.path(), mac.root / "projects").replace_extension().string();
    expected["r/" + name] = fold_of(contents(each.path()));
  }
  REQUIRE_FALSE(expected.empty());
  mac.fixture.until([&] {
    mac.watcher->flush();
    std::map<std::string, Lines> received;
    for (const auto& [name, stream] : mac.fixture.observer.streams)
      if (stream.present) told[name] = stream.events;
    return received == expected;
  });
  REQUIRE(mac.watcher->received > 0);
  REQUIRE(mac.watcher->coalesced > 3 * mac.watcher->received);
}
