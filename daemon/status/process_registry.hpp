// Which process runs which session, and whether it is alive. Pids are reused and namespaces differ: a pid
// alone proves nothing.
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
#include "watch/watcher.hpp"

namespace earshot::status {

enum class Liveness {
  alive,
  dead,     // no such process, a zombie, or another process with the same pid
  foreign,  // on another machine or in another pid namespace: cannot be decided
};

/// The processes of this machine, as /proc shows them.
class ProcessTable {
 public:
  explicit ProcessTable(std::string proc_dir = "/proc",
                        const std::string& machine_id_path = "/etc/machine-id");

  /// `linux:<machine id>:pid:[<inode of this pid namespace>]`, as agent programs write it.
  const std::string& pid_domain() const { return pid_domain_; }
  /// Field 22 of <proc>/<pid>/stat, in clock ticks after boot; empty: no such process, or only its zombie.
  std::string start_of(std::int64_t pid) const;
  /// `start` and `domain` as the registry states them; empty ones are not compared.
  Liveness check(std::int64_t pid, std::string_view start, std::string_view domain) const;

 private:
  std::string proc_dir_, pid_domain_;
};

/// Calls back as soon as a process exits. Destroy it to stop.
class ExitWatch {
 public:
  /// Null where the kernel does not support it (pidfd_open: Linux 5.3): poll the process instead.
  static std::unique_ptr<ExitWatch> open(boost::asio::io_context& io, std::int64_t pid,
                                         std::function<void()> on_exit);
  ~ExitWatch();

 private:
  struct Impl;
  explicit ExitWatch(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

struct ProcessRegistryOptions {
  std::string proc_dir, machine_id_path;
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
                  watch::Watcher& watcher, ProcessRegistryOptions options, OnChange on_change,
                  OnScanned on_scanned);

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
  };
  /// Of several entries that of a live process, then the one updated last.
  SessionEntry entry_of(const std::string& session) const;
  std::vector<std::string> alive_sessions() const;

 private:
  struct File {
    RegistryEntry entry;
    Liveness liveness = Liveness::dead;
    std::unique_ptr<ExitWatch> exit_watch;
  };
  using Files = std::map<std::string, File>;  // by path

  void read_all(const Root& root, const std::vector<std::string>& names);
  void read(const Root& root, const std::string& path, bool is_retry);
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
  ProcessTable processes_;
  bool can_watch_exits_;  // not for a simulated /proc
  Files files_;
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
