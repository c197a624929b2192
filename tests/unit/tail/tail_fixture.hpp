// A Tail on a temporary directory with an observer that records what it receives. The test runs the loop.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agents/claude_code/reader.hpp"
#include "core/event_json.hpp"
#include "tail/tail.hpp"
#include "unit/support/raw_files.hpp"
#include "watch/watchers.hpp"

namespace earshot::test {

using namespace std::chrono_literals;

constexpr std::uint64_t key = 42;

inline std::string prompt(int n, std::string_view session = "s") {
  return R"({"type":"user","uuid":"u)" + std::to_string(n) + R"(","sessionId":")" + std::string(session) +
         R"(","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","version":"2.1.330","message":{"role":"user","content":"prompt )" +
         std::to_string(n) + "\"}}\n";
}

inline std::string prompts(int from, int to) {
  std::string text;
  for (int n = from; n < to; ++n) text += prompt(n);
  return text;
}

inline std::string contents(const std::string& path) { return read_text(path); }

using Lines = std::vector<std::string>;

class EventLines final : public EventSink {
 public:
  explicit EventLines(Lines& into) : into_(into) {}
  void on_event(const Event& event) override { append_event(into_.emplace_back(), event, {}); }

 private:
  Lines& into_;
};

/// Bytes in a single fold: the events of all, their number when `known` bytes were read, and the end.
struct Fold {
  explicit Fold(std::string bytes, const std::string& own_agent = {}, std::size_t known = 0) {
    EventLines written(events);
    Workspace workspace;
    Transcript transcript({.hash_key = key, .own_agent = own_agent, .format = &claude_code::format()});
    const std::size_t size = bytes.size();
    bytes.resize(size + feed_padding);
    transcript.feed(std::span(bytes).first(known), workspace, written);
    events_known = events.size();
    transcript.feed(std::span(bytes).subspan(known, size - known), workspace, written);
    end = transcript.end();
  }
  Lines events;
  std::size_t events_known = 0;
  Cursor end;
};

inline Lines fold_of(std::string bytes, const std::string& own_agent = {}) {
  return Fold(std::move(bytes), own_agent).events;
}

struct RecordingObserver final : tail::StreamObserver {
  struct Received {
    Lines events;  // since it was added or reset
    std::vector<std::string> resets;
    std::string session;
    SubagentMeta meta;
    bool present = false;
    int added = 0;
  };
  std::map<std::string, Received> streams;
  std::vector<std::string> compacting, renamed;
  std::vector<std::string> order;      // the stream of each event
  std::function<void()> when_flushed;  // called once
  int batches = 0, events = 0;

  void on_added(const tail::Stream& stream) override {
    Received& received = streams[stream.name()];
    CHECK_FALSE(received.present);
    CHECK(stream.transcript() != nullptr);
    received.events.clear();
    received.present = true;
    ++received.added;
    note(received, stream);
  }
  void on_event(const tail::Stream& stream, const Event& event) override {
    Received& received = streams[stream.name()];
    CHECK(received.present);
    ++events;
    order.push_back(stream.name());
    append_event(received.events.emplace_back(), event, {});
  }
  void on_changed(const tail::Stream& stream) override { note(streams[stream.name()], stream); }
  void on_reset(const tail::Stream& stream, std::string_view reason) override {
    Received& received = streams[stream.name()];
    received.events.clear();
    received.resets.emplace_back(reason);
  }
  void on_renamed(const tail::Stream& stream, std::string_view from) override {
    renamed.push_back(std::string(from) + " → " + stream.name());
    if (stream.transcript()) CHECK(streams[std::string(from)].present);
    streams[stream.name()] = std::exchange(streams[std::string(from)], {});
  }
  void on_removed(const tail::Stream& stream) override {
    Received& received = streams[stream.name()];
    if (stream.transcript()) CHECK(received.present);  // otherwise it was cold
    received.present = false;
  }
  void on_compacting(std::string_view session) override { compacting.emplace_back(session); }
  void on_flush() override {
    if (when_flushed) std::exchange(when_flushed, nullptr)();
  }
  void on_batch_end() override { ++batches; }

  static void note(Received& received, const tail::Stream& stream) {
    received.session = stream.session();
    received.meta = stream.meta();
  }
  bool has(const std::string& name) const {
    const auto at = streams.find(name);
    return at != streams.end() && at->second.present;
  }
};

class TailFixture {
 public:
  explicit TailFixture(const std::string& root, watch::Mode mode = watch::Mode::both)
      : TailFixture(options(root)) {
    all_ = std::make_unique<watch::Watchers>(io, disk_.get_executor(), mode,
                                             watch::SweepIntervals{2ms, 60'000ms, 5ms, 5ms});
    make(all_->mux());
  }
  TailFixture(tail::Options options, watch::WatchMux& mux) : TailFixture(std::move(options)) { make(mux); }
  TailFixture(tail::Options options, watch::Mode mode) : TailFixture(std::move(options)) {
    all_ = std::make_unique<watch::Watchers>(io, disk_.get_executor(), mode,
                                             watch::SweepIntervals{2ms, 60'000ms, 5ms, 5ms});
    make(all_->mux());
  }
  ~TailFixture() {
    tail->stop();
    disk_.join();
  }

  static tail::Options options(const std::string& root) {
    tail::Options options;
    options.roots = {{"r", root}};
    options.hash_key = key;
    options.retry_first = options.retry_last = 5ms;
    options.linger = 50ms;
    return options;
  }

  void start() {
    bool ready = false;
    tail->start([&] { ready = true; });
    until([&] { return ready; });
  }

  template <class Condition>
  void until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) FAIL("timed out; " + state());
      io.restart();
      io.run_one_for(10ms);
    }
  }
  std::string state() const {
    const auto now = tail->counters();
    std::string text = std::to_string(now.directories) + " directories, " + std::to_string(now.known_files) +
                       " files, " + std::to_string(now.streams) + " streams, " + std::to_string(now.checks) +
                       " checks\n";
    for (const auto& each : tail->problems()) text += each.path + ": " + each.reason + '\n';
    for (const auto& [name, received] : observer.streams)
      text += name + (received.present ? " is present, " : " is removed, ") +
              std::to_string(received.events.size()) + " events\n";
    return text;
  }
  /// Runs the loop until all hints so far were handled.
  void idle() {
    for (int quiet = 0; quiet < 3;) {
      const auto before = std::pair(observer.batches, tail->counters().checks);
      bool done = false;
      boost::asio::post(disk_, [&] { boost::asio::post(io, [&] { done = true; }); });
      until([&] { return done; });
      while (io.poll_one() > 0) {
      }
      quiet = before == std::pair(observer.batches, tail->counters().checks) ? quiet + 1 : 0;
    }
  }
  /// Waits until the present content of the file was read.
  void read(const std::string& name) {
    until([&] {
      const auto* stream = tail->find(name);
      return stream && stream->transcript() &&
             stream->transcript()->bytes_read() == contents(stream->path()).size();
    });
  }
  /// Waits until the observer has the events of a fold of the file, without those of its `known` bytes.
  void same(const std::string& name, const std::string& path, std::size_t known = 0) {
    const std::string bytes = contents(path);
    const Fold all(bytes, {}, known);
    const Lines events(all.events.begin() + static_cast<std::ptrdiff_t>(all.events_known), all.events.end());
    until([&] {
      const auto* stream = observer.has(name) ? tail->find(name) : nullptr;
      return stream && stream->transcript()->bytes_read() == bytes.size() &&
             observer.streams[name].events == events;
    });
  }

  boost::asio::io_context io;
  RecordingObserver observer;
  std::unique_ptr<tail::Tail> tail;

 private:
  explicit TailFixture(tail::Options options) : options_(std::move(options)) {}
  void make(watch::WatchMux& mux) {
    tail = std::make_unique<tail::Tail>(io, disk_.get_executor(), mux, options_, observer);
  }

  tail::Options options_;
  boost::asio::thread_pool disk_{1};
  std::unique_ptr<watch::Watchers> all_;
};

}  // namespace earshot::test
