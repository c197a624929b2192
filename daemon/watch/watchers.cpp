#include "watch/watchers.hpp"

#include <fcntl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <functional>
#include <mutex>
#include <utility>

#include "base/bounded_calls.hpp"
#include "base/file.hpp"

namespace earshot::watch {
namespace {

std::size_t bit_of(std::string_view path) {
  return std::hash<std::string_view>{}(path) % NotificationProbe::notified_bits;
}

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

/// Decodes octal escapes, such as `\040`.
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

void NotificationProbe::notified(std::string_view path) {
  notified_.set(bit_of(path));
  if (!suspects_.empty())
    std::erase_if(suspects_, [&](const Suspect& suspect) { return suspect.path == path; });
}

void NotificationProbe::notifications_lost(Clock::duration grace, Clock::time_point now) {
  suspects_.clear();
  grace_until_ = now + grace;
}

void NotificationProbe::swept(std::string_view path, bool entry, Clock::time_point now) {
  if (now < grace_until_) return;
  if (notified_.test(bit_of(path)) || suspects_.size() >= suspects_max) return;
  if (std::any_of(suspects_.begin(), suspects_.end(),
                  [&](const Suspect& suspect) { return suspect.path == path; }))
    return;
  suspects_.push_back({std::string(path), now, entry});
}

bool NotificationProbe::is_suspicious() const {
  return std::any_of(suspects_.begin(), suspects_.end(),
                     [](const Suspect& suspect) { return suspect.entry; });
}

bool NotificationProbe::is_silent(Clock::time_point now) const {
  const auto waited = [&](const Suspect& suspect) { return now - suspect.since >= patience; };
  return static_cast<std::size_t>(std::count_if(suspects_.begin(), suspects_.end(), waited)) >= silent_from;
}

std::string NotificationProbe::problem(Clock::time_point now) const {
  if (!is_silent(now)) return {};
  return "the system does not report changes of some files (a network mount, or hard links), such as " +
         suspects_.front().path + "; these files are polled";
}

Watchers::Watchers(boost::asio::io_context& io, boost::asio::any_io_executor disk, Mode mode,
                   SweepIntervals intervals)
    : grace_(2 * intervals.slow) {
  if (mode != Mode::sweep) {
    inotify_ = std::make_unique<Inotify>(io, [this](const ChangeHint& hint) {
      if (mux_.notify(hint)) probe_.notifications_lost(grace_);
      if (hint.where == ChangeHint::Where::path) {  // after the events that the hint causes
        probe_.notified(hint.path);
        if (sweep_) sweep_->mark_hot(hint.path);
      } else if (hint.where == ChangeHint::Where::everything) {
        probe_.notifications_lost(grace_);
      }
    });
    mux_.add_backend(*inotify_);
  }
  if (mode != Mode::inotify) {
    const auto on_find = [this](const ChangeHint& hint) {
      if (inotify_ && inotify_->is_limited())
        probe_.notifications_lost(grace_);  // a missing watch proves nothing about the mount
      else if (inotify_ && hint.where == ChangeHint::Where::path)
        probe_.swept(hint.path, hint.entry);
      mux_.notify(hint);
    };
    sweep_ = std::make_unique<Sweep>(io, std::move(disk), on_find, intervals, [this] {
      if (inotify_) inotify_->retry_refused();
      return notifications_unreliable();
    });
    mux_.add_backend(*sweep_);
  }
}

bool Watchers::notifications_unreliable() const {
  return !inotify_ || inotify_->is_limited() || probe_.is_suspicious() || probe_.is_silent();
}

std::string Watchers::problem() const {
  std::string all = mux_.problem();
  if (const std::string silent = probe_.problem(); !silent.empty()) all += (all.empty() ? "" : "; ") + silent;
  return all;
}

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
