#include "status/process_registry.hpp"

#include <dirent.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "status/small_file.hpp"

namespace earshot::status {

namespace {

std::vector<std::string> list(const std::string& directory, std::size_t names_max) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  if (!open) return names;
  for (std::size_t seen = 0; seen < names_max; ++seen) {
    const dirent* entry = ::readdir(open.get());
    if (!entry) break;
    if (pid_of_name(entry->d_name)) names.emplace_back(entry->d_name);
  }
  return names;
}

int rank(Liveness life) { return life == Liveness::alive ? 2 : life == Liveness::foreign ? 1 : 0; }

}  // namespace

ProcessRegistry::ProcessRegistry(boost::asio::io_context& io, boost::asio::any_io_executor disk,
                                 std::vector<std::string> roots, watch::Watcher& watcher,
                                 ProcessRegistryOptions options, Changed changed, Scanned scanned)
    : io_(io),
      disk_(std::move(disk)),
      roots_(std::move(roots)),
      watcher_(watcher),
      options_(std::move(options)),
      changed_(std::move(changed)),
      scanned_(std::move(scanned)),
      processes_(options_.proc_dir, options_.machine_id_path),
      kernel_tells_(options_.proc_dir == "/proc"),
      retry_timer_(io),
      beat_timer_(io) {}

void ProcessRegistry::stop() {
  stopped_ = true;
  here_.reset();
  retry_timer_.cancel();
  beat_timer_.cancel();
  for (auto& [path, known] : files_) known.death.reset();
}

void ProcessRegistry::scan(const std::string& root) {
  if (stopped_) return;
  const std::string directory = root + "/sessions";
  if (directory_at(directory) != Identity{})
    watcher_.watch(directory);  // before it is listed: what appears in between rings
  auto guard = boost::asio::make_work_guard(io_);
  boost::asio::post(
      disk_, [this, here = std::weak_ptr<char>(here_), root, directory, guard = std::move(guard)] {
        auto names = list(directory, names_max);
        boost::asio::post(guard.get_executor(), [this, here, root, directory, names = std::move(names)] {
          if (!here.lock()) return;
          listed(directory, names);
          scanned_(root);
        });
      });
}

void ProcessRegistry::listed(const std::string& directory, const std::vector<std::string>& names) {
  std::set<std::string> paths;
  const std::string below = directory + "/";
  for (const std::string& name : names) paths.insert(below + name);
  for (const auto& [path, known] : files_) {
    if (path.starts_with(below)) paths.insert(path);  // perhaps gone: looking tells
  }
  for (const std::string& path : paths) look(path, false);
}

void ProcessRegistry::on_change(const std::string& root, const std::string& below_sessions) {
  if (!stopped_ && pid_of_name(below_sessions)) look(root + "/sessions/" + below_sessions, false);
}

void ProcessRegistry::look(const std::string& path, bool again) {
  if (!again) torn_.erase(path);
  const SmallFile file = read_small_file(path, entry_bytes_max);
  if (file.outcome == SmallFile::Outcome::gone) {
    torn_.erase(path);
    if (const auto known = files_.find(path); known != files_.end()) drop(known);
    return;
  }
  if (file.outcome == SmallFile::Outcome::unusable) return;
  auto entry = parse_entry(file.text);
  if (!entry) return retry_later(path);
  torn_.erase(path);
  if (entry->pid <= 0) entry->pid = pid_of_name(path.substr(path.rfind('/') + 1)).value_or(0);
  apply(path, std::move(*entry));
}

void ProcessRegistry::apply(const std::string& path, RegistryEntry entry) {
  auto found = files_.find(path);
  const bool fresh = found == files_.end();
  if (fresh) {
    if (files_.size() >= entries_max) return;
    found = files_.try_emplace(path).first;
  }
  Known& known = found->second;
  const Liveness life = known.life;
  const std::string session_before = known.entry.session;
  const bool same_process = !fresh && known.entry.pid == entry.pid &&
                            known.entry.proc_start == entry.proc_start &&
                            known.entry.pid_domain == entry.pid_domain;
  const bool same = !fresh && known.entry == entry;
  if (!same_process && known.death) {
    known.death.reset();
    --death_watches_;
  }
  known.entry = std::move(entry);
  check(path, known);
  if (same && known.life == life) return;

  const std::string session = known.entry.session;
  if (session_before != session) {  // a program may take up another session
    if (const auto old = paths_.find(session_before); old != paths_.end()) {
      old->second.erase(path);
      if (old->second.empty()) paths_.erase(old);
    }
  }
  if (!session.empty()) paths_[session].insert(path);
  if (!session_before.empty() && session_before != session) changed_(session_before);
  if (!session.empty()) changed_(session);
}

void ProcessRegistry::check(const std::string& path, Known& known) {
  const RegistryEntry& entry = known.entry;
  known.life = processes_.check(entry.pid, entry.proc_start, entry.pid_domain);
  if (known.life == Liveness::alive && !known.death && kernel_tells_ && death_watches_ < death_watches_max) {
    known.death = DeathWatch::open(io_, entry.pid, [this, path] { died(path); });
    // Before it was held the pid may have passed to another process: judge the one that is held.
    if (known.death) {
      ++death_watches_;
      known.life = processes_.check(entry.pid, entry.proc_start, entry.pid_domain);
    }
  }
  if (known.life != Liveness::alive && known.death) {
    known.death.reset();
    --death_watches_;
  }
  if (known.life == Liveness::alive && !known.death) arm_beat();
}

void ProcessRegistry::drop(Files::iterator file) {
  const std::string session = file->second.entry.session;
  if (file->second.death) --death_watches_;
  if (const auto paths = paths_.find(session); paths != paths_.end()) {
    paths->second.erase(file->first);
    if (paths->second.empty()) paths_.erase(paths);
  }
  files_.erase(file);
  if (!session.empty()) changed_(session);
}

void ProcessRegistry::died(const std::string& path) {
  const auto found = files_.find(path);
  if (found == files_.end() || stopped_) return;
  if (found->second.death) --death_watches_;
  found->second.death.reset();
  found->second.life = Liveness::dead;
  const std::string session = found->second.entry.session;
  if (!session.empty()) changed_(session);
}

void ProcessRegistry::retry_later(const std::string& path) {
  int& tries = torn_[path];
  if (tries >= retries_max) {
    torn_.erase(path);
    return;
  }
  const auto delay = options_.retry * (1 << tries);
  ++tries;
  if (retry_armed_) return;  // it comes sooner or at most one doubling later
  retry_armed_ = true;
  retry_timer_.expires_after(delay);
  retry_timer_.async_wait([this, here = std::weak_ptr<char>(here_)](const boost::system::error_code& failed) {
    if (failed || !here.lock()) return;
    retry_armed_ = false;
    std::vector<std::string> paths;
    for (const auto& [torn, count] : torn_) paths.push_back(torn);
    for (const std::string& torn : paths) look(torn, true);
  });
}

void ProcessRegistry::check_all() {
  std::vector<std::string> changed;
  for (auto& [path, known] : files_) {
    const Liveness before = known.life;
    check(path, known);
    if (known.life != before && !known.entry.session.empty()) changed.push_back(known.entry.session);
  }
  for (const std::string& session : changed) changed_(session);
}

void ProcessRegistry::arm_beat() {
  if (beat_armed_ || stopped_) return;
  beat_armed_ = true;
  beat_timer_.expires_after(options_.beat);
  beat_timer_.async_wait([this, here = std::weak_ptr<char>(here_)](const boost::system::error_code& failed) {
    if (failed || !here.lock()) return;
    beat_armed_ = false;
    check_all();  // arms the next one if it is needed
  });
}

ProcessRegistry::RegistrySource ProcessRegistry::entry_of(const std::string& session) const {
  RegistrySource best;
  const auto paths = paths_.find(session);
  if (paths == paths_.end()) return best;
  for (const std::string& path : paths->second) {
    const Known& known = files_.at(path);
    const bool better =
        !best.entry || rank(known.life) > rank(best.life) ||
        (rank(known.life) == rank(best.life) && known.entry.said_ms() > best.entry->said_ms());
    if (better) best = {&known.entry, known.life};
  }
  return best;
}

std::vector<std::string> ProcessRegistry::alive_sessions() const {
  std::vector<std::string> sessions;
  for (const auto& [session, paths] : paths_) {
    const bool lives = std::any_of(paths.begin(), paths.end(), [&](const std::string& path) {
      return files_.at(path).life == Liveness::alive;
    });
    if (lives) sessions.push_back(session);
  }
  std::sort(sessions.begin(), sessions.end());
  return sessions;
}

}  // namespace earshot::status
