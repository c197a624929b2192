// A tail on the simulated machine, where a test chooses which call fails and which changes have the same
// time.
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "machine.hpp"
#include "tail/tail.hpp"
#include "unreliable_watcher.hpp"
#include "watch/watchers.hpp"

using namespace earshot;
using namespace std::chrono_literals;

namespace {

const std::string directory = "/home/u/.claude/projects/p/";

std::string prompt(int n) {
  return R"({"type":"user","uuid":"u)" + std::to_string(n) +
         R"(","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"prompt )" +
         std::to_string(n) + "\"}}\n";
}

struct Observer final : tail::StreamObserver {
  struct Seen {
    int added = 0, turns = 0;
    std::vector<std::string> resets;
  };
  void on_added(const tail::Stream& stream) override { ++streams[stream.name()].added; }
  void on_event(const tail::Stream& stream, const Event& event) override {
    if (type_name(event.body) == "turn.started") ++streams[stream.name()].turns;
  }
  void on_changed(const tail::Stream&) override {}
  void on_reset(const tail::Stream& stream, std::string_view reason) override {
    streams[stream.name()].resets.emplace_back(reason);
  }
  void on_renamed(const tail::Stream& stream, std::string_view from) override {
    if (auto moved = streams.extract(std::string(from))) {
      moved.key() = stream.name();
      streams.insert(std::move(moved));
    }
  }
  void on_removed(const tail::Stream& stream) override { streams.erase(stream.name()); }
  void on_compacting(std::string_view) override {}
  void on_batch_end() override {}

  std::map<std::string, Seen> streams;
};

/// The sweep is absent: what the tests change has one notification, which is delivered by run().
class Fixture {
 public:
  ~Fixture() {
    tail.stop();
    turn();
  }
  void start() {
    tail.start([this] { ready = true; });
    turn();
    REQUIRE(ready);
  }
  /// Delivers all notifications and does what is due now.
  void turn() {
    for (bool busy = true; busy;) {
      busy = watcher.deliver(true);
      io.restart();
      disk.restart();
      busy |= io.poll() + disk.poll() > 0;
    }
  }
  void run(std::chrono::milliseconds time) {
    for (const auto until = machine.now + time; machine.now < until; machine.wait(100ms)) turn();
    turn();
  }
  sim::NodePtr write(const std::string& name, const std::string& text) {
    const std::string path = directory + name + ".jsonl";
    const sim::NodePtr there = machine.find(path);
    const sim::NodePtr file = there ? there : machine.create(path);
    machine.append(file, text);
    return file;
  }

  sim::Machine machine{1};
  boost::asio::io_context io{1}, disk{1};
  watch::WatchMux mux;
  sim::UnreliableWatcher watcher{machine, {}, [this](const watch::ChangeHint& hint) { mux.notify(hint); }};
  Observer observer;
  tail::Tail tail{io, disk.get_executor(), connected(), options(), observer};
  bool ready = false;

 private:
  watch::WatchMux& connected() {
    mux.add_backend(watcher);
    return mux;
  }
  static tail::Options options() {
    tail::Options options;
    options.roots = {{"r", "/home/u/.claude"}};
    options.hash_key = 42;
    return options;
  }
};

}  // namespace

TEST_CASE("a change of a cold transcript that cannot be examined is delivered later") {
  Fixture fixture;
  fixture.write("s", prompt(0));
  fixture.machine.wait(25h);
  fixture.start();
  REQUIRE(fixture.observer.streams.empty());
  fixture.write("s", prompt(1));
  fixture.machine.faults.stat_error = 100;
  fixture.turn();
  REQUIRE(fixture.tail.problems().size() == 1);
  fixture.machine.faults = {};
  fixture.run(10s);
  REQUIRE(fixture.observer.streams["r/p/s"].turns == 1);
  REQUIRE(fixture.tail.problems().empty());
}

TEST_CASE("an unchanged cold transcript that cannot be examined stays cold") {
  Fixture fixture;
  const sim::NodePtr file = fixture.write("s", prompt(0));
  fixture.machine.wait(25h);
  fixture.start();
  fixture.machine.deny(file, false);  // a notification, and nothing new
  fixture.machine.faults.stat_error = 100;
  fixture.turn();
  REQUIRE(fixture.tail.problems().size() == 1);
  fixture.machine.faults = {};
  fixture.run(10s);
  REQUIRE(fixture.observer.streams.empty());
  REQUIRE(fixture.tail.problems().empty());
}

TEST_CASE("a transcript that cannot be read, and then not be examined, is tried again") {
  Fixture fixture;
  fixture.write("s", prompt(0));
  fixture.machine.wait(25h);
  fixture.start();
  fixture.write("s", prompt(1));
  fixture.machine.faults.open_error = 100;
  fixture.turn();
  REQUIRE(fixture.tail.problems().size() == 1);
  fixture.machine.faults = {};
  fixture.machine.faults.stat_error = 100;
  fixture.run(20s);
  REQUIRE(fixture.tail.problems().size() == 1);
  fixture.machine.faults = {};
  fixture.run(60s);
  REQUIRE(fixture.observer.streams["r/p/s"].turns == 1);
  REQUIRE(fixture.tail.problems().empty());
}

TEST_CASE("a new transcript that cannot be examined is found later") {
  Fixture fixture;
  fixture.machine.make_directories(directory.substr(0, directory.size() - 1));
  fixture.start();
  fixture.write("s", prompt(0));
  fixture.machine.faults.stat_error = 100;
  fixture.turn();
  REQUIRE(fixture.tail.problems().size() == 1);
  fixture.machine.faults = {};
  fixture.run(10s);
  REQUIRE(fixture.observer.streams["r/p/s"].turns == 1);
  REQUIRE(fixture.tail.problems().empty());
}

TEST_CASE("transcripts written just before the start are compared after it, one after another") {
  constexpr std::uint64_t files = 20;
  Fixture fixture;
  sim::NodePtr rewritten;
  for (std::uint64_t n = 0; n < files; ++n) rewritten = fixture.write("s" + std::to_string(n), prompt(0));
  fixture.start();
  REQUIRE(fixture.tail.counters().verifications == 0);
  REQUIRE(fixture.observer.streams.size() == files);
  // In the tick of the last change that the fold saw: no time shows it.
  rewritten->bytes.replace(rewritten->bytes.find("prompt 0"), 6, "PROMPT");
  fixture.run(10s);
  REQUIRE(fixture.tail.counters().verifications == files);
  for (const auto& [name, seen] : fixture.observer.streams) {
    const bool is_rewritten = name == "r/p/s" + std::to_string(files - 1);
    CAPTURE(name);
    REQUIRE(seen.resets ==
            (is_rewritten ? std::vector<std::string>{"rewritten"} : std::vector<std::string>{}));
    REQUIRE(seen.turns == (is_rewritten ? 1 : 0));
  }
}

TEST_CASE("a transcript written long before the start is not compared") {
  Fixture fixture;
  fixture.write("s", prompt(0));
  fixture.machine.wait(3s);
  fixture.start();
  fixture.run(10s);
  REQUIRE(fixture.observer.streams["r/p/s"].added == 1);
  REQUIRE(fixture.tail.counters().verifications == 0);
}
