// The status and the todo list of every session, from the registry, the transcripts and the clock.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "status/process_registry.hpp"
#include "status/status.hpp"
#include "watch/watchers.hpp"

namespace earshot::status {

/// Receives changes on the loop's thread, possibly from within a call of the tracker.
class StatusObserver {
 public:
  virtual ~StatusObserver() = default;
  virtual void on_status(const std::string& session, const Status& status) = 0;
  virtual void on_todos(const std::string& session) = 0;  // call todos_of()
};

struct StatusTrackerOptions {
  std::string proc_dir = "/proc";
  std::string machine_id_path = "/etc/machine-id";
  std::chrono::milliseconds poll{1000};  // interval for processes whose exit the kernel does not report
  std::chrono::milliseconds retry{5};    // before an incomplete file is read again; doubles each time
  std::chrono::milliseconds quiet_max = status::quiet_max;
  /// How long the first status of a session waits for an examination of its processes.
  std::chrono::milliseconds examination_max{2000};
  /// How long no process may run a session without a registry entry before it has ended.
  std::chrono::milliseconds process_patience{10'000};
};

/// All calls and callbacks happen on the thread that runs `io`. `disk` runs what may block; join it before
/// `io` is destroyed. The mux or watcher and the observer outlive the tracker.
class StatusTracker {
 public:
  /// Adds itself to the mux as a client.
  StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                std::vector<Root> roots, watch::WatchMux& mux, StatusObserver& observer,
                const StatusTrackerOptions& options = {});
  /// The caller forwards the hints of `watcher` to on_change().
  StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                std::vector<Root> roots, watch::Watcher& watcher, StatusObserver& observer,
                const StatusTrackerOptions& options = {});
  ~StatusTracker();
  StatusTracker(const StatusTracker&) = delete;
  StatusTracker& operator=(const StatusTracker&) = delete;

  void start();
  void stop();  // no callback after this
  /// Calls back once, from the event loop, when the processes of all sessions that are known by now were
  /// examined, or after examination_max.
  void when_examined(std::function<void()> on_examined);

  void on_change(const watch::ChangeHint& hint);  // cheap for paths that do not concern it
  void on_change(const std::string& path);
  void rescan();

  void transcript_changed(const std::string& session, const TranscriptSummary& summary);
  /// A compaction began: `working` with reason `compaction` until a transcript grows.
  void compaction_started(const std::string& session);
  /// The session has no transcript any more.
  void remove_session(const std::string& session);

  /// State `unknown` without a source if the session is unknown.
  Status status_of(const std::string& session) const;
  /// True if one of its processes is alive.
  bool is_alive(const std::string& session) const;
  /// The live process that runs the session; absent: none, or several may. Its pid is checked now.
  struct Process {
    const AgentProgram* program = nullptr;
    std::int64_t pid = 0;
    std::string source;  // registry, process
  };
  std::optional<Process> process_of(const std::string& session) const;
  std::vector<std::string> alive_sessions() const;  // with and without transcripts
  /// Null: no todo list. Valid until the next call of this object.
  const TodoList* todos_of(const std::string& session) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace earshot::status
