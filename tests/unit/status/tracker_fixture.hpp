// A status tracker on a temporary root. The test runs the loop; the observer records what is published.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "status/process_table.hpp"
#include "status/status_tracker.hpp"
#include "unit/status/child.hpp"
#include "unit/support/temporary_directory.hpp"
#include "watch/inotify.hpp"
#include "watch/watchers.hpp"

namespace earshot::status {

using test::TemporaryDirectory;

struct RecordingObserver final : StatusObserver {
  std::vector<std::pair<std::string, Status>> statuses;
  std::vector<std::string> todos;
  void on_status(const std::string& session, const Status& status) override {
    statuses.emplace_back(session, status);
  }
  void on_todos(const std::string& session) override { todos.push_back(session); }

  /// `working`, `waiting/permission`, …, in the order published.
  std::vector<std::string> states_of(const std::string& session) const {
    std::vector<std::string> states;
    for (const auto& [name, status] : statuses) {
      if (name == session)
        states.push_back(status.reason.empty() ? status.state : status.state + "/" + status.reason);
    }
    return states;
  }
};

/// Records which directories are watched; the test sends the hints.
struct SilentWatcher final : watch::Watcher {
  std::vector<std::string> watched;
  void watch(const std::string& directory) override { watched.push_back(directory); }
  void unwatch(const std::string&) override {}
};

struct Loop {
  boost::asio::io_context io;
  boost::asio::thread_pool disk{1};  // after io: its tasks end before io is destroyed

  bool until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  /// Runs until no timer and no disk task is left; only for a tracker without inotify.
  void drain() {
    io.restart();
    io.run();
  }
};

/// The test sends the hints.
struct ManualFixture : Loop {
  TemporaryDirectory root;
  SilentWatcher watcher;
  RecordingObserver observer;
  std::unique_ptr<StatusTracker> tracker;
  explicit ManualFixture(StatusTrackerOptions options = {}) { make(options); }
  void make(StatusTrackerOptions options) {
    tracker = std::make_unique<StatusTracker>(io, disk.get_executor(), std::vector<Root>{{"r", root.path()}},
                                              watcher, observer, options);
  }
  ~ManualFixture() {
    tracker.reset();
    disk.join();
  }
  void start() {
    tracker->start();
    bool is_examined = false;
    tracker->when_examined([&] { is_examined = true; });
    REQUIRE(until([&] { return is_examined; }));
    read();
  }
  void start_until(const std::string& session, const std::string& expected) {
    tracker->start();
    tracker->when_examined([] {});
    REQUIRE(until([&] { return state(session) == expected; }));
  }
  /// A hint, and what follows from it.
  void change(const std::string& name) {
    tracker->on_change(root / name);
    read();
  }
  /// Waits for the disk tasks so far and what follows from them.
  void read() {
    for (int task = 0; task < 2; ++task) {
      bool done = false;
      boost::asio::post(disk, [&] { boost::asio::post(io, [&] { done = true; }); });
      REQUIRE(until([&] { return done; }));
    }
  }
  std::string state(const std::string& session) const { return tracker->status_of(session).state; }
};

/// With real notifications.
struct TrackerFixture : Loop {
  TemporaryDirectory scratch;
  std::string root;
  watch::WatchMux mux;
  watch::Inotify inotify{io, [this](const watch::ChangeHint& hint) { mux.notify(hint); }};
  RecordingObserver observer;
  std::unique_ptr<StatusTracker> tracker;
  explicit TrackerFixture(const std::string& below = "root", StatusTrackerOptions options = {})
      : root(scratch / below) {
    mux.add_backend(inotify);
    tracker = std::make_unique<StatusTracker>(io, disk.get_executor(), std::vector<Root>{{"r", root}}, mux,
                                              observer, options);
  }
  ~TrackerFixture() {
    tracker.reset();
    disk.join();
  }
  std::string state(const std::string& session) const { return tracker->status_of(session).state; }
};

/// The content of a registry file of this process.
inline std::string registry_of(pid_t pid, const std::string& session, const std::string& status = {},
                               const std::string& waiting_for = {}, std::int64_t at = 1'700'000'000'000) {
  static const ProcessTable processes;
  std::string text = R"({"pid":)" + std::to_string(pid);
  text += R"(,"sessionId":")" + session + R"(","cwd":"/home/x","procStart":")";
  text += processes.start_of(pid) + R"(","pidDomain":")" + processes.pid_domain() + "\"";
  if (!status.empty()) text += R"(,"status":")" + status + R"(","statusUpdatedAt":)" + std::to_string(at);
  if (!waiting_for.empty()) text += R"(,"waitingFor":")" + waiting_for + "\"";
  return text + "}";
}

inline std::string registry_name(pid_t pid) { return "sessions/" + std::to_string(pid) + ".json"; }

inline TranscriptSummary working_turn(std::vector<OpenCall> calls = {}) {
  TranscriptSummary summary;
  summary.known = summary.turn_open = true;
  summary.turn_started = summary.last_activity = "2023-11-14T22:10:00.000Z";
  summary.last_growth_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  summary.calls = std::move(calls);
  return summary;
}

/// A summary that no timer follows from.
inline TranscriptSummary finished_turn() {
  TranscriptSummary summary = working_turn();
  summary.turn_open = false;
  return summary;
}

}  // namespace earshot::status
