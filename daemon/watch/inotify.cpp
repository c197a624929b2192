#include "watch/inotify.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <climits>
#include <cstring>
#include <unordered_set>
#include <utility>

namespace earshot::watch {
namespace {

// Following a link is decided by whoever asks for the watch; a watch only rings.
constexpr std::uint32_t wanted = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                 IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK;
constexpr std::uint32_t of_itself = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

/// One of inotify's limits; empty when it cannot be read, because no descriptor is to be had.
std::string limit(const char* name) {
  const int fd = ::open((std::string("/proc/sys/fs/inotify/") + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char digits[32];
  const ssize_t got = ::read(fd, digits, sizeof digits);
  ::close(fd);
  const std::string value(digits, got > 0 ? static_cast<std::size_t>(got) : 0);
  return value.substr(0, value.find('\n'));
}

std::string no_instance(int error) {
  const std::string until = "; until then files are looked at in turn";
  if (error != EMFILE) return std::string("inotify: ") + std::strerror(error) + until;
  const std::string instances = limit("max_user_instances");
  if (instances.empty()) return "inotify: the limit of open files is reached: raise it (ulimit -n)" + until;
  return "inotify: the limit of " + instances +
         " instances is reached: raise it with sysctl fs.inotify.max_user_instances=1024" + until;
}

}  // namespace

/// Rings of one wake-up, each path once, in the order of their first notification.
struct Inotify::Wakeup {
  static constexpr std::size_t few = 8;  // so many are compared one by one: most wake-ups are of one file
  bool everything = false;
  std::vector<ChangeHint> rings;
  std::unordered_set<std::string> seen;  // empty while they are few
  void add(ChangeHint::Where where, std::string path) {
    if (rings.size() < few) {
      for (const ChangeHint& ring : rings)
        if (ring.path == path) return;
    } else {
      if (seen.empty())
        for (const ChangeHint& ring : rings) seen.insert(ring.path);
      if (!seen.insert(path).second) return;
    }
    rings.push_back({where, std::move(path)});
  }
};

Inotify::Inotify(boost::asio::io_context& io, ChangeCallback bell)
    : descriptor_(io), bell_(std::move(bell)), alive_(std::make_shared<char>()) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) {
    trouble_ = no_instance(errno);
    return;
  }
  boost::system::error_code failed;
  descriptor_.assign(fd, failed);
  if (failed) {
    ::close(fd);
    trouble_ = "inotify: " + failed.message() + "; files are looked at in turn";
    return;
  }
  works_ = true;
  wait();
}

Inotify::~Inotify() = default;

void Inotify::wait() {
  descriptor_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this, weak = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
                           if (failed || weak.expired()) return;
                           drain();
                           if (!weak.expired()) wait();
                         });
}

void Inotify::drain() {
  alignas(inotify_event) static thread_local std::array<char, buffer_bytes> buffer;
  Wakeup wakeup;
  for (int reads = 0; reads < reads_max; ++reads) {
    const ssize_t size = ::read(descriptor_.native_handle(), buffer.data(), buffer.size());
    if (size <= 0) {
      if (size < 0 && errno == EINTR) continue;
      break;
    }
    for (ssize_t at = 0; at < size;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(buffer.data() + at);
      take(event, buffer.data() + at + sizeof(inotify_event), wakeup);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event.len);
    }
    // With room left for another one, that was all; what came since then wakes the wait.
    if (static_cast<std::size_t>(size) + sizeof(inotify_event) + NAME_MAX + 1 <= buffer.size()) break;
  }
  const std::weak_ptr<char> weak(alive_);
  if (wakeup.everything) bell_({ChangeHint::Where::everything, {}});
  if (!wakeup.rings.empty()) wakeup.rings.back().last = true;
  for (const ChangeHint& ring : wakeup.rings) {
    if (weak.expired()) return;
    bell_(ring);
  }
}

void Inotify::take(const inotify_event& event, const char* name, Wakeup& wakeup) {
  if (event.mask & IN_Q_OVERFLOW) {
    wakeup.everything = true;
    return;
  }
  const auto found = directories_.find(event.wd);
  if (found == directories_.end())
    return;  // a late word of a watch that was given up: its paths were looked at then
  for (const auto& at : found->second) {
    if (event.len > 0)
      wakeup.add(ChangeHint::Where::path, at->first + '/' + name);
    else if (event.mask & of_itself)
      wakeup.add(ChangeHint::Where::directory, at->first);
    else
      wakeup.add(ChangeHint::Where::path, at->first);
  }
  if (event.mask & IN_IGNORED) {  // the kernel gave this watch up: the directory is gone
    const auto paths = std::move(found->second);
    directories_.erase(found);
    for (const auto& at : paths) watches_.erase(at);
  }
}

void Inotify::watch(const std::string& directory) {
  if (!works_) return;
  const int wd = inotify_add_watch(descriptor_.native_handle(), directory.c_str(), wanted);
  if (wd < 0) {
    if (errno == ENOSPC || errno == ENOMEM)
      unwatched_.insert(directory);
    else
      unwatched_.erase(directory);  // gone, or not readable: whoever lists it finds out
    return;
  }
  unwatched_.erase(directory);
  auto at = watches_.find(directory);
  if (at != watches_.end()) {
    if (at->second == wd) return;
    unmap(at);  // another directory stands there now
  }
  at = watches_.emplace(directory, wd).first;
  directories_[wd].push_back(at);
}

void Inotify::try_again() {
  while (!unwatched_.empty()) {
    const std::string directory = *unwatched_.begin();
    watch(directory);
    if (unwatched_.contains(directory)) return;  // refused again
    boost::asio::post(descriptor_.get_executor(), [this, directory, weak = std::weak_ptr<char>(alive_)] {
      if (!weak.expired()) bell_({ChangeHint::Where::directory, directory});
    });
  }
}

void Inotify::unmap(Watches::iterator at) {
  const auto found = directories_.find(at->second);
  std::erase(found->second, at);
  if (found->second.empty()) {
    inotify_rm_watch(descriptor_.native_handle(), at->second);  // fails when the kernel was first: no matter
    directories_.erase(found);
  }
  watches_.erase(at);
}

void Inotify::unwatch(const std::string& directory) {
  const std::string below = directory + '/';
  unwatched_.erase(directory);
  for (auto at = unwatched_.lower_bound(below); at != unwatched_.end() && at->starts_with(below);)
    at = unwatched_.erase(at);
  if (const auto at = watches_.find(directory); at != watches_.end()) unmap(at);
  for (auto at = watches_.lower_bound(below); at != watches_.end() && at->first.starts_with(below);)
    unmap(at++);
}

std::string Inotify::problem() const {
  if (!trouble_.empty() || unwatched_.empty()) return trouble_;
  return "inotify: the limit of " + limit("max_user_watches") +
         " watches is reached: raise it with sysctl fs.inotify.max_user_watches=524288; until then " +
         std::to_string(unwatched_.size()) + (unwatched_.size() == 1 ? " directory is" : " directories are") +
         " looked at in turn";
}

}  // namespace earshot::watch
