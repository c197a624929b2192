// Finds the directories on file systems that may stop answering (FUSE, network), and bounds the calls for
// them.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::watch {

/// The mount points of file systems of types that may stop answering: the innermost at or above the path, and
/// all below it. `mounts` has the format of /proc/self/mountinfo (proc_pid_mountinfo(5)).
std::vector<std::string> remote_mounts(std::string_view mounts, std::string_view path);

/// Bounds the calls on such file systems (base/bounded_calls.hpp), and follows the mount table. Where there
/// is no /proc, nothing is bounded.
class Mounts {
 public:
  /// `directories` are read; links in their paths are resolved, links below them are not. `on_answer` is
  /// called on the thread of `io` with the mount point of a file system that answers again.
  Mounts(boost::asio::io_context& io, std::vector<std::string> directories,
         std::function<void(const std::string& mount)> on_answer);
  ~Mounts();
  Mounts(const Mounts&) = delete;
  Mounts& operator=(const Mounts&) = delete;

 private:
  struct Target;

  void wait();
  void resolve();
  void update();
  void bound(const std::set<std::string>& paths);

  boost::asio::posix::stream_descriptor table_;
  std::vector<std::string> directories_;  // and what links in their paths lead to
  std::set<std::string> unresolved_;
  std::shared_ptr<Target> target_;  // shared with the threads of the calls
};

}  // namespace earshot::watch
