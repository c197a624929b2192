#include "watch/sweep.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>
#include <string_view>
#include <utility>

#include "base/file.hpp"
#include "base/system.hpp"

namespace earshot::watch {
namespace {

// Some file systems record times in units of two seconds (FAT): a listing this soon after a change may have
// missed another change.
constexpr std::int64_t time_granularity_ns = 2'000'000'000;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

/// Inode, mode, size and times of a file as one number; of a directory inode and mode only, because its
/// content has a watch of its own. Links are not followed. 1 if there is no such file; never 0.
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

namespace asio = boost::asio;

// The state of all watched directories at the last sweep: names and a 64-bit signature each. Used on the disk
// thread only.
class DirectorySnapshot {
 public:
  /// Records the present content. A known directory is recorded again: the caller scans it next, and a name
  /// that this scan finds must be known here when it disappears.
  void add(const std::string& directory);
  /// The same, with the caller's listing.
  DirectoryListing list_and_add(const std::string& directory, ListingSymlinks symlinks,
                                const std::function<bool(const std::string&)>& is_wanted);
  /// Removes the directory and everything below it. If the directory exists after all, with the same inode,
  /// the next sweep reports it in its parent.
  void remove(const std::string& directory);

  /// Checks the next `stats_max` entries, in turn. True if that completed a pass over all directories.
  bool check_slice(std::size_t stats_max, std::vector<ChangeHint>& hints);
  /// At the beginning of this pass.
  std::size_t entries() const { return entries_; }

 private:
  struct Entry {
    std::uint64_t signature;
    std::uint32_t name_at, name_bytes;
  };
  struct Content {
    std::string names;           // of all entries, each followed by a NUL
    std::vector<Entry> entries;  // sorted by name
    std::int64_t modified_ns = 0, listed_ns = 0;
    bool exists = false;
    std::string_view name(const Entry& entry) const {
      return std::string_view(names).substr(entry.name_at, entry.name_bytes);
    }
    void add(std::string_view name, const FileStat& stat);
    void sort();
    void mark_missing(std::string_view name);
  };
  using Directories = std::map<std::string, Content, std::less<>>;

  static bool list(const Directory& directory, Content& content);
  static void compare(const std::string& path, const Content& before, const Content& after,
                      std::vector<ChangeHint>& hints);
  static std::size_t check(Directories::value_type& each, std::size_t from, std::size_t stats_max,
                           std::vector<ChangeHint>& hints);

  Directories directories_;
  std::string next_;            // the directory to check next; empty: a pass begins
  std::size_t next_entry_ = 0;  // in that directory
  std::size_t entries_ = 0;     // with the directories
};

void DirectorySnapshot::add(const std::string& path) {
  list(Directory(path, Symlinks::follow), directories_[path]);
}

DirectoryListing DirectorySnapshot::list_and_add(const std::string& path, ListingSymlinks symlinks,
                                                 const std::function<bool(const std::string&)>& is_wanted) {
  Content content;
  content.listed_ns = wall_now().count();
  DirectoryListing listing =
      list_directory(path, symlinks, is_wanted,
                     [&](std::string_view name, const FileStat& stat) { content.add(name, stat); });
  content.modified_ns = listing.stat.modified_ns;
  content.exists = listing.stat.ok();
  content.sort();
  directories_[path] = std::move(content);
  return listing;
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
  const int error = directory.for_each(
      [&](std::string_view name, FileType) { content.add(name, directory.stat_entry(name.data())); });
  content.exists = error == 0;
  content.sort();
  return content.exists;
}

void DirectorySnapshot::Content::add(std::string_view name, const FileStat& stat) {
  entries.push_back(
      {signature(stat), static_cast<std::uint32_t>(names.size()), static_cast<std::uint32_t>(name.size())});
  names += name;
  names += '\0';
}

void DirectorySnapshot::Content::sort() {
  names.shrink_to_fit();
  entries.shrink_to_fit();
  std::sort(entries.begin(), entries.end(),
            [this](const Entry& a, const Entry& b) { return name(a) < name(b); });
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
  if (next_.empty()) {
    entries_ = directories_.size();
    for (const auto& [path, content] : directories_) entries_ += content.entries.size();
  }
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

Sweep::Sweep(asio::io_context& io, asio::any_io_executor disk, ChangeCallback on_change,
             SweepIntervals intervals, std::function<bool()> is_alone)
    : io_(io),
      disk_(std::move(disk)),
      on_change_(std::move(on_change)),
      intervals_(intervals),
      is_alone_(std::move(is_alone)),
      hot_timer_(io),
      pass_timer_(io),
      slow_wait_(intervals.slow / 4),  // the number of files is not known yet
      snapshot_(std::make_shared<DirectorySnapshot>()),
      alive_(std::make_shared<Sweep*>(this)) {}

Sweep::~Sweep() = default;

void Sweep::watch(const std::string& directory) {
  asio::post(disk_, [snapshot = snapshot_, directory] { snapshot->add(directory); });
  watch_before_listing(directory);
}

DirectoryLister Sweep::lister() const {
  return [snapshot = snapshot_](const std::string& path, ListingSymlinks symlinks,
                                const std::function<bool(const std::string&)>& is_wanted) {
    return snapshot->list_and_add(path, symlinks, is_wanted);
  };
}

void Sweep::watch_before_listing(const std::string&) {
  has_directories_ = true;
  // Notifications may have become unreliable with this directory: do not wait for the slow interval then.
  if (waits_slow_ && is_alone_ && is_alone_()) {
    waits_slow_ = pass_scheduled_ = false;
    pass_timer_.cancel();
  }
  schedule_pass();
}

void Sweep::unwatch(const std::string& directory) {
  asio::post(disk_, [snapshot = snapshot_, directory] { snapshot->remove(directory); });
}

void Sweep::mark_hot(const std::string& path) {
  const auto until = Clock::now() + intervals_.hot_for;
  if (const auto at = hot_files_.find(path); at != hot_files_.end()) {
    at->second.until = until;
    return;
  }
  if (hot_files_.size() >= hot_max) return;
  hot_files_.emplace(path, HotFile{0, until});
  schedule_hot();
}

void Sweep::schedule_hot() {
  if (hot_scheduled_ || hot_files_.empty()) return;
  hot_scheduled_ = true;
  hot_timer_.expires_after(intervals_.hot);
  hot_timer_.async_wait(
      [this, weak = std::weak_ptr<Sweep*>(alive_)](const boost::system::error_code& failed) {
        if (!failed && !weak.expired()) check_hot();
      });
}

void Sweep::check_hot() {
  const auto now = Clock::now();
  std::erase_if(hot_files_, [&](const auto& each) { return each.second.until < now; });
  std::vector<std::pair<std::string, std::uint64_t>> files;
  files.reserve(hot_files_.size());
  for (const auto& [path, hot] : hot_files_) files.emplace_back(path, hot.signature);
  asio::post(disk_, [files = std::move(files), weak = std::weak_ptr<Sweep*>(alive_), &io = io_]() mutable {
    std::erase_if(files, [](auto& each) {
      const std::uint64_t before = std::exchange(each.second, signature(stat_file(each.first)));
      return each.second == before;
    });
    asio::post(io, [changed = std::move(files), weak] {
      if (weak.expired()) return;
      Sweep& self = **weak.lock();
      self.hot_scheduled_ = false;
      std::vector<ChangeHint> hints;
      for (const auto& [path, signature] : changed) {
        if (const auto at = self.hot_files_.find(path); at != self.hot_files_.end())
          at->second.signature = signature;
        hints.push_back({ChangeHint::Where::path, path});
      }
      self.report(std::move(hints));
      if (!weak.expired()) self.schedule_hot();
    });
  });
}

void Sweep::schedule_pass() {
  if (pass_scheduled_ || !has_directories_) return;
  pass_scheduled_ = true;
  waits_slow_ = is_slow();
  pass_timer_.expires_after(waits_slow_ ? slow_wait_ : intervals_.alone);
  pass_timer_.async_wait([weak = std::weak_ptr<Sweep*>(alive_)](const boost::system::error_code& failed) {
    if (failed || weak.expired()) return;
    Sweep& self = **weak.lock();
    self.waits_slow_ = false;
    self.run_pass();
  });
}

/// Some slices of a slow pass, or all of another.
void Sweep::run_pass() {
  asio::post(disk_, [snapshot = snapshot_, weak = std::weak_ptr<Sweep*>(alive_), &io = io_] {
    std::vector<ChangeHint> hints;
    const bool completed = snapshot->check_slice(slice_stats, hints);
    asio::post(io, [hints = std::move(hints), completed, entries = snapshot->entries(), weak]() mutable {
      if (weak.expired()) return;
      Sweep& self = **weak.lock();
      ++self.slices_;
      const bool waits = completed || (self.slices_ >= slow_slices && self.is_slow());
      if (waits) {
        const auto turns = static_cast<std::int64_t>(entries / (slow_slices * slice_stats) + 1);
        const SweepIntervals& intervals = self.intervals_;
        self.slow_wait_ = std::max(intervals.slow / turns, std::min(intervals.turn, intervals.slow));
        self.slices_ = 0;
      }
      if (waits)
        self.pass_scheduled_ = false;
      else
        self.run_pass();
      self.report(std::move(hints));
      if (waits && !weak.expired()) self.schedule_pass();
    });
  });
}

void Sweep::report(std::vector<ChangeHint> hints) {
  const std::weak_ptr<Sweep*> weak(alive_);
  for (const ChangeHint& hint : hints) {
    if (hint.where == ChangeHint::Where::path) mark_hot(hint.path);
    on_change_(hint);
    if (weak.expired()) return;
  }
}

}  // namespace earshot::watch
