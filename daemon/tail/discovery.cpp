#include "tail/discovery.hpp"

#include <algorithm>
#include <cerrno>

#include "watch/watchers.hpp"

namespace earshot::tail {
namespace {

using watch::at_or_below;

std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : path.substr(0, slash);
}

std::string_view last_of(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

std::string_view stem_of(const std::string& path) {
  std::string_view name = last_of(path);
  if (name.ends_with(transcript_suffix)) name.remove_suffix(transcript_suffix.size());
  return name;
}

}  // namespace

Discovery::Discovery(IoThread& disk, TimerQueue& timers, FileProblems& problems, const Options& options,
                     Observer& observer)
    : disk_(disk), timers_(timers), problems_(problems), options_(options), observer_(observer) {}

void Discovery::start(watch::Watcher& watcher) {
  watcher_ = &watcher;
  if (!(lister_ = watcher.lister()))
    lister_ = [](const std::string& path, ListingSymlinks symlinks, const auto& is_wanted) {
      return list_directory(path, symlinks, is_wanted);
    };
  for (const Root& root : options_.roots) watch_root(root);
  disk_.soon([this] { check_scanned(); });  // there may be nothing to scan
}

std::string Discovery::transcript_directory_path(const Root& root, std::size_t index) {
  return root.path + '/' + std::string(root.program->transcript_directories()[index]);
}

std::string_view Discovery::path_below(const DirectoryNode& directory) {
  const DirectoryState& state = directory.second;
  const std::string_view above = state.root->program->transcript_directories()[state.transcript_directory];
  return std::string_view(directory.first).substr(state.root->path.size() + 1 + above.size());
}

std::string Discovery::path_below(const DirectoryNode& directory, std::string_view stem) {
  std::string below(path_below(directory));
  below += '/';
  below += stem;
  return below.substr(1);
}

/// Watches the root or its nearest existing parent, and enters its transcript directories.
void Discovery::watch_root(const Root& root) {
  std::string nearest = root.path;
  while (nearest != "/" && stat_file(nearest, Symlinks::follow).error)
    nearest = std::string(parent_of(nearest));
  watcher_->watch(nearest);
  // The sweep starts watching on the disk thread: look again after that for what appeared meanwhile.
  disk_.run([] { return true; }, [this, &root, nearest](bool) { continue_watching_root(root, nearest); });

  const std::size_t count = root.program->transcript_directories().size();
  const FileStat stat = stat_file(root.path, Symlinks::follow);
  if (stat.error && !stat.is_missing()) {  // what was found there stays
    problems_.set(root.path, stat.error);
    return retry_root(root);
  }
  if (stat.error || !stat.is_directory()) {
    for (std::size_t index = 0; index < count; ++index) leave(transcript_directory_path(root, index));
    if (root.expected || !stat.error)
      problems_.set(root.path, stat.error ? "does not exist" : "not a directory",
                    "its transcripts are followed as soon as it exists");
    return;
  }
  problems_.clear(root.path);
  for (std::size_t index = 0; index < count; ++index) enter_transcript_directory(root, index);
}

void Discovery::continue_watching_root(const Root& root, const std::string& watched) {
  if (watched != root.path) {
    const std::string next =
        root.path.substr(0, root.path.find('/', watched == "/" ? 1 : watched.size() + 1));
    const FileStat stat = stat_file(next, Symlinks::follow);
    if (!stat.error) return watch_root(root);
    if (!stat.is_missing()) retry_root(root);
    return;
  }
  for (std::size_t index = 0; index < root.program->transcript_directories().size(); ++index)
    if (!directories_.contains(transcript_directory_path(root, index)))
      enter_transcript_directory(root, index);
}

/// There is no notification when a root becomes accessible.
void Discovery::retry_root(const Root& root) {
  if (!root_retries_.insert(&root).second) return;
  timers_.after(options_.retry_last, [this, &root] {
    root_retries_.erase(&root);
    watch_root(root);
  });
}

void Discovery::enter_transcript_directory(const Root& root, std::size_t index) {
  const std::string path = transcript_directory_path(root, index);
  const FileStat stat = stat_file(path, Symlinks::follow);
  if (stat.error && !stat.is_missing()) {
    problems_.set(path, stat.error);
    return retry_root(root);
  }
  problems_.clear(path);
  if (stat.error || !stat.is_directory()) return leave(path);
  enter(path, root, index, 0, stat);
}

void Discovery::enter(const std::string& path, const Root& root, std::size_t index, std::size_t depth,
                      const FileStat& stat) {
  const FileId id{stat.device, stat.inode};
  if (const auto at = directories_.find(path); at != directories_.end()) {
    DirectoryState& known = at->second;
    if (FileId{known.device, known.inode} != id) {
      entered_.erase({known.device, known.inode});
      known.device = stat.device;
      known.inode = stat.inode;
      entered_.emplace(id, path);
    }
    return scan(*at);
  }
  if (is_entered_elsewhere(path, id)) return;
  if (directories_.size() >= directories_max)
    return problems_.set(root.path, "too many directories", "remove old projects: some are not followed");
  entered_[id] = path;
  const auto at = directories_.try_emplace(path).first;
  DirectoryState& state = at->second;
  state.root = &root;
  state.transcript_directory = static_cast<std::uint8_t>(index);
  state.depth = static_cast<std::uint16_t>(depth);
  state.device = stat.device;
  state.inode = stat.inode;
  scan(*at);
}

/// True if the directory is reached by another path too, or that cannot be decided now.
bool Discovery::is_entered_elsewhere(const std::string& path, const FileId& id) {
  const auto other = entered_.find(id);
  if (other == entered_.end()) return false;
  const std::string other_path = other->second;
  const FileStat stat = stat_file(other_path, Symlinks::follow);
  if (stat.error && !stat.is_missing()) {
    timers_.after(options_.retry_first, [this, path] { check_path(path); });
    return true;
  }
  if (!stat.error && FileId{stat.device, stat.inode} == id) return true;  // a loop, or a second link
  if (stat.error)
    leave(other_path);  // it was moved here
  else
    disk_.soon([this, other_path] { check_path(other_path); });  // that path is another directory now
  return false;
}

void Discovery::leave(const std::string& path) {
  std::vector<Directories::node_type> left;
  if (const auto at = directories_.find(path); at != directories_.end())
    left.push_back(directories_.extract(at));
  const std::string below = path + '/';
  for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);)
    left.push_back(directories_.extract(at++));
  if (left.empty()) return;
  watcher_->unwatch(path);
  problems_.clear_below(path);
  for (auto& extracted : left) {
    entered_.erase({extracted.mapped().device, extracted.mapped().inode});
    files_ -= extracted.mapped().files.size();
    DirectoryNode directory(extracted.key(), std::move(extracted.mapped()));
    for (auto& [stem, file] : directory.second.files) {
      observer_.on_file_dropped(directory, stem, file);
      if (!hard_links_.empty()) erase(transcript_path(directory, stem));
    }
  }
}

void Discovery::scan(DirectoryNode& directory) {
  if (directory.second.scan != 0) {
    directory.second.scan_again = true;
    return;
  }
  directory.second.scan = ++scans_;
  directory.second.scan_queued = true;
  watcher_->watch_before_listing(directory.first);  // everything the scan finds is being watched
  scan_queue_.push_back(directory.first);
  start_scans();
}

struct Discovery::ScanTask {
  std::string path;
  std::size_t below_at;  // where the part below the transcript directory begins
  const AgentProgram* program;
  ListingSymlinks symlinks;
  std::uint64_t number;

  DirectoryListing list(const watch::DirectoryLister& lister) const {
    return lister(path, symlinks, [this](const std::string& name) {
      return program->classify(std::string_view(path).substr(below_at), name) != FileKind::other;
    });
  }
};

std::vector<Discovery::ScanTask> Discovery::next_scan_tasks() {
  std::vector<ScanTask> tasks;
  for (; tasks.size() < scans_per_task && !scan_queue_.empty(); scan_queue_.pop_front()) {
    const auto at = directories_.find(scan_queue_.front());
    // A directory that was left and entered again is queued twice. It is listed once: what the watcher
    // records in a listing must be applied.
    if (at == directories_.end() || !std::exchange(at->second.scan_queued, false)) continue;
    const DirectoryState& state = at->second;
    // Links are followed in the transcript directory only: a project may be a link, nothing below it.
    tasks.push_back({at->first,
                     at->first.size() - path_below(*at).size(),
                     state.root->program,
                     {state.depth <= 1, state.depth == 0},
                     state.scan});
  }
  return tasks;
}

void Discovery::start_scans() {
  while (tasks_ < tasks_max && !scan_queue_.empty()) {
    std::vector<ScanTask> batch = next_scan_tasks();
    if (batch.empty()) break;
    ++tasks_;
    auto work = [batch = std::move(batch), lister = lister_] {
      Scans scans;
      scans.reserve(batch.size());
      for (const ScanTask& task : batch) scans.emplace_back(task.list(lister), task.number);
      return scans;
    };
    disk_.run(std::move(work), [this](const Scans& scans) {
      --tasks_;
      for (const auto& [listing, number] : scans) apply(listing, number);
      start_scans();
      check_scanned();
    });
  }
}

void Discovery::check_scanned() {
  if (!is_starting_ || tasks_ > 0 || !scan_queue_.empty()) return;
  is_starting_ = false;
  observer_.on_scanned();
}

void Discovery::apply(const DirectoryListing& listing, std::uint64_t scan_number) {
  const auto at = directories_.find(listing.path);
  // Ignore a scan from before the directory was left and entered again.
  if (at == directories_.end() || at->second.scan != scan_number) return;
  DirectoryState& state = at->second;
  state.scan = 0;
  if (std::exchange(state.scan_again, false)) {
    scan(*at);
    if (listing.stat.error) return;  // it may be another directory now
  }
  if (listing.stat.is_missing() || listing.stat.error == ELOOP) return leave(listing.path);
  if (listing.stat.error) return on_unreadable(*at, listing.stat.error);
  state.retry_delay = {};
  problems_.clear(listing.path);
  apply_removals(*at, listing);
  int entry_error = 0;
  for (const DirectoryEntry& entry : listing.entries) {
    const auto current = directories_.find(listing.path);  // an entry may cause the directory to be left
    if (current == directories_.end()) return;
    apply_entry(*current, entry);
    if (entry.stat.error) entry_error = entry.stat.error;
  }
  if (const auto current = directories_.find(listing.path); entry_error != 0 && current != directories_.end())
    on_unreadable(*current, entry_error);
}

/// Removals come first: a renamed file is removed before it is found under its new name.
void Discovery::apply_removals(DirectoryNode& directory, const DirectoryListing& listing) {
  std::vector<std::string_view> names;
  names.reserve(listing.entries.size());
  for (const DirectoryEntry& entry : listing.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto is_listed = [&](std::string_view name) {
    return std::binary_search(names.begin(), names.end(), name);
  };

  std::vector<std::string> missing;  // directories
  const std::string below = listing.path + '/';
  for (auto each = directories_.lower_bound(below);
       each != directories_.end() && each->first.starts_with(below); ++each) {
    const std::string_view name = std::string_view(each->first).substr(below.size());
    if (name.find('/') == name.npos && !is_listed(name)) missing.push_back(each->first);
  }
  for (const auto& path : missing) check_path(path);  // it may exist again since the listing

  std::vector<std::string> stems;
  auto& files = directory.second.files;
  for (const auto& [stem, file] : files)
    if (!is_listed(stem + std::string(transcript_suffix))) stems.push_back(stem);
  for (const auto& stem : stems)
    if (const auto file = files.find(stem); file != files.end())
      observer_.on_file_hint(directory, stem, file->second, nullptr);
}

void Discovery::apply_entry(DirectoryNode& directory, const DirectoryEntry& entry) {
  const std::string path = directory.first + '/' + entry.name;
  DirectoryState& state = directory.second;
  const AgentProgram& program = *state.root->program;
  const FileKind kind = program.classify(path_below(directory), entry.name);
  const std::string stem(program.stem_of(entry.name));
  if (entry.stat.error) {  // a known transcript is examined by itself; others at the next scan
    const auto file = state.files.find(stem);
    if (kind == FileKind::transcript && file != state.files.end())
      observer_.on_file_hint(directory, file->first, file->second, nullptr);
    return;
  }
  // A directory with the name of a transcript is neither.
  if (entry.stat.is_directory() && kind != FileKind::transcript) {
    if (state.depth + 1u > depth_max || !program.may_contain_transcripts(state.depth, entry.name)) return;
    const auto child = directories_.find(path);
    if (child == directories_.end() || child->second.device != entry.stat.device ||
        child->second.inode != entry.stat.inode)
      enter(path, *state.root, state.transcript_directory, state.depth + 1, entry.stat);
    return;
  }
  switch (kind) {
    case FileKind::transcript:
      if (const auto file = state.files.find(stem); file != state.files.end()) {
        check_links(directory, stem, file->second, &entry.stat);
        return observer_.on_file_hint(directory, stem, file->second, &entry.stat);
      }
      return add_file(directory, entry.name, entry.stat);
    case FileKind::subagent_meta:
      return observer_.on_meta_hint(directory, stem);
    case FileKind::compaction_marker: {
      const bool is_new = state.compaction_markers.insert(entry.name).second;
      return observer_.on_compaction_hint(directory, entry.name, is_new && !is_starting_);
    }
    case FileKind::other:
      return;
  }
}

void Discovery::on_unreadable(DirectoryNode& directory, int error) {
  problems_.set(directory.first, error);
  DirectoryState& state = directory.second;
  if (std::exchange(state.retry_scheduled, true)) return;
  state.retry_delay = std::clamp(state.retry_delay * 2, options_.retry_first, options_.retry_last);
  timers_.after(state.retry_delay, [this, path = directory.first] {
    const auto at = directories_.find(path);
    if (at == directories_.end()) return;
    at->second.retry_scheduled = false;
    scan(*at);
  });
}

void Discovery::on_change(const watch::ChangeHint& hint) {
  switch (hint.where) {
    case watch::ChangeHint::Where::path:
      return check_path(hint.path);
    case watch::ChangeHint::Where::directory:
      return check_subtree(hint.path);
    case watch::ChangeHint::Where::everything:
      return check_subtree("/");
  }
}

void Discovery::check_subtree(const std::string& path) {
  for (const Root& root : options_.roots)
    if (at_or_below(root.path, path)) watch_root(root);
  std::vector<std::string> below;
  const bool all = path == "/";
  for (auto at = all ? directories_.begin() : directories_.lower_bound(path);
       at != directories_.end() && (all || at->first.starts_with(path)); ++at)
    if (at_or_below(at->first, path)) below.push_back(at->first);
  for (const auto& each : below)
    if (const auto at = directories_.find(each); at != directories_.end()) scan(*at);
}

void Discovery::check_path(const std::string& path) {
  const auto parent = directories_.find(parent_of(path));
  if (parent != directories_.end()) return check_entry(*parent, path, std::string(last_of(path)));
  for (const Root& root : options_.roots) {
    if (at_or_below(root.path, path)) watch_root(root);
    for (std::size_t index = 0; index < root.program->transcript_directories().size(); ++index)
      if (transcript_directory_path(root, index) == path) enter_transcript_directory(root, index);
  }
}

void Discovery::check_entry(DirectoryNode& directory, const std::string& path, const std::string& name) {
  DirectoryState& state = directory.second;
  const AgentProgram& program = *state.root->program;
  switch (program.classify(path_below(directory), name)) {
    case FileKind::transcript: {
      const std::string stem(program.stem_of(name));
      if (const auto file = state.files.find(stem); file != state.files.end()) {
        check_links(directory, stem, file->second, nullptr);
        return observer_.on_file_hint(directory, stem, file->second, nullptr);
      }
      const FileStat stat = stat_file(path);
      if (stat.is_missing()) return problems_.clear(path);
      return stat.error ? on_unreadable(directory, stat.error) : add_file(directory, name, stat);
    }
    case FileKind::subagent_meta:
      return observer_.on_meta_hint(directory, program.stem_of(name));
    case FileKind::compaction_marker:
      if (stat_file(path).error) {
        state.compaction_markers.erase(name);
        return;
      }
      return observer_.on_compaction_hint(directory, name, state.compaction_markers.insert(name).second);
    case FileKind::other:
      return check_subdirectory(directory, path, name);
  }
}

void Discovery::check_subdirectory(DirectoryNode& parent, const std::string& path, std::string_view name) {
  const DirectoryState& above = parent.second;
  const FileStat stat = stat_file(path, above.depth == 0 ? Symlinks::follow : Symlinks::no_follow);
  if (stat.error && !stat.is_missing()) return on_unreadable(parent, stat.error);
  if (stat.error || !stat.is_directory()) return leave(path);
  if (above.depth + 1u > depth_max || !above.root->program->may_contain_transcripts(above.depth, name))
    return;
  enter(path, *above.root, above.transcript_directory, above.depth + 1, stat);
}

Discovery::File* Discovery::find(std::string_view directory, std::string_view stem) {
  const auto at = directories_.find(directory);
  if (at == directories_.end()) return nullptr;
  const auto file = at->second.files.find(stem);
  return file == at->second.files.end() ? nullptr : &file->second;
}

void Discovery::add_file(DirectoryNode& directory, const std::string& name, const FileStat& stat) {
  const std::string path = directory.first + '/' + name;
  if (stat.type == FileType::symlink) return;  // never followed
  if (!stat.is_regular()) return problems_.set_irregular(path);
  problems_.clear(path);
  if (stat.links > 1 && is_linked_elsewhere(path, stat)) return;
  if (files_ >= files_max)
    return problems_.set(directory.second.root->path, "too many transcripts",
                         "remove old ones: some are not followed");
  const std::string stem(stem_of(path));
  File& file = directory.second.files[stem];
  ++files_;
  file.inode = stat.inode;
  file.size = stat.size;
  file.modified_ms = stat.modified_ms();
  observer_.on_file_found(directory, stem, file, stat);
}

/// A file is one stream, whatever its number of names: of hard links the one that was found first.
bool Discovery::is_linked_elsewhere(const std::string& path, const FileStat& stat) {
  const FileId id{stat.device, stat.inode};
  auto at = hard_links_.find(id);
  if (at == hard_links_.end()) {
    // The other name may have been found while it was the only one. Not at start: each name has its links
    // then.
    const auto other = is_starting_ ? std::nullopt : find_path(id);
    at = hard_links_.emplace(id, HardLinks{other.value_or(path), {}}).first;
  }
  HardLinks& links = at->second;
  if (links.stream == path) return false;
  const FileStat stream = stat_file(links.stream);
  if (stream.is_missing() || (!stream.error && FileId{stream.device, stream.inode} != id)) {
    links.stream = path;
    return false;
  }
  links.others.insert(path);
  // The file may have been written by this name.
  const auto directory = directories_.find(parent_of(links.stream));
  if (directory == directories_.end()) return true;
  auto& files = directory->second.files;
  if (const auto file = files.find(stem_of(links.stream)); file != files.end())
    observer_.on_file_hint(*directory, file->first, file->second, &stat);
  return true;
}

std::optional<std::string> Discovery::find_path(const FileId& id) const {
  for (const DirectoryNode& directory : directories_) {
    if (directory.second.device != id.first) continue;
    for (const auto& [stem, file] : directory.second.files)
      if (file.inode == id.second) return transcript_path(directory, stem);
  }
  return std::nullopt;
}

void Discovery::erase(const std::string& path) {
  if (const auto at = directories_.find(parent_of(path)); at != directories_.end())
    if (const auto file = at->second.files.find(stem_of(path)); file != at->second.files.end()) {
      at->second.files.erase(file);
      --files_;
    }
  for (auto each = hard_links_.begin(); each != hard_links_.end(); ++each) {
    if (each->second.others.erase(path) > 0) return;
    if (each->second.stream == path) return release(each);
  }
}

/// The file may have been replaced: then another of its names becomes a stream.
void Discovery::check_links(const DirectoryNode& directory, std::string_view stem, File& file,
                            const FileStat* listed) {
  if (hard_links_.empty()) return;
  const auto links = hard_links_.find({directory.second.device, file.inode});
  if (links == hard_links_.end()) return;
  const std::string path = transcript_path(directory, stem);
  if (links->second.stream != path) return;
  const FileStat stat = listed ? *listed : stat_file(path);
  if (stat.error || stat.inode == file.inode) return;  // a removed one is erased
  file.inode = stat.inode;
  release(links);
}

/// The first name is no longer that of the file: one of the others becomes its stream.
void Discovery::release(std::map<FileId, HardLinks>::iterator links) {
  const auto others = std::move(links->second.others);
  hard_links_.erase(links);
  for (const auto& other : others) disk_.soon([this, other] { check_path(other); });
}

}  // namespace earshot::tail
