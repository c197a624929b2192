#include "tail/discovery.hpp"

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "agents/transcript_file.hpp"
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

std::string_view Discovery::path_below(const DirectoryNode& directory) {
  const DirectoryState& state = directory.second;
  const std::string_view above = state.root->program->transcript_directories()[state.transcript_directory];
  const std::size_t above_bytes = above.empty() ? 0 : 1 + above.size();
  return std::string_view(directory.first).substr(state.root->path.size() + above_bytes);
}

std::string Discovery::path_below(const DirectoryNode& directory, std::string_view stem) {
  std::string below(path_below(directory));
  below += '/';
  below += stem;
  return below.substr(1);
}

StreamIdentity Discovery::identify(const DirectoryNode& directory, std::string_view stem) {
  return directory.second.root->program->identify(path_below(directory, stem));
}

/// Watches the root or its nearest existing parent, and enters its transcript directories.
void Discovery::watch_root(const Root& root) {
  std::string nearest = root.path;
  while (nearest != "/" && stat_file(nearest, Symlinks::follow).error)
    nearest = std::string(parent_of(nearest));
  watcher_->watch(nearest);
  watcher_->watch_links(root.path);
  // The sweep starts watching on the disk thread: look again after that for what appeared meanwhile.
  disk_.run([] { return true; }, [this, &root, nearest](bool) { continue_watching_root(root, nearest); });

  const std::size_t count = root.program->transcript_directories().size();
  const FileStat stat = stat_file(root.path, Symlinks::follow);
  if (stat.error && !stat.is_missing()) {  // what was found there stays
    problems_.set(root.path, stat.error);
    return retry_root(root);
  }
  if (stat.error || !stat.is_directory()) {
    for (std::size_t index = 0; index < count; ++index) leave(transcript_directory(root, index));
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
    if (const auto at = directories_.find(transcript_directory(root, index));
        at == directories_.end() || at->second.is_left)
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

/// Enters the path if it is one of the root's transcript directories.
void Discovery::enter_transcript_directory(const Root& root, const std::string& path) {
  for (std::size_t index = 0; index < root.program->transcript_directories().size(); ++index)
    if (transcript_directory(root, index) == path) enter_transcript_directory(root, index);
}

void Discovery::enter_transcript_directory(const Root& root, std::size_t index) {
  const std::string path = transcript_directory(root, index);
  watcher_->watch_links(path);
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
  const auto known = directories_.find(path);
  const bool is_known = known != directories_.end() && !known->second.is_left;
  if (!is_known && is_entered_elsewhere(path, id)) return;
  if (!is_known && directories_.size() >= directories_max)
    return problems_.set(root.path, "too many directories", "remove old projects: some are not followed");
  const auto at = directories_.try_emplace(path).first;
  DirectoryState& state = at->second;
  if (is_known && FileId{state.device, state.inode} == id) return scan(*at);
  if (is_known) entered_.erase({state.device, state.inode});
  entered_[id] = path;
  for (auto& file : state.files) forget(*at, file);
  state.root = &root;
  state.transcript_directory = static_cast<std::uint8_t>(index);
  state.depth = static_cast<std::uint16_t>(depth);
  state.is_left = false;
  state.device = stat.device;
  state.inode = stat.inode;
  for (auto& file : state.files) remember(*at, file);
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
  std::size_t left = 0;
  const auto leave_one = [&](DirectoryNode& directory) {
    DirectoryState& state = directory.second;
    if (std::exchange(state.is_left, true)) return;
    ++left;
    entered_.erase({state.device, state.inode});
    state.scan = 0;
    state.scan_queued = state.scan_again = false;
    state.compaction_markers.clear();
    left_.emplace_back(directory.first, "");
  };
  const bool was_dropping = !left_.empty();
  if (const auto at = directories_.find(path); at != directories_.end()) leave_one(*at);
  const std::string below = path + '/';
  for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);
       ++at)
    leave_one(*at);
  if (left == 0) return;
  watcher_->unwatch(path);
  problems_.clear_below(path);
  if (!was_dropping) drop_some();
}

/// Files of directories that were left. A directory is removed with its last file.
void Discovery::drop_some() {
  for (std::size_t files = options_.files_per_turn; files > 0 && !left_.empty(); --files) {
    auto& [path, last] = left_.front();
    const auto at = directories_.find(path);
    const bool is_known = at != directories_.end();
    const bool is_left = is_known && at->second.is_left;
    const std::string below = path + '/';
    const auto other_name = ids_of_other_names_.lower_bound(below);
    const auto file = is_left ? at->second.files.upper_bound(last) : Files::iterator();
    if (is_known && !is_left) {  // entered again
      left_.pop_front();
    } else if (other_name != ids_of_other_names_.end() && other_name->first.starts_with(below)) {
      forget_other_name(std::string(other_name->first));
    } else if (is_left && file != at->second.files.end()) {
      last = file->first;
      observer_.on_file_dropped(*at, std::string(last), file->second);
    } else {
      if (is_left && at->second.files.empty()) directories_.erase(at);
      left_.pop_front();
    }
  }
  if (!left_.empty()) disk_.soon([this] { drop_some(); });
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

  /// Sorted by name. A compressed copy has the name of its transcript, and is not listed beside it.
  DirectoryListing list(const watch::DirectoryLister& lister) const {
    DirectoryListing listing = lister(path, symlinks, [this](const std::string& name) {
      const std::string_view below = std::string_view(path).substr(below_at);
      return program->classify(below, name) != FileKind::other ||
             program->classify(below, uncompressed_name(name)) == FileKind::transcript;
    });
    std::vector<DirectoryEntry>& entries = listing.entries;
    for (DirectoryEntry& entry : entries) {
      const std::string_view name = uncompressed_name(entry.name);
      if (name.size() == entry.name.size() || entry.stat.is_directory()) continue;
      entry.name.resize(name.size());
      entry.stat.size = unknown_bytes;
    }
    const auto is_copy = [](const DirectoryEntry& entry) { return entry.stat.size == unknown_bytes; };
    std::sort(entries.begin(), entries.end(), [&](const DirectoryEntry& a, const DirectoryEntry& b) {
      return a.name != b.name ? a.name < b.name : is_copy(a) < is_copy(b);
    });
    const auto has_same_name = [](const DirectoryEntry& a, const DirectoryEntry& b) {
      return a.name == b.name;
    };
    entries.erase(std::unique(entries.begin(), entries.end(), has_same_name), entries.end());
    return listing;
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
  while (tasks_ < tasks_max && applications_.size() < applications_max && !scan_queue_.empty()) {
    std::vector<ScanTask> batch = next_scan_tasks();
    if (batch.empty()) break;
    ++tasks_;
    auto work = [batch = std::move(batch), lister = lister_] {
      Scans scans;
      scans.reserve(batch.size());
      for (const ScanTask& task : batch) scans.emplace_back(task.list(lister), task.number);
      return scans;
    };
    disk_.run(std::move(work), [this](Scans scans) {
      --tasks_;
      const bool was_applying = !applications_.empty();
      for (auto& [listing, number] : scans) applications_.push_back({std::move(listing), number});
      if (!was_applying) apply_some();
      start_scans();
      check_scanned();
    });
  }
}

void Discovery::check_scanned() {
  if (!is_starting_ || tasks_ > 0 || !scan_queue_.empty() || !applications_.empty()) return;
  is_starting_ = false;
  std::sort(files_by_session_.begin(), files_by_session_.end());
  files_by_session_.shrink_to_fit();
  observer_.on_scanned();
}

/// A part of the listings, so that other handlers have their turn between.
void Discovery::apply_some() {
  for (std::size_t files = options_.files_per_turn; files > 0 && !applications_.empty();) {
    if (apply_part(applications_.front(), files)) applications_.pop_front();
  }
  start_scans();
  if (!applications_.empty()) return disk_.soon([this] { apply_some(); });
  if (!is_listing()) missing_.clear();
  check_scanned();
}

/// Applies up to `files` names, and counts them off. True: the listing is done.
bool Discovery::apply_part(Application& application, std::size_t& files) {
  const DirectoryListing& listing = application.listing;
  // An entry may cause the directory to be left; a scan from before that is of no use.
  const auto directory = [&]() -> DirectoryNode* {
    const auto at = directories_.find(listing.path);
    const bool is_current =
        at != directories_.end() && !at->second.is_left && at->second.scan == application.scan;
    return is_current ? &*at : nullptr;
  };
  if (!directory()) return true;
  if (!std::exchange(application.has_begun, true) && !begin(application)) return true;
  // Removals come first: a renamed file is removed before it is found under its new name.
  for (; application.checked < application.missing.size(); ++application.checked) {
    if (files == 0) return false;
    --files;
    DirectoryNode* const at = directory();
    if (!at) return true;
    const auto file = at->second.files.find(application.missing[application.checked]);
    if (file == at->second.files.end()) continue;
    observer_.on_file_hint(*at, application.missing[application.checked], file->second, nullptr);
  }
  for (; application.applied < listing.entries.size(); ++application.applied) {
    if (files == 0) return false;
    --files;
    DirectoryNode* const at = directory();
    if (!at) return true;
    const DirectoryEntry& entry = listing.entries[application.applied];
    const std::string path = listing.path + '/' + entry.name;
    if (missing_.contains(path))  // it may have been removed since
      check_entry(*at, path, entry.name);
    else
      apply_entry(*at, entry);
    if (entry.stat.error) application.error = entry.stat.error;
  }
  DirectoryNode* const at = directory();
  if (!at) return true;
  at->second.scan = 0;
  if (application.error) on_unreadable(*at, application.error);
  if (std::exchange(at->second.scan_again, false)) scan(*at);
  return true;
}

/// False: there is nothing to apply.
bool Discovery::begin(Application& application) {
  const DirectoryListing& listing = application.listing;
  const auto at = directories_.find(listing.path);
  DirectoryState& state = at->second;
  if (listing.stat.error) {
    state.scan = 0;
    if (std::exchange(state.scan_again, false))
      scan(*at);  // it may be another directory now
    else if (listing.stat.is_missing() || listing.stat.error == ELOOP)
      leave(listing.path);
    else
      on_unreadable(*at, listing.stat.error);
    return false;
  }
  state.retry_delay = {};
  problems_.clear(listing.path);
  const auto is_listed = [&](std::string_view name) {
    const auto found = std::lower_bound(
        listing.entries.begin(), listing.entries.end(), name,
        [](const DirectoryEntry& entry, std::string_view wanted) { return entry.name < wanted; });
    return found != listing.entries.end() && found->name == name;
  };
  for (const auto& [stem, file] : state.files)
    if (!is_listed(stem + std::string(transcript_suffix))) application.missing.push_back(stem);
  std::vector<std::string> missing;  // directories
  const std::string below = listing.path + '/';
  for (auto each = directories_.lower_bound(below);
       each != directories_.end() && each->first.starts_with(below); ++each) {
    const std::string_view name = std::string_view(each->first).substr(below.size());
    if (name.find('/') == name.npos && !each->second.is_left && !is_listed(name))
      missing.push_back(each->first);
  }
  for (const auto& path : missing) check_path(path);  // it may exist again since the listing
  return true;
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
    if (is_root(directory)) return enter_transcript_directory(*state.root, path);
    if (state.depth + 1u > depth_max || !program.may_contain_transcripts(state.depth, entry.name)) return;
    const auto child = directories_.find(path);
    if (child == directories_.end() || child->second.is_left || child->second.device != entry.stat.device ||
        child->second.inode != entry.stat.inode)
      enter(path, *state.root, state.transcript_directory, state.depth + 1, entry.stat);
    return;
  }
  switch (kind) {
    case FileKind::transcript:
      if (const auto file = state.files.find(stem); file != state.files.end()) {
        check_links(directory, *file, &entry.stat);
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
    if (!at->second.is_left) scan(*at);
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
    if (!at->second.is_left && at_or_below(at->first, path)) below.push_back(at->first);
  for (const auto& each : below)
    if (const auto at = directories_.find(each); at != directories_.end()) scan(*at);
}

void Discovery::check_path(const std::string& path) {
  const auto parent = directories_.find(parent_of(path));
  if (parent != directories_.end()) {
    if (is_root(*parent))
      for (const Root& root : options_.roots)
        if (&root != parent->second.root && at_or_below(root.path, path)) watch_root(root);
    if (!parent->second.is_left) check_entry(*parent, path, std::string(last_of(path)));
    return;
  }
  for (const Root& root : options_.roots) {
    if (at_or_below(root.path, path)) watch_root(root);
    enter_transcript_directory(root, path);
  }
}

void Discovery::check_entry(DirectoryNode& directory, const std::string& path, const std::string& name) {
  DirectoryState& state = directory.second;
  const AgentProgram& program = *state.root->program;
  if (const auto plain = uncompressed_name(name);
      plain.size() < name.size() && program.classify(path_below(directory), plain) == FileKind::transcript)
    return check_entry(directory, std::string(uncompressed_name(path)), std::string(plain));
  switch (program.classify(path_below(directory), name)) {
    case FileKind::transcript: {
      const std::string stem(program.stem_of(name));
      if (const auto file = state.files.find(stem); file != state.files.end()) {
        check_links(directory, *file, nullptr);
        for (const auto& [copy, has_waited] : copies_)  // it may be missing now
          if (last_of(copy) == name && copy != path) disk_.soon([this, copy = copy] { check_path(copy); });
        return observer_.on_file_hint(directory, stem, file->second, nullptr);
      }
      const FileStat stat = stat_transcript(path);
      if (stat.is_missing()) {
        if (is_listing()) missing_.insert(path);
        forget_other_name(path);
        return problems_.clear(path);
      }
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
  if (is_root(parent)) return enter_transcript_directory(*above.root, path);
  if (above.depth + 1u > depth_max || !above.root->program->may_contain_transcripts(above.depth, name))
    return;
  enter(path, *above.root, above.transcript_directory, above.depth + 1, stat);
}

std::size_t Discovery::files() const {
  std::size_t all = 0;
  for (const auto& [root, files] : files_) all += files;
  return all;
}

std::size_t Discovery::files_of(const Root& root) const {
  const auto found = files_.find(&root);
  return found == files_.end() ? 0 : found->second;
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
  if (is_moved(directory, path, stat)) return;
  copies_.erase(path);
  if (files() >= files_max)
    return problems_.set(directory.second.root->path, "too many transcripts",
                         "remove old ones: some are not followed");
  const std::string stem(stem_of(path));
  const auto at = directory.second.files.try_emplace(stem).first;
  ++files_[directory.second.root];
  File& file = at->second;
  file.inode = stat.inode;
  file.size = stat.size;
  file.modified_ms = stat.modified_ms();
  add_to_session(directory, *at);
  remember(directory, *at);
  observer_.on_file_found(directory, stem, file, stat);
}

/// A file is one stream, whatever its number of names: of hard links the one that was found first.
bool Discovery::is_linked_elsewhere(const std::string& path, const FileStat& stat) {
  const FileId id{stat.device, stat.inode};
  if (!files_by_id_) {
    files_by_id_.emplace();
    for (DirectoryNode& directory : directories_)
      for (auto& file : directory.second.files) remember(directory, file);
  }
  const auto known = files_by_id_->find(id);
  if (known == files_by_id_->end()) return false;
  auto& [directory, file] = known->second;
  const FileStat stream = stat_transcript(transcript_path(*directory, file->first));
  if (stream.is_missing() || (!stream.error && FileId{stream.device, stream.inode} != id)) return false;
  other_names_[id].insert(path);
  ids_of_other_names_[path] = id;
  observer_.on_file_hint(*directory, file->first, file->second,
                         &stat);  // it may have been written by this name
  return true;
}

/// True: a new file is a known transcript with another name, or waits to be one. A program that cannot rename
/// a transcript copies it and removes the first one: a file with the name of another of its session waits
/// until that one is removed, or has stayed for long enough.
bool Discovery::is_moved(DirectoryNode& directory, const std::string& path, const FileStat& stat) {
  if (is_starting_) return false;
  const std::string stem(stem_of(path));
  const StreamIdentity identity = identify(directory, stem);
  const auto waiting = copies_.find(path);
  for (const auto& [other, file] : files_of_session(identity.session)) {
    if (other->second.root != directory.second.root || identify(*other, file->first).agent != identity.agent)
      continue;
    const FileId id{other->second.device, file->second.inode};
    const bool is_same = id == FileId{stat.device, stat.inode};
    if (!is_same && file->first != stem) continue;
    const std::string other_path = transcript_path(*other, file->first);
    const FileStat there = stat_transcript(other_path);
    if (is_same && (there.is_missing() || (!there.error && FileId{there.device, there.inode} != id))) {
      if (!observer_.on_file_moved(*other, std::string(file->first), directory, stem, stat, false))
        return false;
      if (!there.error) disk_.soon([this, other_path] { check_path(other_path); });  // it is another one now
      return true;
    }
    if (is_same) continue;
    const auto& followed = file->second.followed;
    const bool is_whole = stat.size >= (followed ? followed->published_bytes() : file->second.size);
    if (is_whole && there.is_missing())
      return observer_.on_file_moved(*other, stem, directory, stem, stat, true);
    if (waiting != copies_.end()) return !waiting->second;
    if (copies_.size() == copies_max) return false;
    copies_.emplace(path, false);
    timers_.after(options_.linger, [this, path] {
      const auto copy = copies_.find(path);
      if (copy == copies_.end()) return;
      copy->second = true;
      check_path(path);
      // The file may be missing because its directory is.
      if (copies_.erase(path) > 0) check_path(std::string(parent_of(path)));
    });
    return true;
  }
  return false;
}

Discovery::File& Discovery::move(DirectoryNode& from, const std::string& from_stem, DirectoryNode& to,
                                 const std::string& to_stem, std::uint64_t inode) {
  if (is_listing()) missing_.insert(transcript_path(from, from_stem));
  forget_other_name(transcript_path(to, to_stem));
  copies_.erase(transcript_path(to, to_stem));
  const auto file = from.second.files.find(from_stem);
  remove_from_session(from, *file);
  if (FileId{from.second.device, file->second.inode} != FileId{to.second.device, inode}) forget(from, *file);
  auto node = from.second.files.extract(file);
  node.key() = to_stem;
  node.mapped().inode = inode;
  const auto at = to.second.files.insert(std::move(node)).position;
  add_to_session(to, *at);
  remember(to, *at);
  if (from.second.is_left && from.second.files.empty()) directories_.erase(from.first);
  return at->second;
}

void Discovery::add_to_session(DirectoryNode& directory, Files::value_type& file) {
  const SessionFile entry{std::hash<std::string_view>{}(identify(directory, file.first).session),
                          {&directory, &file}};
  if (is_starting_) return files_by_session_.push_back(entry);
  if (files_by_session_.size() == files_by_session_.capacity())  // doubling would cost more than it saves
    files_by_session_.reserve(files_by_session_.size() + files_by_session_.size() / 16 + 64);
  files_by_session_.insert(std::lower_bound(files_by_session_.begin(), files_by_session_.end(), entry),
                           entry);
}

void Discovery::remove_from_session(DirectoryNode& directory, Files::value_type& file) {
  const SessionFile entry{std::hash<std::string_view>{}(identify(directory, file.first).session),
                          {&directory, &file}};
  const auto at = is_starting_ ? std::find(files_by_session_.begin(), files_by_session_.end(), entry)
                               : std::lower_bound(files_by_session_.begin(), files_by_session_.end(), entry);
  files_by_session_.erase(at);
}

std::vector<Discovery::KnownFile> Discovery::files_of_session(std::string_view session) const {
  std::vector<KnownFile> files;
  if (session.empty() || is_starting_) return files;
  const SessionFile first{std::hash<std::string_view>{}(session), {}};
  for (auto at = std::lower_bound(files_by_session_.begin(), files_by_session_.end(), first);
       at != files_by_session_.end() && at->session == first.session; ++at)
    if (identify(*at->file.directory, at->file.file->first).session == session) files.push_back(at->file);
  std::sort(files.begin(), files.end(), [](const KnownFile& a, const KnownFile& b) {
    return std::tie(a.directory->first, a.file->first) < std::tie(b.directory->first, b.file->first);
  });
  return files;
}

void Discovery::remember(DirectoryNode& directory, Files::value_type& file) {
  const FileId id{directory.second.device, file.second.inode};
  if (files_by_id_) files_by_id_->insert_or_assign(id, KnownFile{&directory, &file});
}

/// Of its other names one becomes its stream.
void Discovery::forget(const DirectoryNode& directory, const Files::value_type& file) {
  if (!files_by_id_) return;
  const FileId id{directory.second.device, file.second.inode};
  const auto known = files_by_id_->find(id);
  if (known == files_by_id_->end() || known->second.file != &file) return;
  files_by_id_->erase(known);
  const auto others = other_names_.extract(id);
  if (!others) return;
  for (const std::string& path : others.mapped()) {
    ids_of_other_names_.erase(path);
    disk_.soon([this, path] { check_path(path); });
  }
}

void Discovery::forget_other_name(const std::string& path) {
  const auto id = ids_of_other_names_.extract(path);
  if (!id) return;
  const auto others = other_names_.find(id.mapped());
  others->second.erase(path);
  if (others->second.empty()) other_names_.erase(others);
}

void Discovery::erase(const std::string& path) {
  const auto at = directories_.find(parent_of(path));
  if (at == directories_.end()) return;
  const auto file = at->second.files.find(stem_of(path));
  if (file == at->second.files.end()) return;
  if (is_listing()) missing_.insert(path);
  forget(*at, *file);
  remove_from_session(*at, *file);
  at->second.files.erase(file);
  --files_[at->second.root];
  if (at->second.is_left && at->second.files.empty()) directories_.erase(at);
}

void Discovery::set_inode(const std::string& directory, const std::string& stem, std::uint64_t inode) {
  const auto at = directories_.find(directory);
  if (at == directories_.end()) return;
  const auto file = at->second.files.find(stem);
  if (file == at->second.files.end() || file->second.inode == inode) return;
  forget(*at, *file);
  file->second.inode = inode;
  remember(*at, *file);
}

/// The file may have been replaced: then another of its names becomes a stream.
void Discovery::check_links(DirectoryNode& directory, Files::value_type& file, const FileStat* listed) {
  if (!other_names_.contains({directory.second.device, file.second.inode})) return;
  const FileStat stat = listed ? *listed : stat_transcript(transcript_path(directory, file.first));
  if (!stat.error) set_inode(directory.first, file.first, stat.inode);  // a removed one is erased
}

}  // namespace earshot::tail
