#include "status/process_registry.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <tuple>
#include <utility>

namespace earshot::status {
namespace {

int rank(Liveness liveness) {
  return liveness == Liveness::alive ? 2 : liveness == Liveness::foreign ? 1 : 0;
}

/// Empty: the root's program has no registry.
std::string registry_path(const Root& root) {
  const RegistryFiles* const files = root.program->registry();
  return files ? root.path + '/' + std::string(files->registry_directory()) : std::string();
}

int urgency(const RegistryEntry& entry) {
  if (entry.state == "waiting") return entry.reason == "dialog" ? 4 : 5;
  if (entry.state == "working") return 3;
  if (entry.state == "idle") return entry.reason.empty() ? 1 : 2;
  return 0;
}

/// The first of two entries that applies.
bool is_before(const RegistryEntry& one, Liveness one_lives, const RegistryEntry& other,
               Liveness other_lives) {
  const auto key = [](const RegistryEntry& entry, Liveness liveness) {
    const int urgent = liveness == Liveness::alive ? urgency(entry) : 0;
    return std::tuple(rank(liveness), urgent, urgent >= 3 ? -entry.updated_ms : entry.updated_ms, entry.pid);
  };
  return key(one, one_lives) > key(other, other_lives);
}

std::vector<std::string> list_registry_files(const Root& root) {
  std::vector<std::string> names;
  const RegistryFiles* const files = root.program->registry();
  if (!files) return names;
  const Directory directory(registry_path(root), Symlinks::follow);
  if (directory.error()) return names;
  std::size_t seen = 0;
  directory.for_each([&](std::string_view name, FileType) {
    if (seen++ < ProcessRegistry::names_max && files->is_registry_file(name)) names.emplace_back(name);
  });
  return names;
}

}  // namespace

DirectoryId directory_id(const std::string& path) {
  const FileStat stat = stat_file(path, Symlinks::follow);
  if (!stat.ok() || !stat.is_directory()) return {};
  return {stat.device, stat.inode};
}

ProcessRegistry::ProcessRegistry(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                                 std::vector<Root> roots, watch::Watcher& watcher,
                                 std::shared_ptr<const ProcessTable> processes,
                                 ProcessRegistryOptions options, OnChange on_change, OnScanned on_scanned)
    : io_(io),
      disk_(std::move(disk)),
      roots_(std::move(roots)),
      watcher_(watcher),
      options_(options),
      on_change_(std::move(on_change)),
      on_scanned_(std::move(on_scanned)),
      processes_(std::move(processes)),
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
  const std::string path = registry_path(root);
  if (!path.empty() && directory_id(path) != DirectoryId{}) watcher_.watch(path);
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(
      disk_, [this, alive = std::weak_ptr<char>(alive_), &root, copy = root, guard = std::move(guard)] {
        auto names = list_registry_files(copy);
        boost::asio::post(guard.get_executor(), [this, alive, &root, names = std::move(names)] {
          if (alive.expired()) return;
          read_all(root, names);
        });
      });
}

void ProcessRegistry::read_all(const Root& root, const std::vector<std::string>& names) {
  std::set<std::string> paths;
  const std::string directory = registry_path(root), below = directory + "/";
  for (const std::string& name : names) paths.insert(below + name);
  for (const auto& [path, file] : files_)
    if (!directory.empty() && path.starts_with(below)) paths.insert(path);  // may have been removed
  for (const std::string& path : paths) {
    incomplete_.erase(path);
    read(root, path);
  }
  // The disk thread runs its tasks in order: each file was read before this.
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(disk_, [this, alive = std::weak_ptr<char>(alive_), &root, guard = std::move(guard)] {
    boost::asio::post(guard.get_executor(), [this, alive, &root] {
      if (!alive.expired()) on_scanned_(root.path);
    });
  });
}

void ProcessRegistry::on_change(const Root& root, std::string_view file_name) {
  if (stopped_ || !root.program->registry() || !root.program->registry()->is_registry_file(file_name)) return;
  const std::string path = registry_path(root) + '/' + std::string(file_name);
  incomplete_.erase(path);
  read(root, path);
}

/// Reads the file on the disk thread: its file system may hang.
void ProcessRegistry::read(const Root& root, const std::string& path) {
  const auto [reading, is_first] = reading_.try_emplace(path, false);
  if (!is_first) {
    reading->second = true;
    return;
  }
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(
      disk_, [this, alive = std::weak_ptr<char>(alive_), &root, path, guard = std::move(guard)] {
        auto file = read_small_file(path, RegistryFiles::registry_bytes_max);
        boost::asio::post(guard.get_executor(), [this, alive, &root, path, file = std::move(file)] {
          if (alive.expired()) return;
          const bool changed_again = reading_.extract(path).mapped();
          on_read(root, path, file);
          if (changed_again) read(root, path);
        });
      });
}

void ProcessRegistry::on_read(const Root& root, const std::string& path, const SmallFile& file) {
  if (file.is_missing()) {
    incomplete_.erase(path);
    if (const auto known = files_.find(path); known != files_.end()) remove(known);
    return;
  }
  if (!file.ok()) return;  // its last state stays
  auto entry = root.program->registry()->parse_registry_file(
      std::string_view(path).substr(path.rfind('/') + 1), file.text);
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
  file.program = root.program;
  const Liveness liveness_before = file.liveness;
  const std::string session_before = file.entry.session;
  const bool is_same_process = !is_new && file.entry.pid == entry.pid &&
                               file.entry.process_start == entry.process_start &&
                               file.entry.pid_domain == entry.pid_domain;
  const bool is_same_entry = !is_new && file.entry == entry;
  if (!is_same_process) {
    close_exit_watch(file);
    file.started_ms = processes_->time_of(processes_->start_of(entry.pid));
  }
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
    return processes_->check(entry.pid, entry.process_start, entry.pid_domain);
  };
  file.liveness = check_process();
  if (file.liveness == Liveness::alive && !file.exit_watch && processes_->can_watch_exits() &&
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
        for (const auto& [file, due] : incomplete_) read(*due.root, file);
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
  std::int64_t run_since_ms = 0;
  bool is_start_known = true;
  for (const std::string& path : paths->second) {
    const File& file = files_.at(path);
    if (!best.entry || is_before(file.entry, file.liveness, *best.entry, best.liveness))
      best = {&file.entry, file.liveness, file.program};
    if (file.liveness != Liveness::alive) continue;
    is_start_known &= file.started_ms != 0;
    if (!run_since_ms || file.started_ms < run_since_ms) run_since_ms = file.started_ms;
  }
  if (is_start_known) best.run_since_ms = run_since_ms;
  return best;
}

bool ProcessRegistry::is_registered(std::int64_t pid) const {
  return std::any_of(files_.begin(), files_.end(), [&](const auto& each) {
    const File& file = each.second;
    return file.entry.pid == pid && file.liveness == Liveness::alive &&
           (!file.entry.session.empty() || file.entry.is_spare);
  });
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
