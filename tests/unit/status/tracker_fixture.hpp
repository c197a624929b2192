// A board over a temporary root, its loop run by hand; what it told is kept.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "status/status_tracker.hpp"
#include "unit/status/child.hpp"
#include "unit/status/scratch.hpp"
#include "watch/inotify.hpp"
#include "watch/watch_mux.hpp"

namespace earshot::status {

struct Heard final : StatusObserver {
  std::vector<std::pair<std::string, Status>> statuses;
  std::vector<std::string> todos;
  void on_status(const std::string& session, const Status& status) override {
    statuses.emplace_back(session, status);
  }
  void on_todos(const std::string& session) override { todos.push_back(session); }

  /// `working`, `waiting/permission`, …, in the order told.
  std::vector<std::string> states_of(const std::string& session) const {
    std::vector<std::string> states;
    for (const auto& [name, status] : statuses) {
      if (name == session)
        states.push_back(status.reason.empty() ? status.state : status.state + "/" + status.reason);
    }
    return states;
  }
};

/// A watcher that only takes down what it was asked for: the test rings by hand.
struct SilentWatcher final : watch::Watcher {
  std::vector<std::string> watched;
  void watch(const std::string& directory) override { watched.push_back(directory); }
  void unwatch(const std::string&) override {}
};

struct Loop {
  boost::asio::io_context io;
  boost::asio::thread_pool disk{1};  // after io: its tasks end before io goes

  bool until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io.restart();
      io.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  /// Only for a board without a notification descriptor: until no timer, no disk task and no answer is left.
  void drain() {
    io.restart();
    io.run();
  }
};

/// Rung by hand.
struct QuietHouse : Loop {
  Scratch root;
  SilentWatcher watcher;
  Heard heard;
  std::unique_ptr<StatusTracker> board;
  explicit QuietHouse(StatusTrackerOptions options = {}) {
    board = std::make_unique<StatusTracker>(io, disk.get_executor(), std::vector{root.path()}, watcher, heard,
                                            options);
  }
  ~QuietHouse() {
    board.reset();
    disk.join();
  }
  void start() {
    board->start();
    drain();
  }
  std::string state(const std::string& session) const { return board->status_of(session).state; }
};

/// With real notifications.
struct House : Loop {
  Scratch scratch;
  std::string root;
  watch::WatchMux mux;
  watch::Inotify inotify{io, [this](const watch::ChangeHint& ring) { mux.notify(ring); }};
  Heard heard;
  std::unique_ptr<StatusTracker> board;
  explicit House(const std::string& below = "root", StatusTrackerOptions options = {})
      : root(scratch.at(below)) {
    mux.add(inotify);
    board = std::make_unique<StatusTracker>(io, disk.get_executor(), std::vector{root}, mux, heard, options);
  }
  ~House() {
    board.reset();
    disk.join();
  }
  std::string state(const std::string& session) const { return board->status_of(session).state; }
};

/// A registry file's text, for a process as it is now.
inline std::string registry_of(pid_t pid, const std::string& session, const std::string& status = {},
                               const std::string& waiting_for = {}, std::int64_t at = 1'700'000'000'000) {
  static const Processes processes;
  std::string text = R"({"pid":)" + std::to_string(pid);
  text += R"(,"sessionId":")" + session + R"(","cwd":"/home/x","procStart":")";
  text += processes.start_of(pid) + R"(","pidDomain":")" + processes.pid_domain() + "\"";
  if (!status.empty()) text += R"(,"status":")" + status + R"(","statusUpdatedAt":)" + std::to_string(at);
  if (!waiting_for.empty()) text += R"(,"waitingFor":")" + waiting_for + "\"";
  return text + "}";
}

inline std::string registry_name(pid_t pid) { return "sessions/" + std::to_string(pid) + ".json"; }

inline TranscriptSummary working_turn(std::vector<OpenCall> calls = {}) {
  TranscriptSummary said;
  said.known = said.turn_open = true;
  said.turn_started = said.last_activity = "2023-11-14T22:10:00.000Z";
  said.last_growth_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  said.calls = std::move(calls);
  return said;
}

}  // namespace earshot::status
