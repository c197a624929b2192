#include "watch/directory_snapshot.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace earshot::watch {
namespace {

// Some file systems record times in units of two seconds (FAT): a listing this soon after a change may have
// missed another change.
constexpr std::int64_t time_granularity_ns = 2'000'000'000;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

std::uint64_t signature(const FileStat& stat) {
  if (!stat.ok()) return 1;
  std::uint64_t hash = mix(mix(0x65617273686f74u, stat.inode),
                           std::uint64_t{stat.mode} << 8 | static_cast<std::uint8_t>(stat.type));
  if (!stat.is_directory())
    hash = mix(mix(mix(hash, stat.size), static_cast<std::uint64_t>(stat.modified_ns)),
               static_cast<std::uint64_t>(stat.changed_ns));
  return hash < 2 ? 2 : hash;
}

}  // namespace

std::uint64_t signature_of(const std::string& path) { return signature(stat_file(path)); }

void DirectorySnapshot::add(const std::string& path) {
  list(Directory(path, Symlinks::follow), directories_[path]);
}

void DirectorySnapshot::remove(const std::string& path) {
  const std::string below = path + '/';
  directories_.erase(path);
  if (const auto slash = path.rfind('/'); slash != path.npos && slash > 0)
    if (const auto parent = directories_.find(std::string_view(path).substr(0, slash));
        parent != directories_.end())
      parent->second.mark_missing(std::string_view(path).substr(slash + 1));
  for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);)
    at = directories_.erase(at);
}

void DirectorySnapshot::Content::mark_missing(std::string_view missing) {
  const auto at =
      std::lower_bound(entries.begin(), entries.end(), missing,
                       [this](const Entry& entry, std::string_view wanted) { return name(entry) < wanted; });
  if (at != entries.end() && name(*at) == missing) at->signature = 1;
}

/// False if the directory cannot be listed; its content is then empty.
bool DirectorySnapshot::list(const Directory& directory, Content& content) {
  content = {};
  content.listed_ns = wall_now().count();  // before the listing: a change during it counts as later
  const FileStat stat = directory.stat();
  if (!stat.ok()) return false;
  content.modified_ns = stat.modified_ns;
  const int error = directory.for_each([&](std::string_view name, FileType) {
    content.entries.push_back({signature(directory.stat_entry(name.data())),
                               static_cast<std::uint32_t>(content.names.size()),
                               static_cast<std::uint32_t>(name.size())});
    content.names += name;
    content.names += '\0';
  });
  content.exists = error == 0;
  content.names.shrink_to_fit();
  content.entries.shrink_to_fit();
  std::sort(content.entries.begin(), content.entries.end(),
            [&](const Entry& a, const Entry& b) { return content.name(a) < content.name(b); });
  return content.exists;
}

void DirectorySnapshot::compare(const std::string& path, const Content& before, const Content& after,
                                std::vector<ChangeHint>& hints) {
  const auto add_hint = [&](std::string_view name, bool entry) {
    hints.push_back({ChangeHint::Where::path, path + '/' + std::string(name), entry});
  };
  // Removed names first: after a rename the old name is removed before the new one is found.
  std::vector<std::pair<std::string_view, bool>> changed;
  auto old = before.entries.begin();
  for (const Entry& entry : after.entries) {
    const std::string_view name = after.name(entry);
    for (; old != before.entries.end() && before.name(*old) < name; ++old) add_hint(before.name(*old), true);
    const bool known = old != before.entries.end() && before.name(*old) == name;
    if (!known || old->signature != entry.signature) changed.emplace_back(name, !known);
    if (known) ++old;
  }
  for (; old != before.entries.end(); ++old) add_hint(before.name(*old), true);
  for (const auto& [name, entry] : changed) add_hint(name, entry);
}

/// Returns the entry to continue with; 0: this directory is done.
std::size_t DirectorySnapshot::check(Directories::value_type& each, std::size_t from, std::size_t stats_max,
                                     std::vector<ChangeHint>& hints) {
  auto& [path, known] = each;
  const Directory directory(path, Symlinks::follow);
  const FileStat stat = directory.stat();
  if (!stat.ok()) {
    if (known.exists) hints.push_back({ChangeHint::Where::directory, path});
    known = {};
    return 0;
  }
  if (from == 0 && (!known.exists || stat.modified_ns != known.modified_ns ||
                    known.modified_ns > known.listed_ns - time_granularity_ns)) {
    Content now;
    if (!list(directory, now)) return 0;
    if (!known.exists) hints.push_back({ChangeHint::Where::directory, path});
    compare(path, known, now, hints);
    known = std::move(now);
    return 0;
  }
  std::size_t at = from;
  for (; at < known.entries.size() && at - from < stats_max; ++at) {
    Entry& entry = known.entries[at];
    const char* name = known.names.c_str() + entry.name_at;
    const std::uint64_t now = signature(directory.stat_entry(name));
    if (now == entry.signature) continue;
    entry.signature = now;
    hints.push_back({ChangeHint::Where::path, path + '/' + name});
  }
  return at < known.entries.size() ? at : 0;
}

bool DirectorySnapshot::check_slice(std::size_t stats_max, std::vector<ChangeHint>& hints) {
  auto at = directories_.lower_bound(next_);
  if (at == directories_.end() || at->first != next_) next_entry_ = 0;  // it was removed
  for (std::size_t spent = 0; at != directories_.end(); ++at, next_entry_ = 0) {
    if (spent >= stats_max) {
      next_ = at->first;
      return false;
    }
    const std::size_t next = check(*at, next_entry_, stats_max - spent, hints);
    if (next != 0) {
      next_ = at->first;
      next_entry_ = next;
      return false;
    }
    spent += at->second.entries.size() - std::min(next_entry_, at->second.entries.size()) + 1;
  }
  next_.clear();
  next_entry_ = 0;
  return true;
}

}  // namespace earshot::watch
