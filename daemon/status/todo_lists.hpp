// The todo lists of tracked sessions, read on the disk thread and kept current by change hints. Lists of
// other sessions cost nothing: no directory is listed to find them.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "status/process_registry.hpp"
#include "status/status.hpp"
#include "watch/watcher.hpp"

namespace earshot::status {

constexpr std::size_t todo_names_max = 8192;  // entries of a todo directory that are examined

/// What a root's todo files contain for one session.
struct TodoRead {
  std::optional<TodoList> list;                     // of the newest source; absent: no source exists
  bool is_incomplete = false;                       // a file was read while it was written: read again soon
  std::map<std::string, std::int64_t> directories;  // existing source directories → modification time
};

/// Reads all sources of the session. May block.
TodoRead read_todo_list(const Root& root, const std::string& session);

class TodoLists {
 public:
  using OnChange = std::function<void(const std::string& session)>;

  static constexpr std::size_t batch_max = 64;  // sessions per task on the disk thread
  static constexpr int retries_max = 7;         // of an incomplete file; then the readable part is used

  TodoLists(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::vector<Root> roots,
            watch::Watcher& watcher, std::chrono::milliseconds retry, OnChange on_change);

  /// Keeps the session's list current from now on. Idempotent.
  void track(const std::string& session);
  void untrack(const std::string& session);
  /// Watches the root's todo directories; reads everything again if they are different directories now.
  void watch_root(const Root& root);
  /// `path`: below the root and in one of its todo directories, or such a directory itself.
  void on_change(const Root& root, const std::string& path);
  void rescan();
  void stop();

  /// Null: the session has no list.
  const TodoList* of(const std::string& session) const;

 private:
  struct Tracked {
    std::unique_ptr<TodoList> list;  // null: none
    int incomplete_reads = 0;        // in a row
  };
  struct Result {
    std::string session;
    std::vector<TodoRead> by_root;
  };

  void mark_dirty(const std::string& session);
  void read_dirty();
  void apply(Result result);
  void retry_later();

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  const std::vector<Root> roots_;
  watch::Watcher& watcher_;
  std::chrono::milliseconds retry_;
  OnChange on_change_;
  std::unordered_map<std::string, Tracked> tracked_;
  std::set<std::string> dirty_, incomplete_;          // sessions
  std::set<std::string> watched_;                     // source directories
  std::map<std::string, DirectoryId> directory_ids_;  // of the roots' todo directories
  bool reading_ = false, retry_scheduled_ = false;
  Timer retry_timer_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // results from the disk hold it weakly
};

}  // namespace earshot::status
