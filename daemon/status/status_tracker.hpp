// What every session is doing now: from the registry, the transcripts and the clock. And its todos.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agents/claude_code/todo_files.hpp"
#include "status/derive_status.hpp"
#include "status/status.hpp"
#include "watch/watch_mux.hpp"
#include "watch/watcher.hpp"

namespace earshot::status {

/// Hears of changes only, on the loop's thread; may be called from within transcript_changed().
class StatusObserver {
 public:
  virtual ~StatusObserver() = default;
  virtual void on_status(const std::string& session, const Status& status) = 0;
  virtual void on_todos(const std::string& session) = 0;  // ask todos_of()
};

struct StatusTrackerOptions {
  std::string proc_dir = "/proc";
  std::string machine_id_path = "/etc/machine-id";
  std::chrono::milliseconds beat{1000};  // how often processes are asked for that the kernel does not report
  std::chrono::milliseconds retry{5};    // first wait before a torn file is read again; doubles
  std::chrono::milliseconds quiet_max = status::quiet_max;  // see decide.hpp
};

/// All calls, and all callbacks, on the thread that runs `io`. `disk` runs what may block; join it before
/// `io` is destroyed. `watcher` (or `mux`) and `listener` outlive the board.
class StatusTracker {
 public:
  /// Takes a line of the mux of its own: nobody needs to ring it.
  StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                std::vector<std::string> root_paths, watch::WatchMux& mux, StatusObserver& listener,
                const StatusTrackerOptions& options = {});
  /// Somebody calls ring() for what `watcher` rings.
  StatusTracker(boost::asio::io_context& io, const boost::asio::any_io_executor& disk,
                std::vector<std::string> root_paths, watch::Watcher& watcher, StatusObserver& listener,
                const StatusTrackerOptions& options = {});
  ~StatusTracker();
  StatusTracker(const StatusTracker&) = delete;
  StatusTracker& operator=(const StatusTracker&) = delete;

  void start();
  void stop();  // no callback after this

  void on_change(const watch::ChangeHint& ring);  // a doorbell; paths of other rooms cost a comparison
  void on_change(const std::string& path);
  void rescan();  // look at all of it again

  void transcript_changed(const std::string& session, const TranscriptSummary& said);
  /// An internal compaction call began: `working` with reason `compaction` until a transcript grows.
  void compaction_started(const std::string& session);
  /// No transcript of it is left.
  void remove_session(const std::string& session);

  /// State `unknown` without a source: never heard of it.
  Status status_of(const std::string& session) const;
  /// A process of it is known to live.
  bool is_alive(const std::string& session) const;
  std::vector<std::string> alive_sessions() const;  // also those without a transcript
  /// Null: no todo or task file. Gone with the next call of this object.
  const TodoList* todos_of(const std::string& session) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace earshot::status
