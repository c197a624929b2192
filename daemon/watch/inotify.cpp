#include "watch/inotify.hpp"

#ifdef __linux__
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <unordered_set>
#include <utility>

#include "base/bounded_calls.hpp"
#include "base/file.hpp"

namespace earshot::watch {
namespace {

// Links are followed: the caller of watch() decides whether to pass one.
constexpr std::uint32_t watched_events = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM |
                                         IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |
                                         IN_EXCL_UNLINK;
constexpr std::uint32_t self_events = IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;

/// The value of an inotify limit; empty if it cannot be read.
std::string limit(const char* name) {
  const SmallFile file = read_small_file(std::string("/proc/sys/fs/inotify/") + name, 32);
  return file.text.substr(0, file.text.find('\n'));
}

std::string instance_problem(int error) {
  const std::string polled = "; until then files are polled";
  if (error != EMFILE) return std::string("inotify: ") + std::strerror(error) + polled;
  const std::string instances = limit("max_user_instances");
  if (instances.empty()) return "inotify: the limit of open files is reached: raise it (ulimit -n)" + polled;
  return "inotify: the limit of " + instances +
         " instances is reached: raise it with sysctl fs.inotify.max_user_instances=1024" + polled;
}

}  // namespace

/// Hints that were not sent yet: each path once, in the order of first notification.
struct Inotify::Pending {
  static constexpr std::size_t linear_max = 8;  // compared one by one: most wake-ups concern one file
  bool overflow = false;
  std::deque<ChangeHint> hints;
  std::unordered_set<std::string> paths;  // of the hints, above linear_max

  void add(ChangeHint::Where where, std::string path) {
    if (hints.size() < linear_max) {
      for (const ChangeHint& hint : hints)
        if (hint.path == path) return;
    } else {
      if (paths.empty())
        for (const ChangeHint& hint : hints) paths.insert(hint.path);
      if (!paths.insert(path).second) return;
    }
    hints.push_back({where, std::move(path)});
  }
  ChangeHint take() {
    ChangeHint hint = std::move(hints.front());
    hints.pop_front();
    if (hints.size() < linear_max)
      paths.clear();
    else
      paths.erase(hint.path);
    return hint;
  }
};

Inotify::Inotify(boost::asio::io_context& io, ChangeCallback on_change)
    : descriptor_(io),
      on_change_(std::move(on_change)),
      pending_(std::make_unique<Pending>()),
      alive_(std::make_shared<char>()) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) {
    error_ = instance_problem(errno);
    return;
  }
  boost::system::error_code failed;
  descriptor_.assign(fd, failed);
  if (failed) {
    ::close(fd);
    error_ = "inotify: " + failed.message() + "; files are polled";
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
                           poll();
                           if (!weak.expired()) wait();
                         });
}

void Inotify::poll() {
  polled_ = Clock::now();
  read();
  const std::weak_ptr<char> weak(alive_);
  if (std::exchange(pending_->overflow, false)) on_change_({ChangeHint::Where::everything, {}});
  for (std::size_t sent = 1; !weak.expired() && !pending_->hints.empty() && sent <= hints_per_poll; ++sent) {
    ChangeHint hint = pending_->take();
    hint.last = pending_->hints.empty() || sent == hints_per_poll;
    on_change_(hint);
  }
  if (weak.expired() || pending_->hints.empty() || std::exchange(is_posted_, true)) return;
  boost::asio::post(descriptor_.get_executor(), [this, weak] {
    if (weak.expired()) return;
    is_posted_ = false;
    poll();
  });
}

/// The kernel's queue is emptied before the hints are sent: it has a limit.
void Inotify::read() {
  alignas(inotify_event) static thread_local std::array<char, buffer_bytes> buffer;
  while (pending_->hints.size() < pending_max) {
    const ssize_t size = ::read(descriptor_.native_handle(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    for (ssize_t at = 0; at < size;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(buffer.data() + at);
      add_event(event, buffer.data() + at + sizeof(inotify_event));
      at += static_cast<ssize_t>(sizeof(inotify_event) + event.len);
    }
    // If another event would have fitted, the queue is empty; later events cause another wake-up.
    if (static_cast<std::size_t>(size) + sizeof(inotify_event) + NAME_MAX + 1 <= buffer.size()) return;
  }
}

void Inotify::add_event(const inotify_event& event, const char* name) {
  if (event.mask & IN_Q_OVERFLOW) {
    pending_->overflow = true;
    return;
  }
  const auto found = directories_.find(event.wd);
  if (found == directories_.end()) return;  // of a removed watch: its paths were checked then
  for (const auto& at : found->second) {
    if (event.len > 0)
      pending_->add(ChangeHint::Where::path, at->first + '/' + name);
    else if (event.mask & self_events)
      pending_->add(ChangeHint::Where::directory, at->first);
    else
      pending_->add(ChangeHint::Where::path, at->first);
  }
  if (event.mask & IN_IGNORED) {  // the kernel removed the watch with the directory
    const auto paths = std::move(found->second);
    directories_.erase(found);
    for (const auto& at : paths) watches_.erase(at);
  }
}

void Inotify::watch(const std::string& directory) {
  if (!works_) return;
  const auto add = [fd = descriptor_.native_handle()](const std::string& path) {
    return inotify_add_watch(fd, path.c_str(), watched_events);
  };
  const auto bounds = bounded_directory_of(directory);
  const int wd = bounds ? bounded(
                              bounds, [add, directory] { return add(directory); }, -1)
                        : add(directory);
  if (wd < 0) {
    if (errno == ENOSPC || errno == ENOMEM)
      refused_.insert(directory);
    else
      refused_.erase(directory);  // missing or unreadable: the caller's listing reports it
    return;
  }
  refused_.erase(directory);
  auto at = watches_.find(directory);
  if (at != watches_.end()) {
    if (at->second == wd) return;
    remove(at);  // the path names another directory now
  }
  at = watches_.emplace(directory, wd).first;
  directories_[wd].push_back(at);
}

void Inotify::retry_refused() {
  while (!refused_.empty()) {
    const std::string directory = *refused_.begin();
    watch(directory);
    if (refused_.contains(directory)) return;
    boost::asio::post(descriptor_.get_executor(), [this, directory, weak = std::weak_ptr<char>(alive_)] {
      if (!weak.expired()) on_change_({ChangeHint::Where::directory, directory});
    });
  }
}

void Inotify::remove(Watches::iterator at) {
  const auto found = directories_.find(at->second);
  std::erase(found->second, at);
  if (found->second.empty()) {
    inotify_rm_watch(descriptor_.native_handle(), at->second);  // fails if the kernel removed it first
    directories_.erase(found);
  }
  watches_.erase(at);
}

void Inotify::unwatch(const std::string& directory) {
  const std::string below = directory + '/';
  refused_.erase(directory);
  for (auto at = refused_.lower_bound(below); at != refused_.end() && at->starts_with(below);)
    at = refused_.erase(at);
  if (const auto at = watches_.find(directory); at != watches_.end()) remove(at);
  for (auto at = watches_.lower_bound(below); at != watches_.end() && at->first.starts_with(below);)
    remove(at++);
}

std::string Inotify::problem() const {
  if (!error_.empty() || refused_.empty()) return error_;
  return "inotify: the limit of " + limit("max_user_watches") +
         " watches is reached: raise it with sysctl fs.inotify.max_user_watches=524288; until then " +
         std::to_string(refused_.size()) + (refused_.size() == 1 ? " directory is" : " directories are") +
         " polled";
}

}  // namespace earshot::watch

#else

namespace earshot::watch {

struct Inotify::Pending {};

Inotify::Inotify(boost::asio::io_context& io, ChangeCallback)
    : descriptor_(io), error_("notifications are not available on this system; files are polled") {}
Inotify::~Inotify() = default;
void Inotify::poll() {}
void Inotify::retry_refused() {}
void Inotify::watch(const std::string&) {}
void Inotify::unwatch(const std::string&) {}
std::string Inotify::problem() const { return error_; }

}  // namespace earshot::watch

#endif
