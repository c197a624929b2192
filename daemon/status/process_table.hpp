// The processes of this machine. Pids are reused and namespaces differ: a pid alone proves nothing.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agents/agent.hpp"
#include "base/system.hpp"

namespace earshot::status {

enum class Liveness {
  alive,
  dead,     // no such process, a zombie, or another process with the same pid
  foreign,  // on another machine or in another pid namespace: cannot be decided
};

/// A running instance of an agent program.
struct AgentProcess {
  std::int64_t pid = 0;
  std::string start;  // as ProcessTable::start_of()
  const AgentProgram* program = nullptr;
  std::string cwd;                      // empty: this user may not read it
  std::vector<std::string> open_files;  // transcripts
  bool is_headless = false;             // by its command line
};

struct ProcessScan {
  /// False: processes of this machine may be hidden (another pid namespace, hidepid), so a missing one proves
  /// nothing.
  bool shows_all = false;
  std::vector<AgentProcess> processes;
};

/// The files that are locked with flock(), as /proc/locks lists them: no lock is taken to find out.
class FileLocks {
 public:
  struct Lock {
    std::uint64_t device = 0, inode = 0;
    std::int64_t pid = 0;
  };
  /// Lines of another form are ignored.
  explicit FileLocks(std::string_view text);
  const std::vector<Lock>& all() const { return locks_; }

 private:
  std::vector<Lock> locks_;
};

/// The processes of this machine, as /proc shows them. Thread-safe.
class ProcessTable {
 public:
  explicit ProcessTable(std::string proc_dir = "/proc",
                        const std::string& machine_id_path = "/etc/machine-id");

  /// `linux:<machine id>:pid:[<inode of this pid namespace>]`, as agent programs write it.
  const std::string& pid_domain() const { return pid_domain_; }
  /// Field 22 of <proc>/<pid>/stat, in clock ticks after boot; empty: no such process, or only its zombie.
  std::string start_of(std::int64_t pid) const;
  /// When a process began, in ms since 1970, by start_of() and this moment's clocks; 0: unknown.
  std::int64_t time_of(std::string_view start) const;
  /// `start` and `domain` as the registry states them; empty ones are not compared.
  Liveness check(std::int64_t pid, std::string_view start, std::string_view domain) const;
  /// Lists the running instances of all agent programs. May block.
  ProcessScan scan() const;
  FileLocks locks() const;  // may block
  /// The processes that hold a lock on this file. May block.
  std::vector<std::int64_t> holders(const std::string& path, const FileLocks& locks) const;
  /// False for a simulated process directory.
  bool can_watch_exits() const { return proc_dir_ == "/proc"; }

 private:
  bool hides_processes() const;

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

/// True if the file system of this path is known to be on this machine: not a network or FUSE file system.
/// May block.
bool is_on_local_file_system(const std::string& path);

}  // namespace earshot::status
