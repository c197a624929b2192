#include "team/event_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "agents/stream_name.hpp"
#include "base/clock.hpp"

namespace earshot::team {
namespace {

namespace fs = std::filesystem;

std::string host_of(const std::string& name) { return name.substr(0, name.find('/')); }

StoredPosition position_of(const ReceivedMessage& message) {
  StoredPosition position;
  position.store = message.store, position.sequence = message.sequence, position.time_ns = message.time_ns;
  return position;
}

}  // namespace

EventStore::EventStore(std::string directory, EventStoreLimits limits)
    : directory_(std::move(directory)), limits_(limits) {
  std::error_code failed;
  fs::create_directories(directory_ + "/projects", failed);
  if (failed) throw std::runtime_error(directory_ + ": " + failed.message());
  fs::permissions(directory_, fs::perms::owner_all, failed);
  load();
}

void EventStore::load() {
  std::error_code failed;
  const fs::path top = directory_ + "/projects";
  for (const auto& host : fs::directory_iterator(top, failed)) {
    if (!host.is_directory(failed)) continue;
    for (const auto& entry : fs::directory_iterator(host.path(), failed)) {
      const std::string file = entry.path().filename().string();
      if (file.ends_with(StreamFile::temporary_suffix)) {
        fs::remove(entry.path(), failed);
        continue;
      }
      if (!file.ends_with(StreamFile::suffix) || !entry.is_regular_file(failed)) continue;
      const std::string name =
          host.path().filename().string() + "/" + file.substr(0, file.size() - StreamFile::suffix.size());
      StreamFile& stored = add_file(name)->second;
      if (stored.load()) was_truncated_ = true;
      update_bytes(name, 0, stored.bytes());
    }
  }
}

StoredPosition EventStore::last_received(const std::string& store) const {
  StoredPosition newest;
  for (const auto& [name, file] : files_)
    if (file.position.store == store && file.position.sequence > newest.sequence) newest = file.position;
  return newest;
}

EventStore::Files::iterator EventStore::add_file(const std::string& name) {
  const auto found = files_.try_emplace(name, path_of(name)).first;
  ++hosts_[host_of(name)].files;
  metrics_.hosts = hosts_.size();
  metrics_.files = files_.size();
  return found;
}

void EventStore::update_bytes(const std::string& name, std::uint64_t before, std::uint64_t now) {
  hosts_[host_of(name)].bytes += now - before;
  metrics_.bytes += now - before;
}

bool EventStore::has_room(const std::string& name) const {
  const auto host = hosts_.find(host_of(name));
  return host == hosts_.end() ? hosts_.size() < limits_.hosts_max
                              : host->second.files < limits_.host_files_max;
}

IngestAction EventStore::add(const ReceivedMessage& message) {
  const std::string name = escape_token(message.host) + "/" + escape_token(message.stream);
  auto found = files_.find(name);
  if (found == files_.end()) {
    const auto removed = removed_.find(name);
    const bool is_late = removed != removed_.end() && is_redelivered(removed->second, message);
    if (is_late || !message.cursor) {
      ++metrics_.dropped;
      return IngestAction::drop;
    }
    if (!has_room(name)) {
      ++(hosts_.contains(host_of(name)) ? metrics_.files_refused : metrics_.hosts_refused);
      return IngestAction::drop;
    }
    found = add_file(name);
  }
  StreamFile& file = found->second;
  const std::size_t entries_before = file.entries_bytes();
  const auto entries = [&]() -> const std::vector<StoredEvent>& { return file.entries(); };
  const IngestDecision decision = decide(file.position, message, entries);
  if (decision.action == IngestAction::remove) {
    ++metrics_.removed;
    remember_removed(name, message);
    delete_file(found);
    return decision.action;
  }
  const bool is_due = file.has_pending();
  if (decision.action == IngestAction::drop) {
    ++metrics_.dropped;
  } else if (decision.action == IngestAction::restart) {
    ++metrics_.restarted;
    file.restart(message, decision.kept_events);
  } else {
    file.append(message);
  }
  if (decision.action != IngestAction::drop && message.cursor) ++metrics_.appended;
  if (!is_due && file.has_pending()) dirty_.push_back(name);
  if (!is_redelivered(file.position, message)) {
    file.position.store = message.store;
    file.position.sequence = message.sequence;
    file.position.time_ns = message.time_ns;
  }
  entries_bytes_ += file.entries_bytes() - entries_before;
  limit_index_bytes(file);
  return decision.action;
}

void EventStore::remember_removed(const std::string& name, const ReceivedMessage& message) {
  if (removed_.insert_or_assign(name, position_of(message)).second) removed_order_.push_back(name);
  if (removed_order_.size() <= limits_.removed_max) return;
  removed_.erase(removed_order_.front());
  removed_order_.pop_front();
}

/// Drops the indexes of all other files above the limit; they are reloaded on demand.
void EventStore::limit_index_bytes(const StreamFile& used) {
  if (entries_bytes_ <= limits_.entries_bytes_max) return;
  for (auto& [name, file] : files_)
    if (&file != &used) file.forget_entries();
  entries_bytes_ = used.entries_bytes();
}

std::string EventStore::write() {
  const std::int64_t now_ms = wall_now_ms();
  while (!dirty_.empty()) {
    const auto found = files_.find(dirty_.back());
    if (found != files_.end() && found->second.has_pending()) {
      StreamFile& file = found->second;
      const std::uint64_t before = file.bytes();
      open_files_ -= file.is_open();
      const std::string error = file.write();
      open_files_ += file.is_open();
      update_bytes(found->first, before, file.bytes());
      if (!error.empty()) return error;
      file.modified_ms = now_ms;
    }
    dirty_.pop_back();
  }
  if (open_files_ <= limits_.open_files_max) return {};
  // Close all: reopening the active ones is cheaper than tracking the order of use.
  for (auto& [name, file] : files_) file.close();
  open_files_ = 0;
  return {};
}

std::string EventStore::sync() const {
#ifdef __linux__
  const Fd directory(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!directory || ::syncfs(directory.get()) != 0) return directory_ + ": " + std::strerror(errno);
  return {};
#else
  ::sync();
  return {};
#endif
}

void EventStore::delete_file(Files::iterator found) {
  open_files_ -= found->second.is_open();
  entries_bytes_ -= found->second.entries_bytes();
  found->second.remove();
  const auto host = hosts_.find(host_of(found->first));
  update_bytes(found->first, found->second.bytes(), 0);
  if (host != hosts_.end() && --host->second.files == 0) hosts_.erase(host);
  files_.erase(found);
  metrics_.hosts = hosts_.size();
  metrics_.files = files_.size();
}

void EventStore::apply_retention(std::int64_t now_ms) {
  using IdleFiles = std::vector<std::pair<std::int64_t, std::string>>;
  std::map<std::string, IdleFiles> hosts;  // the oldest file last
  for (const auto& [name, file] : files_)
    if (!file.has_pending()) hosts[host_of(name)].emplace_back(file.modified_ms, name);
  const auto delete_oldest = [&](IdleFiles& idle) {
    const auto found = files_.find(idle.back().second);
    idle.pop_back();
    ++metrics_.retired;
    delete_file(found);
  };
  for (auto& [host, idle] : hosts) {
    std::sort(idle.begin(), idle.end(), std::greater<>());
    while (!idle.empty() && now_ms - idle.back().first > limits_.age_ms) delete_oldest(idle);
  }
  // Above the cap, the largest host's oldest files are deleted, so that it cannot displace other hosts.
  while (metrics_.bytes > limits_.bytes_max) {
    IdleFiles* largest = nullptr;
    std::uint64_t bytes = 0;
    for (auto& [host, idle] : hosts) {
      const auto of_host = hosts_.find(host);
      if (idle.empty() || of_host == hosts_.end() || of_host->second.bytes < bytes) continue;
      bytes = of_host->second.bytes;
      largest = &idle;
    }
    if (!largest) return;
    delete_oldest(*largest);
  }
}

}  // namespace earshot::team
