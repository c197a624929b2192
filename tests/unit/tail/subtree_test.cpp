// A watcher as macOS has it: what happened in a while is one word, "look below here again", late and about
// more than was touched.
#include <catch2/catch.hpp>
#include <random>

#include "rig.hpp"
#include "watch/inotify.hpp"

namespace fs = std::filesystem;
using namespace earshot;
using namespace earshot::test;
using watch::ChangeHint;

namespace {

/// The deepest directory that both lie in, or are.
std::string common(const std::string& one, const std::string& other) {
  std::string both = one;
  while (!watch::at_or_below(other, both)) both = fs::path(both).parent_path();
  return both;
}

/// Hears by inotify, and tells only once in `rings_max` rings, or when it is asked to.
class Coalescing final : public watch::Watcher {
 public:
  static constexpr int rings_max = 20;

  Coalescing(boost::asio::io_context& io, watch::WatchMux& board)
      : board_(board), ears_(io, [this](const ChangeHint& ring) { hear(ring); }) {
    board.add(*this);
  }
  void watch(const std::string& directory) override { ears_.watch(directory); }
  void unwatch(const std::string& directory) override { ears_.unwatch(directory); }

  bool flush() {
    if (heard_ == 0) return false;
    heard_ = 0;
    ++told;
    board_.notify({ChangeHint::Where::directory, std::exchange(below_, {})});
    return true;
  }
  int told = 0, coalesced = 0;

 private:
  void hear(const ChangeHint& ring) {
    REQUIRE(ring.where != ChangeHint::Where::everything);
    // A file is never named: its directory is.
    const std::string at =
        ring.where == ChangeHint::Where::path ? fs::path(ring.path).parent_path().string() : ring.path;
    below_ = below_.empty() ? at : common(below_, at);
    ++coalesced;
    if (++heard_ >= rings_max) flush();
  }

  watch::WatchMux& board_;
  watch::Inotify ears_;
  std::string below_;
  int heard_ = 0;
};

struct Mac {
  Mac() : rig((fs::create_directories(root / "projects"), Rig::options(root.path())), board) {
    watcher = std::make_unique<Coalescing>(rig.io, board);
    rig.start();
  }
  ~Mac() { rig.tail->stop(); }

  /// Whatever has been heard is told, until nothing more is heard of.
  void settle() {
    do rig.idle();
    while (watcher->flush());
  }

  Scratch root;
  watch::WatchMux board;
  Rig rig;
  std::unique_ptr<Coalescing> watcher;
};

}  // namespace

TEST_CASE(
    "fault 60: told only to look below a directory again, the same streams end up with the same events") {
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
      mac.rig.io.restart();
      mac.rig.io.poll();
    }
  }
  std::map<std::string, Lines> expected;
  for (const auto& each : fs::recursive_directory_iterator(mac.root / "projects")) {
    if (!each.is_regular_file()) continue;
    const std::string name = fs::relative(each.path(), mac.root / "projects").replace_extension().string();
    expected["r/" + name] = fold_of(contents(each.path()));
  }
  REQUIRE_FALSE(expected.empty());
  mac.rig.until([&] {
    mac.watcher->flush();
    std::map<std::string, Lines> told;
    for (const auto& [name, stream] : mac.rig.heard.streams)
      if (stream.present) told[name] = stream.events;
    return told == expected;
  });
  REQUIRE(mac.watcher->told > 0);
  REQUIRE(mac.watcher->coalesced > 3 * mac.watcher->told);
}
