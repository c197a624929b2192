#include "watch/mounts.hpp"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "base/bounded_calls.hpp"
#include "base/file.hpp"
#include "watch/watcher.hpp"

namespace earshot::watch {
namespace {

constexpr const char* mounts_path = "/proc/self/mountinfo";
constexpr std::size_t mounts_bytes_max = 4 << 20;  // of a longer table every directory is bounded

/// Types whose files another process or host serves. A type that starts with one of these is one, too.
constexpr std::string_view remote_types[] = {"fuse",   "nfs",       "cifs",   "smb",    "9p",   "afs",
                                             "ceph",   "autofs",    "virtio", "vboxsf", "coda", "lustre",
                                             "davfs",  "glusterfs", "ncpfs",  "ocfs2",  "gfs2", "orangefs",
                                             "beegfs", "prl_fs",    "vmhgfs", "drvfs"};

bool is_remote_type(std::string_view type) {
  return std::any_of(std::begin(remote_types), std::end(remote_types),
                     [&](std::string_view each) { return type.starts_with(each); });
}

/// Decodes `\040` and the like.
std::string decode_octal(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto digit = [&](std::size_t n) { return at + n < text.size() ? text[at + n] - '0' : -1; };
    const bool is_escape = text[at] == '\\' && digit(1) >= 0 && digit(1) <= 3 && digit(2) >= 0 &&
                           digit(2) <= 7 && digit(3) >= 0 && digit(3) <= 7;
    decoded += is_escape ? static_cast<char>(digit(1) << 6 | digit(2) << 3 | digit(3)) : text[at];
    if (is_escape) at += 3;
  }
  return decoded;
}

}  // namespace

std::vector<std::string> remote_mounts(std::string_view mounts, std::string_view path) {
  std::string innermost;
  bool is_remote = false;
  std::vector<std::string> remote;
  while (!mounts.empty()) {
    const std::string_view line = mounts.substr(0, mounts.find('\n'));
    mounts.remove_prefix(std::min(mounts.size(), line.size() + 1));
    std::size_t begin = 0;
    for (int field = 0; field < 4 && begin != line.npos; ++field)
      if (begin = line.find(' ', begin); begin != line.npos) ++begin;
    const std::size_t separator = line.find(" - ");
    if (begin == line.npos || separator == line.npos) continue;
    std::string point = decode_octal(line.substr(begin, line.find(' ', begin) - begin));
    const std::string_view rest = line.substr(separator + 3);
    const bool has_remote_type = is_remote_type(rest.substr(0, rest.find(' ')));
    if (at_or_below(path, point)) {
      if (point.size() < innermost.size()) continue;
      innermost = std::move(point);  // a later mount hides an earlier one
      is_remote = has_remote_type;
    } else if (has_remote_type && at_or_below(point, path)) {
      remote.push_back(std::move(point));
    }
  }
  if (is_remote) remote.push_back(std::move(innermost));
  return remote;
}

/// Where an answer is reported. The event loop may end before a call does.
struct Mounts::Target {
  std::mutex mutex;
  boost::asio::io_context* io;  // null: the loop has ended
  std::function<void(const std::string&)> on_answer;
};

Mounts::Mounts(boost::asio::io_context& io, std::vector<std::string> directories,
               std::function<void(const std::string&)> on_answer)
    : table_(io), directories_(std::move(directories)), target_(std::make_shared<Target>()) {
  target_->io = &io;
  target_->on_answer = std::move(on_answer);
  Fd table = open_for_reading(mounts_path);
  if (!table) return;
  boost::system::error_code failed;
  table_.assign(table.release(), failed);
  resolve();
  update();
  set_call_patience(loop_call_patience);
  if (!failed) wait();
}

Mounts::~Mounts() {
  bound_calls_below({}, {});
  const std::lock_guard lock(target_->mutex);
  target_->io = nullptr;
}

/// The kernel reports a change of the table as an exceptional condition of its file (proc(5)).
void Mounts::wait() {
  table_.async_wait(boost::asio::posix::stream_descriptor::wait_error,
                    [this, weak = std::weak_ptr(target_)](const boost::system::error_code& failed) {
                      if (failed || weak.expired()) return;
                      update();
                      wait();
                    });
}

/// Before the loop runs. A path that cannot be resolved in time leads to a file system that does not answer.
void Mounts::resolve() {
  const std::vector<std::string> given = directories_;
  bound({given.begin(), given.end()});
  for (const std::string& directory : given) {
    const std::string resolved = real_path(directory);
    if (resolved.empty() && errno == ETIMEDOUT) unresolved_.insert(directory);
    if (!resolved.empty() && resolved != directory) directories_.push_back(resolved);
  }
}

void Mounts::update() {
  const SmallFile table = read_small_file(mounts_path, mounts_bytes_max);
  std::set<std::string> remote = unresolved_;
  for (const std::string& directory : directories_) {
    if (table.ok())
      for (std::string& mount : remote_mounts(table.text, directory)) remote.insert(std::move(mount));
    else
      remote.insert(directory);
  }
  bound(remote);
}

void Mounts::bound(const std::set<std::string>& paths) {
  bound_calls_below({paths.begin(), paths.end()}, [target = target_](const std::string& path) {
    const std::lock_guard lock(target->mutex);
    if (!target->io) return;
    boost::asio::post(*target->io, [weak = std::weak_ptr(target), path] {
      if (const auto alive = weak.lock()) alive->on_answer(path);
    });
  });
}

}  // namespace earshot::watch
