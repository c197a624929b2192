#include "watch/directory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace earshot::watch {
namespace {

constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

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

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

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

}  // namespace

std::uint64_t signature_of(const std::string& path) { return signature_at(AT_FDCWD, path.c_str()); }

OpenDirectory::OpenDirectory(const std::string& path) : fd_(::open(path.c_str(), directory_flags)) {}

OpenDirectory::~OpenDirectory() {
  if (fd_ >= 0) ::close(fd_);
}

std::optional<std::int64_t> OpenDirectory::modified_ns() const {
  struct stat is {};
  if (fd_ < 0 || ::fstat(fd_, &is) != 0) return std::nullopt;
  return watch::modified_ns(is);
}

bool OpenDirectory::list(const std::function<void(std::string_view, std::uint64_t)>& visit) const {
  const int own = ::openat(fd_, ".", directory_flags);
  DIR* listing = own < 0 ? nullptr : ::fdopendir(own);
  if (!listing) {
    if (own >= 0) ::close(own);
    return false;
  }
  while (const dirent* entry = ::readdir(listing)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") visit(name, signature_at(fd_, entry->d_name));
  }
  ::closedir(listing);
  return true;
}

std::uint64_t OpenDirectory::signature_of(const char* name) const { return signature_at(fd_, name); }

}  // namespace earshot::watch
