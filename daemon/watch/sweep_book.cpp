#include "watch/sweep_book.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

namespace earshot::watch {
namespace {

// File systems with times of two seconds exist (FAT): a listing so soon after a change may have missed
// another one.
constexpr std::int64_t coarse_ns = 2'000'000'000;

#ifdef __APPLE__
std::int64_t modified_ns(const struct stat& is) {
  return is.st_mtimespec.tv_sec * 1'000'000'000 + is.st_mtimespec.tv_nsec;
}
std::int64_t changed_ns(const struct stat& is) {
  return is.st_ctimespec.tv_sec * 1'000'000'000 + is.st_ctimespec.tv_nsec;
}
#else
std::int64_t modified_ns(const struct stat& is) {
  return is.st_mtim.tv_sec * 1'000'000'000 + is.st_mtim.tv_nsec;
}
std::int64_t changed_ns(const struct stat& is) {
  return is.st_ctim.tv_sec * 1'000'000'000 + is.st_ctim.tv_nsec;
}
#endif

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

struct Handle {
  explicit Handle(const char* directory)
      : fd(::open(directory, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC)) {}
  ~Handle() {
    if (fd >= 0) ::close(fd);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  const int fd;
};

}  // namespace

std::uint64_t signature_at(int directory, const char* name) {
  struct stat is {};
  if (::fstatat(directory, name, &is, AT_SYMLINK_NOFOLLOW) != 0) return 1;
  std::uint64_t hash = mix(mix(0x65617273686f74u, is.st_ino), is.st_mode);
  if (!S_ISDIR(is.st_mode))
    hash = mix(
        mix(mix(hash, static_cast<std::uint64_t>(is.st_size)), static_cast<std::uint64_t>(modified_ns(is))),
        static_cast<std::uint64_t>(changed_ns(is)));
  return hash < 2 ? 2 : hash;
}

void Sweep::Book::add(const std::string& path) {
  const auto [at, is_new] = directories_.try_emplace(path);
  if (!is_new) return;
  const Handle handle(path.c_str());
  at->second.there = handle.fd >= 0 && list(handle.fd, at->second);
}

void Sweep::Book::remove(const std::string& path) {
  const std::string below = path + '/';
  directories_.erase(path);
  for (auto at = directories_.lower_bound(below); at != directories_.end() && at->first.starts_with(below);)
    at = directories_.erase(at);
}

bool Sweep::Book::list(int fd, Directory& into) {
  struct stat is {};
  into = {};
  into.listed_ns = now_ns();  // before the listing, so that a change during it counts as after it
  if (::fstat(fd, &is) != 0) return false;
  into.modified_ns = modified_ns(is);
  const int own = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
  DIR* listing = own < 0 ? nullptr : ::fdopendir(own);
  if (!listing) {
    if (own >= 0) ::close(own);
    return false;
  }
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    into.entries.push_back({signature_at(fd, entry->d_name), static_cast<std::uint32_t>(into.names.size()),
                            static_cast<std::uint32_t>(name.size())});
    into.names += name;
    into.names += '\0';  // so that a name can be handed to the system where it lies
  }
  ::closedir(listing);
  into.there = true;
  into.names.shrink_to_fit();
  into.entries.shrink_to_fit();
  std::sort(into.entries.begin(), into.entries.end(),
            [&](const Entry& a, const Entry& b) { return into.name(a) < into.name(b); });
  return true;
}

void Sweep::Book::compare(const std::string& path, const Directory& before, const Directory& after,
                          std::vector<Ring>& rings) {
  const auto ring = [&](std::string_view name) {
    rings.push_back({Ring::Where::path, path + '/' + std::string(name)});
  };
  // What went is told before what came: a renamed file is first gone, then there.
  std::vector<std::string_view> changed;
  auto old = before.entries.begin();
  for (const Entry& entry : after.entries) {
    const std::string_view name = after.name(entry);
    for (; old != before.entries.end() && before.name(*old) < name; ++old) ring(before.name(*old));
    const bool known = old != before.entries.end() && before.name(*old) == name;
    if (!known || old->signature != entry.signature) changed.push_back(name);
    if (known) ++old;
  }
  for (; old != before.entries.end(); ++old) ring(before.name(*old));
  for (const auto& name : changed) ring(name);
}

std::size_t Sweep::Book::look(Directories::value_type& each, std::size_t from, std::size_t stats_max,
                              std::vector<Ring>& rings) {
  auto& [path, known] = each;
  const Handle handle(path.c_str());
  struct stat is {};
  if (handle.fd < 0 || ::fstat(handle.fd, &is) != 0) {
    if (known.there) rings.push_back({Ring::Where::directory, path});
    known = {};
    return 0;
  }
  if (from == 0 && (!known.there || modified_ns(is) != known.modified_ns ||
                    known.modified_ns > known.listed_ns - coarse_ns)) {
    Directory now;
    if (!list(handle.fd, now)) return 0;
    if (!known.there) rings.push_back({Ring::Where::directory, path});
    compare(path, known, now, rings);
    known = std::move(now);
    return 0;
  }
  std::size_t at = from;
  for (; at < known.entries.size() && at - from < stats_max; ++at) {
    Entry& entry = known.entries[at];
    const char* name = known.names.c_str() + entry.name_at;
    const std::uint64_t signature = signature_at(handle.fd, name);
    if (signature == entry.signature) continue;
    entry.signature = signature;
    rings.push_back({Ring::Where::path, path + '/' + name});
  }
  return at < known.entries.size() ? at : 0;
}

bool Sweep::Book::slice(std::size_t stats_max, std::vector<Ring>& rings) {
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
