// The todo and task lists of the sessions that somebody knows, read on the disk's thread, kept fresh by
// rings. Files of other sessions cost nothing: no directory is listed to find them.
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
#include <unordered_map>
#include <vector>

#include "agents/claude_code/todo_files.hpp"
#include "base/clock.hpp"
#include "status/small_file.hpp"
#include "watch/watcher.hpp"

namespace earshot::status {

class TodoLists {
 public:
  using Changed = std::function<void(const std::string& session)>;

  static constexpr std::size_t batch_max =
      64;                                // sessions a visit to the disk's thread: others get their turn
  static constexpr int retries_max = 7;  // of a torn file; then what could be read is taken

  TodoLists(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::vector<std::string> roots,
            watch::Watcher& watcher, std::chrono::milliseconds retry, Changed changed);

  /// From now on its lists are kept. Idempotent.
  void track(const std::string& session);
  void untrack(const std::string& session);
  /// Watches `todos` and `tasks` if they are there, and reads all again if they are others than before.
  void arm(const std::string& root);
  /// `below_root`: `todos…` or `tasks…`.
  void on_change(const std::string& root, const std::string& below_root);
  void rescan();
  void stop();

  const TodoList* of(const std::string& session) const;

 private:
  struct Known {
    std::optional<TodoList> list;
    int torn = 0;  // how often in a row
  };
  struct Answer {
    std::string session;
    std::vector<ListRead> by_root;
  };

  void mark_dirty(const std::string& session);
  void read();
  void apply(Answer answer);
  void retry_later();

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  std::vector<std::string> roots_;
  watch::Watcher& watcher_;
  std::chrono::milliseconds retry_;
  Changed changed_;
  std::unordered_map<std::string, Known> known_;
  std::set<std::string> dirty_, torn_;
  std::set<std::string> watched_;             // task directories
  std::map<std::string, Identity> identity_;  // of the roots' `todos` and `tasks`
  bool reading_ = false, retry_armed_ = false;
  watch::Timer retry_timer_;
  std::shared_ptr<char> here_ = std::make_shared<char>();  // gone: answers from the disk come too late
};

}  // namespace earshot::status
