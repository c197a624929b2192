#include "status/process_registry.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "base/file.hpp"

#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace earshot::status {
namespace {

constexpr std::size_t stat_bytes_max = 4096;  // 52 numbers and a name of at most 64 bytes
constexpr std::size_t machine_id_bytes_max = 256;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const auto first = text.find_first_not_of(blank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::string link_target(const std::string& path) {
  std::array<char, 256> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

/// The name in parentheses may contain parentheses: fields are counted from the last one.
std::string start_time(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == stat.npos) return {};
  stat.remove_prefix(name_end + 1);
  for (int field = 3; field <= 22; ++field) {
    const auto begin = stat.find_first_not_of(' ');
    if (begin == stat.npos) return {};
    const auto length = std::min(stat.find_first_of(" \n", begin), stat.size()) - begin;
    const std::string_view value = stat.substr(begin, length);
    if (field == 3 && (value == "Z" || value == "X" || value == "x")) return {};  // a zombie
    if (field == 22) return std::string(value);
    stat.remove_prefix(begin + length);
  }
  return {};
}

SmallFile read_stat(const std::string& proc_dir, std::int64_t pid) {
  return read_small_file(proc_dir + "/" + std::to_string(pid) + "/stat", stat_bytes_max);
}

bool accepts_signals(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

int rank(Liveness liveness) {
  return liveness == Liveness::alive ? 2 : liveness == Liveness::foreign ? 1 : 0;
}

std::string registry_path(const Root& root) {
  return root.path + '/' + std::string(root.program->registry_directory());
}

std::vector<std::string> list_registry_files(const Root& root) {
  std::vector<std::string> names;
  const Directory directory(registry_path(root), Symlinks::follow);
  if (directory.error()) return names;
  std::size_t seen = 0;
  directory.for_each([&](std::string_view name, FileType) {
    if (seen++ < ProcessRegistry::names_max && root.program->is_registry_file(name)) names.emplace_back(name);
  });
  return names;
}

}  // namespace

DirectoryId directory_id(const std::string& path) {
  const FileStat stat = stat_file(path, Symlinks::follow);
  if (!stat.ok() || !stat.is_directory()) return {};
  return {stat.device, stat.inode};
}

ProcessTable::ProcessTable(std::string proc_dir, const std::string& machine_id_path)
    : proc_dir_(std::move(proc_dir)) {
#ifdef __linux__
  // May be a symlink; if it is missing, agent programs write an empty id too.
  const SmallFile machine = read_small_file(machine_id_path, machine_id_bytes_max, Symlinks::follow);
  pid_domain_ = "linux:" + std::string(trimmed(machine.text)) + ":" + link_target(proc_dir_ + "/self/ns/pid");
#else
  (void)machine_id_path;
#endif
}

std::string ProcessTable::start_of(std::int64_t pid) const {
  const SmallFile stat = read_stat(proc_dir_, pid);
  return stat.ok() ? start_time(stat.text) : std::string();
}

Liveness ProcessTable::check(std::int64_t pid, std::string_view start, std::string_view domain) const {
  if (pid <= 0 || pid > 0x7FFFFFFF) return Liveness::dead;
#ifdef __linux__
  if (!domain.empty() && domain != pid_domain_) return Liveness::foreign;
  const SmallFile stat = read_stat(proc_dir_, pid);
  if (!stat.ok()) {
    if (stat.is_missing() || stat.error == ESRCH) return Liveness::dead;
    return accepts_signals(pid) ? Liveness::alive : Liveness::dead;  // no descriptor left, or hidepid
  }
  const std::string actual = start_time(stat.text);
  if (actual.empty()) return Liveness::dead;
  return start.empty() || start == actual ? Liveness::alive : Liveness::dead;
#else
  (void)start, (void)domain;
  return accepts_signals(pid) ? Liveness::alive : Liveness::dead;
#endif
}

struct ExitWatch::Impl {
  explicit Impl(boost::asio::io_context& io) : descriptor(io) {}
  boost::asio::posix::stream_descriptor descriptor;  // a pidfd: readable once the process has exited
  std::function<void()> on_exit;
};

ExitWatch::ExitWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ExitWatch::~ExitWatch() {
  impl_->on_exit = nullptr;
  boost::system::error_code ignored;
  impl_->descriptor.close(ignored);
}

std::unique_ptr<ExitWatch> ExitWatch::open(boost::asio::io_context& io, std::int64_t pid,
                                           std::function<void()> on_exit) {
#if defined(__linux__) && defined(SYS_pidfd_open)
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
  if (!fd) return nullptr;
  auto impl = std::make_shared<Impl>(io);
  boost::system::error_code error;
  impl->descriptor.assign(fd.get(), error);
  if (error) return nullptr;
  fd.release();
  impl->on_exit = std::move(on_exit);
  impl->descriptor.async_wait(boost::asio::posix::descriptor_base::wait_read,
                              [weak = std::weak_ptr<Impl>(impl)](const boost::system::error_code& failed) {
                                const auto self = weak.lock();
                                if (failed || !self || !self->on_exit) return;
                                const auto on_exit = std::move(self->on_exit);  // may destroy the watch
                                on_exit();
                              });
  return std::unique_ptr<ExitWatch>(new ExitWatch(std::move(impl)));
#else
  (void)io, (void)pid, (void)on_exit;
  return nullptr;
#endif
}

ProcessRegistry::ProcessRegistry(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                                 std::vector<Root> roots, watch::Watcher& watcher,
                                 ProcessRegistryOptions options, OnChange on_change, OnScanned on_scanned)
    : io_(io),
      disk_(std::move(disk)),
      roots_(std::move(roots)),
      watcher_(watcher),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      on_scanned_(std::move(on_scanned)),
      processes_(options_.proc_dir, options_.machine_id_path),
      can_watch_exits_(options_.proc_dir == "/proc"),
      retry_timer_(io),
      poll_timer_(io) {}

void ProcessRegistry::stop() {
  stopped_ = true;
  alive_.reset();
  retry_timer_.cancel();
  poll_timer_.cancel();
  for (auto& [path, file] : files_) file.exit_watch.reset();
}

void ProcessRegistry::scan(const Root& root) {
  if (stopped_) return;
  // Watch before listing: files that appear in between are reported.
  if (directory_id(registry_path(root)) != DirectoryId{}) watcher_.watch(registry_path(root));
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(
      disk_, [this, alive = std::weak_ptr<char>(alive_), &root, copy = root, guard = std::move(guard)] {
        auto names = list_registry_files(copy);
        boost::asio::post(guard.get_executor(), [this, alive, &root, names = std::move(names)] {
          if (alive.expired()) return;
          read_all(root, names);
          on_scanned_(root.path);
        });
      });
}

void ProcessRegistry::read_all(const Root& root, const std::vector<std::string>& names) {
  std::set<std::string> paths;
  const std::string below = registry_path(root) + "/";
  for (const std::string& name : names) paths.insert(below + name);
  for (const auto& [path, file] : files_)
    if (path.starts_with(below)) paths.insert(path);  // may have been removed
  for (const std::string& path : paths) read(root, path, false);
}

void ProcessRegistry::on_change(const Root& root, std::string_view file_name) {
  if (!stopped_ && root.program->is_registry_file(file_name))
    read(root, registry_path(root) + '/' + std::string(file_name), false);
}

void ProcessRegistry::read(const Root& root, const std::string& path, bool is_retry) {
  if (!is_retry) incomplete_.erase(path);
  const SmallFile file = read_small_file(path, AgentProgram::registry_bytes_max);
  if (file.is_missing()) {
    incomplete_.erase(path);
    if (const auto known = files_.find(path); known != files_.end()) remove(known);
    return;
  }
  if (!file.ok()) return;  // its last state stays
  auto entry =
      root.program->parse_registry_file(std::string_view(path).substr(path.rfind('/') + 1), file.text);
  if (!entry) return retry_later(root, path);
  incomplete_.erase(path);
  apply(root, path, std::move(*entry));
}

void ProcessRegistry::apply(const Root& root, const std::string& path, RegistryEntry entry) {
  auto found = files_.find(path);
  const bool is_new = found == files_.end();
  if (is_new) {
    if (files_.size() >= entries_max) return;
    found = files_.try_emplace(path).first;
  }
  File& file = found->second;
  const Liveness liveness_before = file.liveness;
  const std::string session_before = file.entry.session;
  const bool is_same_process = !is_new && file.entry.pid == entry.pid &&
                               file.entry.process_start == entry.process_start &&
                               file.entry.pid_domain == entry.pid_domain;
  const bool is_same_entry = !is_new && file.entry == entry;
  if (!is_same_process) close_exit_watch(file);
  file.entry = std::move(entry);
  check(path, file);
  if (is_same_entry && file.liveness == liveness_before) return;

  const std::string session = file.entry.session;
  if (session_before != session) unlink_path(session_before, path);  // a process may switch sessions
  if (!session.empty()) paths_[session].insert(path);
  if (!session_before.empty() && session_before != session) on_change_(session_before);
  if (!session.empty()) on_change_(session);
}

void ProcessRegistry::check(const std::string& path, File& file) {
  const RegistryEntry& entry = file.entry;
  const auto check_process = [&] {
    return processes_.check(entry.pid, entry.process_start, entry.pid_domain);
  };
  file.liveness = check_process();
  if (file.liveness == Liveness::alive && !file.exit_watch && can_watch_exits_ &&
      exit_watches_ < exit_watches_max) {
    file.exit_watch = ExitWatch::open(io_, entry.pid, [this, path] { on_exit(path); });
    if (file.exit_watch) {
      ++exit_watches_;
      file.liveness = check_process();  // the pid may have been reused before the watch held it
    }
  }
  if (file.liveness != Liveness::alive) close_exit_watch(file);
  if (file.liveness == Liveness::alive && !file.exit_watch) schedule_poll();
}

void ProcessRegistry::close_exit_watch(File& file) {
  if (!file.exit_watch) return;
  file.exit_watch.reset();
  --exit_watches_;
}

void ProcessRegistry::unlink_path(const std::string& session, const std::string& path) {
  const auto paths = paths_.find(session);
  if (paths == paths_.end()) return;
  paths->second.erase(path);
  if (paths->second.empty()) paths_.erase(paths);
}

void ProcessRegistry::remove(Files::iterator file) {
  const std::string session = file->second.entry.session;
  close_exit_watch(file->second);
  unlink_path(session, file->first);
  files_.erase(file);
  if (!session.empty()) on_change_(session);
}

void ProcessRegistry::on_exit(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end() || stopped_) return;
  close_exit_watch(found->second);
  found->second.liveness = Liveness::dead;
  const std::string session = found->second.entry.session;
  if (!session.empty()) on_change_(session);
}

void ProcessRegistry::retry_later(const Root& root, const std::string& path) {
  Retry& retry = incomplete_.try_emplace(path, Retry{&root}).first->second;
  if (retry.tries >= retries_max) {
    incomplete_.erase(path);
    return;
  }
  const auto delay = options_.retry * (1 << retry.tries);
  ++retry.tries;
  if (retry_scheduled_) return;  // at most one doubling later than due
  retry_scheduled_ = true;
  retry_timer_.expires_after(delay);
  retry_timer_.async_wait(
      [this, alive = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
        if (failed || alive.expired()) return;
        retry_scheduled_ = false;
        for (const auto& [file, due] : std::map(incomplete_)) read(*due.root, file, true);
      });
}

void ProcessRegistry::check_all() {
  std::vector<std::string> changed;
  for (auto& [path, file] : files_) {
    const Liveness before = file.liveness;
    check(path, file);
    if (file.liveness != before && !file.entry.session.empty()) changed.push_back(file.entry.session);
  }
  for (const std::string& session : changed) on_change_(session);
}

void ProcessRegistry::schedule_poll() {
  if (poll_scheduled_ || stopped_) return;
  poll_scheduled_ = true;
  poll_timer_.expires_after(options_.poll);
  poll_timer_.async_wait(
      [this, alive = std::weak_ptr<char>(alive_)](const boost::system::error_code& failed) {
        if (failed || alive.expired()) return;
        poll_scheduled_ = false;
        check_all();  // schedules the next one if it is needed
      });
}

ProcessRegistry::SessionEntry ProcessRegistry::entry_of(const std::string& session) const {
  SessionEntry best;
  const auto paths = paths_.find(session);
  if (paths == paths_.end()) return best;
  for (const std::string& path : paths->second) {
    const File& file = files_.at(path);
    const auto key = [](const RegistryEntry& entry, Liveness liveness) {
      return std::pair(rank(liveness), entry.updated_ms);
    };
    if (!best.entry || key(file.entry, file.liveness) > key(*best.entry, best.liveness))
      best = {&file.entry, file.liveness};
  }
  return best;
}

std::vector<std::string> ProcessRegistry::alive_sessions() const {
  std::vector<std::string> sessions;
  for (const auto& [session, paths] : paths_)
    if (std::any_of(paths.begin(), paths.end(),
                    [&](const std::string& path) { return files_.at(path).liveness == Liveness::alive; }))
      sessions.push_back(session);
  std::sort(sessions.begin(), sessions.end());
  return sessions;
}

}  // namespace earshot::status
