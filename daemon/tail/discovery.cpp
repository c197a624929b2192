#include "tail/discovery.hpp"

#include <algorithm>
#include <cerrno>

#include "watch/watch_mux.hpp"

namespace earshot::tail {
namespace {

using watch::at_or_below;

constexpr TranscriptDir halls[] = {TranscriptDir::projects, TranscriptDir::conversations};

std::string hall_path(const Root& root, TranscriptDir hall) {
  return root.path + '/' + std::string(directory_of(hall));
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string_view last_of(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

}  // namespace

Discovery::Discovery(IoThread& disk, TimerQueue& later, FileProblems& health, const Options& options,
                     Observer& keeper)
    : disk_(disk), later_(later), health_(health), options_(options), keeper_(keeper) {}

void Discovery::start(watch::Watcher& watcher) {
  watcher_ = &watcher;
  for (const Root& root : options_.roots) arm(root);
  disk_.soon([this] { check_scanned(); });  // there may be nothing to scan
}

std::string_view Discovery::below_hall(const Place& place) {
  return std::string_view(place.first).substr(hall_path(*place.second.root, place.second.hall).size());
}

/// Watches the root, or what is there of the way to it, and enters its halls.
void Discovery::arm(const Root& root) {
  std::string at = root.path;
  while (at != "/" && facts_of(at, true).error) at = parent_of(at);
  watcher_->watch(at);
  // The sweep begins to watch on the second thread. What appears on the way there is looked for after that.
  disk_.run([] { return true; }, [this, &root, at](bool) { arm_further(root, at); });

  const Facts facts = facts_of(root.path, true);
  if (facts.error || facts.kind != Facts::Kind::directory) {
    for (const TranscriptDir hall : halls) leave(hall_path(root, hall));
    const bool is_absent = facts.gone();
    if (facts.error && !is_absent) arm_later(root);
    if (root.expected || !is_absent)
      health_.set(root.path,
                  facts.error ? (is_absent ? "does not exist" : "cannot be read") : "not a directory",
                  "transcripts are picked up as soon as it is there");
    return;
  }
  health_.clear(root.path);
  for (const TranscriptDir hall : halls) arm_hall(root, hall);
}

void Discovery::arm_further(const Root& root, const std::string& watched) {
  if (watched != root.path) {
    const std::string next =
        root.path.substr(0, root.path.find('/', watched == "/" ? 1 : watched.size() + 1));
    const Facts facts = facts_of(next, true);
    if (!facts.error) return arm(root);
    if (!facts.gone()) arm_later(root);
    return;
  }
  for (const TranscriptDir hall : halls)
    if (!directories_.contains(hall_path(root, hall))) arm_hall(root, hall);
}

/// Nothing rings when what hides a root from us is over.
void Discovery::arm_later(const Root& root) {
  if (!arms_due_.insert(&root).second) return;
  later_.after(options_.retry_last, [this, &root] {
    arms_due_.erase(&root);
    arm(root);
  });
}

void Discovery::arm_hall(const Root& root, TranscriptDir hall) {
  const std::string path = hall_path(root, hall);
  const Facts facts = facts_of(path, true);
  if (facts.error && !facts.gone()) {
    health_.set(path, facts.error);
    return arm_later(root);
  }
  health_.clear(path);
  if (facts.gone() || (!facts.error && facts.kind != Facts::Kind::directory)) return leave(path);
  enter(path, root, hall, 0, facts);
}

void Discovery::enter(const std::string& path, const Root& root, TranscriptDir hall, std::size_t depth,
                      const Facts& facts) {
  const Identity identity{facts.device, facts.inode};
  if (const auto at = directories_.find(path); at != directories_.end()) {
    Directory& known = at->second;
    if (Identity{known.device, known.inode} != identity) {
      visited_.erase({known.device, known.inode});
      known.device = facts.device;
      known.inode = facts.inode;
      visited_.emplace(identity, path);
    }
    return scan(*at);
  }
  if (const auto other = visited_.find(identity); other != visited_.end()) {
    const std::string elsewhere = other->second;
    const Facts there = facts_of(elsewhere, true);
    if (there.error && !there.gone())  // nothing is known of it now
      return later_.after(options_.retry_first, [this, path] { ring_path(path); });
    if (!there.error && Identity{there.device, there.inode} == identity)
      return;  // a link's loop, or a second way to it
    if (there.error)
      leave(elsewhere);  // it was moved here
    else
      disk_.soon([this, elsewhere] { ring_path(elsewhere); });  // another directory stands there by now
  }
  if (directories_.size() >= directories_max)
    return health_.set(root.path, "too many directories", "remove old projects: not all are looked at");
  visited_[identity] = path;
  const auto at = directories_.try_emplace(path).first;
  Directory& known = at->second;
  known.root = &root;
  known.hall = hall;
  known.depth = static_cast<std::uint16_t>(depth);
  known.device = facts.device;
  known.inode = facts.inode;
  scan(*at);
}

void Discovery::leave(const std::string& path) {
  std::vector<Directories::node_type> gone;
  if (const auto at = directories_.find(path); at != directories_.end())
    gone.push_back(directories_.extract(at));
  const std::string below = path + '/';
  for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);)
    gone.push_back(directories_.extract(at++));
  if (gone.empty()) return;
  watcher_->unwatch(path);
  health_.clear_below(path);
  for (auto& node : gone) {
    visited_.erase({node.mapped().device, node.mapped().inode});
    files_ -= node.mapped().files.size();
    Place left(node.key(), std::move(node.mapped()));
    for (auto& [stem, file] : left.second.files) {
      keeper_.file_dropped(left, stem, file);
      if (!linked_.empty()) erase(left.first + '/' + stem + ".jsonl");
    }
  }
}

void Discovery::scan(Place& place) {
  if (place.second.scan != 0) {
    place.second.again = true;
    return;
  }
  place.second.scan = ++scans_;
  watcher_->watch(place.first);  // then scan: what it finds is watched when it goes again
  to_scan_.push_back(place.first);
  next_scans();
}

void Discovery::next_scans() {
  struct Task {
    std::string path;
    std::size_t hall_bytes;  // of the path
    Links follow;
    std::uint64_t scan;
  };
  while (tasks_ < tasks_max && !to_scan_.empty()) {
    std::vector<Task> batch;
    for (; batch.size() < scans_a_task && !to_scan_.empty(); to_scan_.pop_front()) {
      const auto at = directories_.find(to_scan_.front());
      if (at == directories_.end()) continue;
      // A link is followed from the hall only: a project's directory may live elsewhere, nothing below it.
      const Links follow{at->second.depth <= 1, at->second.depth == 0};
      batch.push_back({at->first, at->first.size() - below_hall(*at).size(), follow, at->second.scan});
    }
    if (batch.empty()) break;
    ++tasks_;
    auto work = [batch = std::move(batch)] {
      std::vector<std::pair<Listing, std::uint64_t>> listings;
      listings.reserve(batch.size());
      for (const Task& task : batch) {
        const auto wanted =
            [below = std::string_view(task.path).substr(task.hall_bytes)](const std::string& name) {
              return kind_of(below, name) != FileKind::nothing;
            };
        listings.emplace_back(list(task.path, task.follow, wanted), task.scan);
      }
      return listings;
    };
    disk_.run(std::move(work), [this](const std::vector<std::pair<Listing, std::uint64_t>>& listings) {
      --tasks_;
      for (const auto& [listing, scan] : listings) apply(listing, scan);
      next_scans();
      check_scanned();
    });
  }
}

void Discovery::check_scanned() {
  if (!starting_ || tasks_ > 0 || !to_scan_.empty()) return;
  starting_ = false;
  keeper_.scanned();
}

void Discovery::apply(const Listing& listing, std::uint64_t scanned) {
  const auto at = directories_.find(listing.path);
  // One of before it was left and entered again says nothing about what is there now.
  if (at == directories_.end() || at->second.scan != scanned) return;
  Directory& known = at->second;
  known.scan = 0;
  if (std::exchange(known.again, false)) {
    scan(*at);
    if (listing.self.error) return;  // it may be another directory since
  }
  if (listing.self.gone() || listing.self.error == ELOOP) return leave(listing.path);
  if (listing.self.error) return unreadable(*at, listing.self.error);
  known.retry = {};
  health_.clear(listing.path);

  std::vector<std::string_view> names;
  names.reserve(listing.entries.size());
  for (const Entry& entry : listing.entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto listed = [&](std::string_view name) {
    return std::binary_search(names.begin(), names.end(), name);
  };

  // What went, first: a renamed one is then removed before it is found again.
  std::vector<std::string> gone;
  const std::string below = listing.path + '/';
  for (auto each = directories_.lower_bound(below);
       each != directories_.end() && each->first.starts_with(below); ++each) {
    const std::string_view name = std::string_view(each->first).substr(below.size());
    if (name.find('/') == std::string_view::npos && !listed(name)) gone.push_back(each->first);
  }
  for (const auto& each : gone) ring_path(each);  // one that was rung for since the listing is there
  std::vector<std::string> missing;
  for (const auto& [stem, file] : known.files)
    if (!listed(stem + ".jsonl")) missing.push_back(stem);
  for (const auto& stem : missing)
    if (const auto file = known.files.find(stem); file != known.files.end())
      keeper_.file_rang(*at, stem, file->second, nullptr);
  int hidden = 0;  // of errno: why an entry could not be looked at
  for (const Entry& entry : listing.entries) {
    const auto still = directories_.find(listing.path);  // what is found may tell that all of this is gone
    if (still == directories_.end()) return;
    apply_entry(*still, entry);
    if (entry.facts.error) hidden = entry.facts.error;
  }
  if (const auto still = directories_.find(listing.path); hidden != 0 && still != directories_.end())
    unreadable(*still, hidden);
}

void Discovery::apply_entry(Place& place, const Entry& entry) {
  const std::string path = place.first + '/' + entry.name;
  Directory& known = place.second;
  if (entry.facts.error) {  // a known one looks for itself; what else it may be is seen at the next try
    const auto file = known.files.find(stem_of(entry.name));
    const bool is_known =
        kind_of(below_hall(place), entry.name) == FileKind::transcript && file != known.files.end();
    if (is_known) keeper_.file_rang(place, file->first, file->second, nullptr);
    return;
  }
  const FileKind kind = kind_of(below_hall(place), entry.name);
  // One that is called like a transcript is none, and no place for some either.
  if (entry.facts.kind == Facts::Kind::directory && kind != FileKind::transcript) {
    if (known.depth + 1u > depth_max || !worth_entering(known.depth, entry.name)) return;
    const auto child = directories_.find(path);
    if (child == directories_.end() || child->second.device != entry.facts.device ||
        child->second.inode != entry.facts.inode)
      enter(path, *known.root, known.hall, known.depth + 1, entry.facts);
    return;
  }
  switch (kind) {
    case FileKind::transcript: {
      const std::string stem(stem_of(entry.name));
      if (const auto file = known.files.find(stem); file != known.files.end())
        return keeper_.file_rang(place, stem, file->second, &entry.facts);
      return file_new(place, entry.name, entry.facts);
    }
    case FileKind::agent_meta:
      return keeper_.meta_rang(place, stem_of(entry.name));
    case FileKind::compaction: {
      const bool born = known.compactions.insert(entry.name).second;
      return keeper_.compaction_rang(place, entry.name, born && !starting_);
    }
    case FileKind::nothing:
      return;
  }
}

void Discovery::unreadable(Place& place, int error) {
  health_.set(place.first, error);
  Directory& known = place.second;
  if (std::exchange(known.retry_due, true)) return;
  known.retry = std::clamp(known.retry * 2, options_.retry_first, options_.retry_last);
  later_.after(known.retry, [this, path = place.first] {
    const auto at = directories_.find(path);
    if (at == directories_.end()) return;
    at->second.retry_due = false;
    scan(*at);
  });
}

void Discovery::ring(const watch::ChangeHint& ring) {
  switch (ring.where) {
    case watch::ChangeHint::Where::path:
      return ring_path(ring.path);
    case watch::ChangeHint::Where::directory:
      return ring_subtree(ring.path);
    case watch::ChangeHint::Where::everything:
      return ring_subtree("/");
  }
}

void Discovery::ring_subtree(const std::string& path) {
  for (const Root& root : options_.roots)
    if (at_or_below(root.path, path) || path == root.path) arm(root);
  std::vector<std::string> below;
  const auto all = path == "/";
  for (auto at = all ? directories_.begin() : directories_.lower_bound(path);
       at != directories_.end() && (all || at->first.starts_with(path)); ++at)
    if (at_or_below(at->first, path)) below.push_back(at->first);
  for (const auto& each : below)
    if (const auto at = directories_.find(each); at != directories_.end()) scan(*at);
}

void Discovery::ring_path(const std::string& path) {
  const auto parent = directories_.find(parent_of(path));
  if (parent == directories_.end()) {
    for (const Root& root : options_.roots) {
      if (at_or_below(root.path, path)) arm(root);
      for (const TranscriptDir hall : halls)
        if (hall_path(root, hall) == path) arm_hall(root, hall);
    }
    return;
  }
  Directory& known = parent->second;
  const std::string name(last_of(path));
  switch (kind_of(below_hall(*parent), name)) {
    case FileKind::transcript: {
      const std::string stem(stem_of(name));
      if (const auto file = known.files.find(stem); file != known.files.end())
        return keeper_.file_rang(*parent, stem, file->second, nullptr);
      const Facts facts = facts_of(path);
      if (facts.gone()) return health_.clear(path);
      return facts.error ? health_.set(path, facts.error) : file_new(*parent, name, facts);
    }
    case FileKind::agent_meta:
      return keeper_.meta_rang(*parent, stem_of(name));
    case FileKind::compaction:
      if (facts_of(path).error) {
        known.compactions.erase(name);
        return;
      }
      return keeper_.compaction_rang(*parent, name, known.compactions.insert(name).second);
    case FileKind::nothing:
      return ring_directory(&*parent, path, name);
  }
}

void Discovery::ring_directory(Place* parent, const std::string& path, std::string_view name) {
  const Directory& above = parent->second;
  const Facts facts = facts_of(path, above.depth == 0);
  if (facts.error && !facts.gone()) return unreadable(*parent, facts.error);
  if (facts.error || facts.kind != Facts::Kind::directory) return leave(path);
  if (above.depth + 1u > depth_max || !worth_entering(above.depth, name)) return;
  enter(path, *above.root, above.hall, above.depth + 1, facts);
}

Discovery::File* Discovery::find(std::string_view directory, std::string_view stem) {
  const auto at = directories_.find(directory);
  if (at == directories_.end()) return nullptr;
  const auto file = at->second.files.find(stem);
  return file == at->second.files.end() ? nullptr : &file->second;
}

void Discovery::file_new(Place& place, const std::string& name, const Facts& facts) {
  const std::string path = place.first + '/' + name;
  if (facts.kind == Facts::Kind::link) return;  // never followed
  if (facts.kind != Facts::Kind::regular)
    return health_.set(path, "not a regular file", "transcripts are regular files; this one is left alone");
  health_.clear(path);
  if (facts.links > 1 && is_linked_elsewhere(path, facts)) return;
  if (files_ >= files_max)
    return health_.set(place.second.root->path, "too many transcripts",
                       "remove old ones: not all are followed");
  const std::string stem(stem_of(name));
  File& file = place.second.files[stem];
  ++files_;
  file.inode = facts.inode;
  file.size = facts.size;
  file.modified_ms = facts.modified_ms();
  keeper_.file_found(place, stem, file, facts);
}

/// One stream a file, by whatever names: of hard links the first that was found is it.
bool Discovery::is_linked_elsewhere(const std::string& path, const Facts& facts) {
  const Identity identity{facts.device, facts.inode};
  auto at = linked_.find(identity);
  if (at == linked_.end()) {
    // The other name may have been found when it was the only one. Not while starting: then each shows its
    // links.
    std::string other;
    if (starting_ || !path_of(identity, other)) {
      linked_[identity] = {path, {}};
      return false;
    }
    at = linked_.emplace(identity, Linked{other, {}}).first;
  }
  Linked& linked = at->second;
  if (linked.owner == path) return false;
  const Facts owner = facts_of(linked.owner);
  if (owner.gone() || (!owner.error && Identity{owner.device, owner.inode} != identity)) {
    linked.owner = path;
    return false;
  }
  linked.others.insert(path);
  // It may have been written to by this name.
  if (File* file = find(parent_of(linked.owner), stem_of(last_of(linked.owner))))
    if (const auto owners = directories_.find(parent_of(linked.owner)); owners != directories_.end())
      keeper_.file_rang(*owners, std::string(stem_of(last_of(linked.owner))), *file, &facts);
  return true;
}

const std::string* Discovery::path_of(const Identity& identity, std::string& into) const {
  for (const auto& [path, directory] : directories_) {
    if (directory.device != identity.first) continue;
    for (const auto& [stem, file] : directory.files)
      if (file.inode == identity.second) {
        into = path + '/' + stem + ".jsonl";
        return &into;
      }
  }
  return nullptr;
}

void Discovery::erase(const std::string& path) {
  if (const auto at = directories_.find(parent_of(path)); at != directories_.end())
    if (const auto file = at->second.files.find(stem_of(last_of(path))); file != at->second.files.end()) {
      at->second.files.erase(file);
      --files_;
    }
  for (auto each = linked_.begin(); each != linked_.end(); ++each) {
    if (each->second.others.erase(path) > 0) return;
    if (each->second.owner != path) continue;
    const auto others = std::move(each->second.others);
    linked_.erase(each);
    for (const auto& other : others)
      disk_.soon([this, other] { ring_path(other); });  // the next one is it now
    return;
  }
}

}  // namespace earshot::tail
