// Does the process live that wrote a registry file? Pids are reused, namespaces differ: a pid proves nothing.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace earshot::status {

enum class Liveness {
  alive,
  dead,     // no such process, a zombie, or another one under the same pid
  foreign,  // of another machine or pid namespace: nothing can be said
};

class Processes {
 public:
  explicit Processes(std::string proc_dir = "/proc", const std::string& machine_id_path = "/etc/machine-id");

  /// `linux:<machine id>:pid:[<inode of this pid namespace>]`, as the agent program writes it.
  const std::string& pid_domain() const { return domain_; }
  /// Field 22 of <proc>/<pid>/stat, clock ticks after boot; empty: no such process, or only its zombie.
  std::string start_of(std::int64_t pid) const;
  /// `start` and `domain` as the registry file says them; empty: not said, and not judged.
  Liveness check(std::int64_t pid, std::string_view start, std::string_view domain) const;

 private:
  std::optional<std::string> stat_of(std::int64_t pid, int& error) const;
  std::string proc_dir_, domain_;
};

/// Tells of one process's death at once. Gone with the object.
class DeathWatch {
 public:
  /// Null where the kernel cannot do it (pidfd_open: Linux 5.3): then ask again on a beat.
  static std::unique_ptr<DeathWatch> open(boost::asio::io_context& io, std::int64_t pid,
                                          std::function<void()> died);
  ~DeathWatch();

 private:
  struct Impl;
  explicit DeathWatch(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace earshot::status
