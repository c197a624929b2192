// The registry files: which process runs which session, and whether it is alive.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agents/roots.hpp"
#include "base/clock.hpp"
#include "base/file.hpp"
#include "status/process_table.hpp"
#include "watch/watcher.hpp"

namespace earshot::status {

struct ProcessRegistryOptions {
  std::chrono::milliseconds poll, retry;
};

/// The registry files of all roots.
class ProcessRegistry {
 public:
  using OnChange = std::function<void(const std::string& session)>;
  using OnScanned = std::function<void(const std::string& root)>;  // each of its files was read

  static constexpr std::size_t entries_max = 4096;  // of all roots; more files are ignored
  static constexpr std::size_t names_max = 65536;   // listed in a directory; others are read when they change
  static constexpr std::size_t exit_watches_max = 256;  // one descriptor each; other processes are polled
  static constexpr int retries_max = 7;  // of an incomplete file, 0.6 s in all; then at its next change

  ProcessRegistry(boost::asio::io_context& io, boost::asio::any_io_executor disk, std::vector<Root> roots,
                  watch::Watcher& watcher, std::shared_ptr<const ProcessTable> processes,
                  ProcessRegistryOptions options, OnChange on_change, OnScanned on_scanned);

  /// Watches the registry directory, lists it and reads each file.
  void scan(const Root& root);
  /// A path below the root's registry directory changed.
  void on_change(const Root& root, std::string_view file_name);
  /// Checks every process again.
  void check_all();
  void stop();

  struct SessionEntry {
    const RegistryEntry* entry = nullptr;  // null: none
    Liveness liveness = Liveness::dead;
    const AgentProgram* program = nullptr;
    /// When the first of the session's live processes began, in ms since 1970; 0: unknown, or none lives.
    std::int64_t run_since_ms = 0;
  };
  /// Of several entries those of live processes apply, then what needs the user most: of waits and work the
  /// oldest, otherwise the one updated last.
  SessionEntry entry_of(const std::string& session) const;
  std::vector<std::string> alive_sessions() const;
  /// True if an entry of a live process has this pid and names a session, or says that there is none yet.
  bool is_registered(std::int64_t pid) const;

 private:
  struct File {
    const AgentProgram* program = nullptr;
    RegistryEntry entry;
    Liveness liveness = Liveness::dead;
    std::int64_t started_ms = 0;  // of the process, by the clock when it was seen first; 0: unknown
    std::unique_ptr<ExitWatch> exit_watch;
  };
  using Files = std::map<std::string, File>;  // by path

  void read_all(const Root& root, const std::vector<std::string>& names);
  void read(const Root& root, const std::string& path);
  void on_read(const Root& root, const std::string& path, const SmallFile& file);
  void apply(const Root& root, const std::string& path, RegistryEntry entry);
  void check(const std::string& path, File& file);
  void close_exit_watch(File& file);
  void remove(Files::iterator file);
  void on_exit(const std::string& path);
  void retry_later(const Root& root, const std::string& path);
  void schedule_poll();
  void unlink_path(const std::string& session, const std::string& path);

  boost::asio::io_context& io_;
  boost::asio::any_io_executor disk_;
  const std::vector<Root> roots_;
  watch::Watcher& watcher_;
  ProcessRegistryOptions options_;
  OnChange on_change_;
  OnScanned on_scanned_;
  std::shared_ptr<const ProcessTable> processes_;
  Files files_;
  std::map<std::string, bool> reading_;  // paths that the disk thread reads; true: read once more
  std::unordered_map<std::string, std::set<std::string>> paths_;  // by session
  std::size_t exit_watches_ = 0;
  struct Retry {
    const Root* root;
    int tries = 0;
  };
  std::map<std::string, Retry> incomplete_;  // by path
  bool retry_scheduled_ = false, poll_scheduled_ = false, stopped_ = false;
  Timer retry_timer_, poll_timer_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // results from the disk hold it weakly
};

/// Device and inode of a directory; zeros: there is none.
using DirectoryId = std::pair<std::uint64_t, std::uint64_t>;
DirectoryId directory_id(const std::string& path);

}  // namespace earshot::status
