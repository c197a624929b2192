#include "team/event_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "base/clock.hpp"
#include "tail/host_names.hpp"

namespace earshot::team {
namespace {

namespace fs = std::filesystem;

std::string host_of(const std::string& name) { return name.substr(0, name.find('/')); }

Kept kept_of(const Received& received) {
  Kept kept;
  kept.store = received.store, kept.sequence = received.sequence, kept.time_ns = received.time_ns;
  return kept;
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
      if (file.ends_with(StreamFile::fresh_suffix)) {
        fs::remove(entry.path(), failed);
        continue;
      }
      if (!file.ends_with(StreamFile::suffix) || !entry.is_regular_file(failed)) continue;
      const std::string name =
          host.path().filename().string() + "/" + file.substr(0, file.size() - StreamFile::suffix.size());
      StreamFile& one = add(name)->second;
      if (one.load()) lost_something_ = true;
      grew(name, 0, one.bytes());
    }
  }
}

Kept EventStore::newest(const std::string& store) const {
  Kept newest;
  for (const auto& [name, file] : files_)
    if (file.kept.store == store && file.kept.sequence > newest.sequence) newest = file.kept;
  return newest;
}

EventStore::Files::iterator EventStore::add(const std::string& name) {
  const auto found = files_.try_emplace(name, path_of(name)).first;
  ++hosts_[host_of(name)].files;
  figures_.hosts = hosts_.size();
  figures_.files = files_.size();
  return found;
}

void EventStore::grew(const std::string& name, std::uint64_t before, std::uint64_t now) {
  hosts_[host_of(name)].bytes += now - before;
  figures_.bytes += now - before;
}

bool EventStore::has_room(const std::string& name) const {
  const auto host = hosts_.find(host_of(name));
  return host == hosts_.end() ? hosts_.size() < limits_.hosts_max
                              : host->second.files < limits_.host_files_max;
}

IngestAction EventStore::take(const Received& received) {
  const std::string name = tail::escape(received.host) + "/" + tail::escape(received.stream);
  auto found = files_.find(name);
  if (found == files_.end()) {
    const auto gone = gone_.find(name);
    const bool late = gone != gone_.end() && is_repeated(gone->second, received);
    if (late || !received.cursor) {
      ++figures_.dropped;
      return IngestAction::drop;
    }
    if (!has_room(name)) {
      ++(hosts_.contains(host_of(name)) ? figures_.files_refused : figures_.hosts_refused);
      return IngestAction::drop;
    }
    found = add(name);
  }
  StreamFile& file = found->second;
  const std::size_t entries_before = file.entries_bytes();
  const auto entries = [&]() -> const std::vector<Entry>& { return file.entries(); };
  const Verdict verdict = judge(file.kept, received, entries);
  if (verdict.fate == IngestAction::remove) {
    ++figures_.removed;
    remember_gone(name, received);
    let_go(found);
    return verdict.fate;
  }
  const bool is_due = file.is_waiting();
  if (verdict.fate == IngestAction::drop) {
    ++figures_.dropped;
  } else if (verdict.fate == IngestAction::restart) {
    ++figures_.restarted;
    file.restart(received, verdict.keep);
  } else {
    file.append(received);
  }
  if (verdict.fate != IngestAction::drop && received.cursor) ++figures_.appended;
  if (!is_due && file.is_waiting()) due_.push_back(name);
  if (!is_repeated(file.kept, received)) {
    file.kept.store = received.store;
    file.kept.sequence = received.sequence;
    file.kept.time_ns = received.time_ns;
  }
  entries_bytes_ += file.entries_bytes() - entries_before;
  bound_entries(file);
  return verdict.fate;
}

void EventStore::remember_gone(const std::string& name, const Received& received) {
  if (gone_.insert_or_assign(name, kept_of(received)).second) gone_order_.push_back(name);
  if (gone_order_.size() <= limits_.gone_max) return;
  gone_.erase(gone_order_.front());
  gone_order_.pop_front();
}

/// What others asked for is read again when somebody asks.
void EventStore::bound_entries(const StreamFile& used) {
  if (entries_bytes_ <= limits_.entries_bytes_max) return;
  for (auto& [name, file] : files_)
    if (&file != &used) file.forget_entries();
  entries_bytes_ = used.entries_bytes();
}

std::string EventStore::write() {
  const std::int64_t now_ms = watch::wall_now_ms();
  while (!due_.empty()) {
    const auto found = files_.find(due_.back());
    if (found != files_.end() && found->second.is_waiting()) {
      StreamFile& file = found->second;
      const std::uint64_t before = file.bytes();
      open_ -= file.is_open();
      const std::string why = file.write();
      open_ += file.is_open();
      grew(found->first, before, file.bytes());
      if (!why.empty()) return why;
      file.used_ms = now_ms;
    }
    due_.pop_back();
  }
  if (open_ <= limits_.open_files_max) return {};
  // All of them: who still writes opens one again, which costs less than keeping an order.
  for (auto& [name, file] : files_) file.close();
  open_ = 0;
  return {};
}

std::string EventStore::sync() const {
#ifdef __linux__
  const int descriptor = ::open(directory_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
  if (descriptor < 0) return directory_ + ": " + std::strerror(errno);
  const int failed = ::syncfs(descriptor);
  const std::string why = failed ? directory_ + ": " + std::strerror(errno) : std::string();
  ::close(descriptor);
  return why;
#else
  ::sync();
  return {};
#endif
}

void EventStore::let_go(Files::iterator found) {
  open_ -= found->second.is_open();
  entries_bytes_ -= found->second.entries_bytes();
  found->second.remove();
  const auto host = hosts_.find(host_of(found->first));
  grew(found->first, found->second.bytes(), 0);
  if (host != hosts_.end() && --host->second.files == 0) hosts_.erase(host);
  files_.erase(found);
  figures_.hosts = hosts_.size();
  figures_.files = files_.size();
}

void EventStore::retire(std::int64_t now_ms) {
  using Rested = std::vector<std::pair<std::int64_t, std::string>>;
  std::map<std::string, Rested> hosts;  // the one that rested longest last
  for (const auto& [name, file] : files_)
    if (!file.is_waiting()) hosts[host_of(name)].emplace_back(file.used_ms, name);
  const auto retire_last = [&](Rested& rested) {
    const auto found = files_.find(rested.back().second);
    rested.pop_back();
    ++figures_.retired;
    let_go(found);
  };
  for (auto& [host, rested] : hosts) {
    std::sort(rested.begin(), rested.end(), std::greater<>());
    while (!rested.empty() && now_ms - rested.back().first > limits_.age_ms) retire_last(rested);
  }
  // Of too much, who has most gives: one that floods takes nothing from the others.
  while (figures_.bytes > limits_.bytes_max) {
    Rested* most = nullptr;
    std::uint64_t bytes = 0;
    for (auto& [host, rested] : hosts) {
      const auto of_host = hosts_.find(host);
      if (rested.empty() || of_host == hosts_.end() || of_host->second.bytes < bytes) continue;
      bytes = of_host->second.bytes;
      most = &rested;
    }
    if (!most) return;
    retire_last(*most);
  }
}

}  // namespace earshot::team
