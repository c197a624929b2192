#include "watch/directory_snapshot.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "watch/directory.hpp"

namespace earshot::watch {
namespace {

// File systems with times of two seconds exist (FAT): a listing so soon after a change may have missed
// another one.
constexpr std::int64_t coarse_ns = 2'000'000'000;

}  // namespace

void Sweep::DirectorySnapshot::add(const std::string& path) { list(OpenDirectory(path), directories_[path]); }

void Sweep::DirectorySnapshot::remove(const std::string& path) {
  const std::string below = path + '/';
  directories_.erase(path);
  if (const auto slash = path.rfind('/'); slash != path.npos && slash > 0)
    if (const auto parent = directories_.find(std::string_view(path).substr(0, slash));
        parent != directories_.end())
      parent->second.doubt(std::string_view(path).substr(slash + 1));
  for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);)
    at = directories_.erase(at);
}

void Sweep::DirectorySnapshot::Directory::doubt(std::string_view name_of_one) {
  const auto at =
      std::lower_bound(entries.begin(), entries.end(), name_of_one,
                       [this](const Entry& entry, std::string_view wanted) { return name(entry) < wanted; });
  if (at != entries.end() && name(*at) == name_of_one) at->signature = 1;
}

/// False: it cannot be listed; what was known of it is forgotten.
bool Sweep::DirectorySnapshot::list(const OpenDirectory& directory, Directory& into) {
  into = {};
  // Before the listing, so that a change during it counts as after it.
  into.listed_ns = wall_now().count();
  const auto modified = directory.modified_ns();
  if (!modified) return false;
  into.modified_ns = *modified;
  into.there = directory.list([&](std::string_view name, std::uint64_t signature) {
    into.entries.push_back(
        {signature, static_cast<std::uint32_t>(into.names.size()), static_cast<std::uint32_t>(name.size())});
    into.names += name;
    into.names += '\0';  // so that a name can be handed to the system where it lies
  });
  into.names.shrink_to_fit();
  into.entries.shrink_to_fit();
  std::sort(into.entries.begin(), into.entries.end(),
            [&](const Entry& a, const Entry& b) { return into.name(a) < into.name(b); });
  return into.there;
}

void Sweep::DirectorySnapshot::compare(const std::string& path, const Directory& before,
                                       const Directory& after, std::vector<ChangeHint>& rings) {
  const auto ring = [&](std::string_view name, bool entry) {
    rings.push_back({ChangeHint::Where::path, path + '/' + std::string(name), entry});
  };
  // What went is told before what came: a renamed file is first gone, then there.
  std::vector<std::pair<std::string_view, bool>> changed;
  auto old = before.entries.begin();
  for (const Entry& entry : after.entries) {
    const std::string_view name = after.name(entry);
    for (; old != before.entries.end() && before.name(*old) < name; ++old) ring(before.name(*old), true);
    const bool known = old != before.entries.end() && before.name(*old) == name;
    if (!known || old->signature != entry.signature) changed.emplace_back(name, !known);
    if (known) ++old;
  }
  for (; old != before.entries.end(); ++old) ring(before.name(*old), true);
  for (const auto& [name, entry] : changed) ring(name, entry);
}

std::size_t Sweep::DirectorySnapshot::look(Directories::value_type& each, std::size_t from,
                                           std::size_t stats_max, std::vector<ChangeHint>& rings) {
  auto& [path, known] = each;
  const OpenDirectory directory(path);
  const auto modified = directory.modified_ns();
  if (!modified) {
    if (known.there) rings.push_back({ChangeHint::Where::directory, path});
    known = {};
    return 0;
  }
  if (from == 0 &&
      (!known.there || *modified != known.modified_ns || known.modified_ns > known.listed_ns - coarse_ns)) {
    Directory now;
    if (!list(directory, now)) return 0;
    if (!known.there) rings.push_back({ChangeHint::Where::directory, path});
    compare(path, known, now, rings);
    known = std::move(now);
    return 0;
  }
  std::size_t at = from;
  for (; at < known.entries.size() && at - from < stats_max; ++at) {
    Entry& entry = known.entries[at];
    const char* name = known.names.c_str() + entry.name_at;
    const std::uint64_t signature = directory.signature_of(name);
    if (signature == entry.signature) continue;
    entry.signature = signature;
    rings.push_back({ChangeHint::Where::path, path + '/' + name});
  }
  return at < known.entries.size() ? at : 0;
}

bool Sweep::DirectorySnapshot::slice(std::size_t stats_max, std::vector<ChangeHint>& rings) {
  auto at = directories_.lower_bound(turn_);
  if (at == directories_.end() || at->first != turn_) from_ = 0;  // forgotten meanwhile
  for (std::size_t spent = 0; at != directories_.end(); ++at, from_ = 0) {
    if (spent >= stats_max) {
      turn_ = at->first;
      return false;
    }
    const std::size_t next = look(*at, from_, stats_max - spent, rings);
    if (next != 0) {
      turn_ = at->first;
      from_ = next;
      return false;
    }
    spent += at->second.entries.size() - std::min(from_, at->second.entries.size()) + 1;
  }
  turn_.clear();
  from_ = 0;
  return true;
}

}  // namespace earshot::watch
