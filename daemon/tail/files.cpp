#include "tail/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace earshot::tail {
namespace {

constexpr std::int64_t ns = 1'000'000'000;

Facts::Kind kind_of_mode(unsigned mode) {
  if (S_ISREG(mode)) return Facts::Kind::regular;
  if (S_ISDIR(mode)) return Facts::Kind::directory;
  if (S_ISLNK(mode)) return Facts::Kind::link;
  return Facts::Kind::other;
}

#ifdef __linux__

Facts facts_at(int fd, const char* name, int flags) {
  Facts facts;
  struct statx is {};
  if (::statx(fd, name, flags, STATX_BASIC_STATS | STATX_BTIME, &is) != 0) {
    facts.error = errno;
    return facts;
  }
  facts.kind = kind_of_mode(is.stx_mode);
  facts.links = is.stx_nlink;
  facts.device = std::uint64_t{is.stx_dev_major} << 32 | is.stx_dev_minor;
  facts.inode = is.stx_ino;
  facts.size = is.stx_size;
  facts.modified_ns = is.stx_mtime.tv_sec * ns + is.stx_mtime.tv_nsec;
  facts.changed_ns = is.stx_ctime.tv_sec * ns + is.stx_ctime.tv_nsec;
  if (is.stx_mask & STATX_BTIME) facts.born_ns = is.stx_btime.tv_sec * ns + is.stx_btime.tv_nsec;
  return facts;
}

Facts facts_at_fd(int fd) { return facts_at(fd, "", AT_EMPTY_PATH); }

#else

Facts facts_from(int failed, const struct stat& is) {
  Facts facts;
  if (failed) {
    facts.error = errno;
    return facts;
  }
  facts.kind = kind_of_mode(is.st_mode);
  facts.links = static_cast<std::uint32_t>(is.st_nlink);
  facts.device = static_cast<std::uint64_t>(is.st_dev);
  facts.inode = is.st_ino;
  facts.size = static_cast<std::uint64_t>(is.st_size);
#ifdef __APPLE__
  facts.modified_ns = is.st_mtimespec.tv_sec * ns + is.st_mtimespec.tv_nsec;
  facts.changed_ns = is.st_ctimespec.tv_sec * ns + is.st_ctimespec.tv_nsec;
  facts.born_ns = is.st_birthtimespec.tv_sec * ns + is.st_birthtimespec.tv_nsec;
#else
  facts.modified_ns = is.st_mtim.tv_sec * ns + is.st_mtim.tv_nsec;
  facts.changed_ns = is.st_ctim.tv_sec * ns + is.st_ctim.tv_nsec;
#endif
  return facts;
}

Facts facts_at(int fd, const char* name, int flags) {
  struct stat is {};
  return facts_from(::fstatat(fd, name, &is, flags), is);
}

Facts facts_at_fd(int fd) {
  struct stat is {};
  return facts_from(::fstat(fd, &is), is);
}

#endif

}  // namespace

void Descriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool Facts::gone() const { return error == ENOENT || error == ENOTDIR; }

Facts facts_of(const std::string& path, bool follow) {
  return facts_at(AT_FDCWD, path.c_str(), follow ? 0 : AT_SYMLINK_NOFOLLOW);
}

Facts facts_of(int fd) { return facts_at_fd(fd); }

Descriptor open_transcript(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
}

long read_at(int fd, char* into, std::size_t bytes, std::uint64_t offset, bool at_once) {
  for (;;) {
    ssize_t got = 0;
    if (at_once) {
#ifdef RWF_NOWAIT
      const iovec piece{into, bytes};
      got = ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
#else
      return -EOPNOTSUPP;
#endif
    } else {
      got = ::pread(fd, into, bytes, static_cast<off_t>(offset));
    }
    if (got >= 0) return got;
    if (errno != EINTR) return -errno;
  }
}

std::optional<std::string> read_small(const std::string& path, std::size_t bytes_max) {
  const Descriptor file = open_transcript(path);
  if (!file) return std::nullopt;
  const Facts facts = facts_of(file.get());
  if (facts.error || facts.kind != Facts::Kind::regular || facts.size > bytes_max) return std::nullopt;
  std::string text(facts.size, '\0');
  const long got = read_at(file.get(), text.data(), text.size(), 0, false);
  if (got < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(got));
  return text;
}

Listing list(const std::string& directory, Links follow,
             const std::function<bool(const std::string&)>& wanted) {
  Listing listing{directory, {}, {}};
  const int flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;
  Descriptor fd(::open(directory.c_str(), follow.itself ? flags : flags | O_NOFOLLOW));
  if (!fd) {
    listing.self.error = errno;
    return listing;
  }
  listing.self = facts_of(fd.get());
  Descriptor stream(::openat(fd.get(), ".", flags));
  DIR* entries = stream ? ::fdopendir(stream.get()) : nullptr;
  if (!entries) {
    listing.self.error = errno;
    return listing;
  }
  stream.release();  // closedir() closes it
  for (errno = 0; const dirent* entry = ::readdir(entries); errno = 0) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const bool maybe_directory =
        entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK;
    if (!maybe_directory && !wanted(name)) continue;
    Facts facts = facts_at(fd.get(), entry->d_name, AT_SYMLINK_NOFOLLOW);
    if (facts.kind == Facts::Kind::link && follow.inside && !facts.error) {
      const Facts target = facts_at(fd.get(), entry->d_name, 0);
      if (!target.error && target.kind == Facts::Kind::directory)
        facts = target;  // a link to a file stays a link
    }
    if (facts.gone()) continue;  // since it was listed
    if (facts.error || facts.kind == Facts::Kind::directory || wanted(name))
      listing.entries.push_back({name, facts});
  }
  if (errno) listing.self.error = errno;
  ::closedir(entries);
  return listing;
}

}  // namespace earshot::tail
