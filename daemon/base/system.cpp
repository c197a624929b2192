#include "base/system.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/clock.hpp"

namespace earshot {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
constexpr int directory_flags = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC;

FileType type_of_mode(unsigned mode) {
  if (S_ISREG(mode)) return FileType::regular;
  if (S_ISDIR(mode)) return FileType::directory;
  if (S_ISLNK(mode)) return FileType::symlink;
  return FileType::other;
}

FileType type_of_entry(unsigned char type) {
  switch (type) {
    case DT_REG:
      return FileType::regular;
    case DT_DIR:
      return FileType::directory;
    case DT_LNK:
      return FileType::symlink;
    case DT_UNKNOWN:
      return FileType::unknown;
    default:
      return FileType::other;
  }
}

FileStat failed_stat() {
  FileStat result;
  result.error = errno;
  return result;
}

#ifdef __linux__

FileStat stat_at(int directory, const char* name, int flags) {
  struct statx info {};
  if (::statx(directory, name, flags, STATX_BASIC_STATS | STATX_BTIME, &info) != 0) return failed_stat();
  const auto ns = [](const statx_timestamp& time) { return time.tv_sec * second_ns + time.tv_nsec; };
  FileStat result;
  result.type = type_of_mode(info.stx_mode);
  result.mode = info.stx_mode & 07777;
  result.owner = info.stx_uid;
  result.links = info.stx_nlink;
  result.device = std::uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor;
  result.inode = info.stx_ino;
  result.size = info.stx_size;
  result.modified_ns = ns(info.stx_mtime);
  result.changed_ns = ns(info.stx_ctime);
  if (info.stx_mask & STATX_BTIME) result.born_ns = ns(info.stx_btime);
  return result;
}

FileStat stat_fd(int fd) { return stat_at(fd, "", AT_EMPTY_PATH); }

#else

FileStat from_stat(int failed, const struct stat& info) {
  if (failed) return failed_stat();
  const auto ns = [](const timespec& time) { return time.tv_sec * second_ns + time.tv_nsec; };
  FileStat result;
  result.type = type_of_mode(info.st_mode);
  result.mode = info.st_mode & 07777;
  result.owner = info.st_uid;
  result.links = static_cast<std::uint32_t>(info.st_nlink);
  result.device = static_cast<std::uint64_t>(info.st_dev);
  result.inode = info.st_ino;
  result.size = static_cast<std::uint64_t>(info.st_size);
#ifdef __APPLE__
  result.modified_ns = ns(info.st_mtimespec);
  result.changed_ns = ns(info.st_ctimespec);
  result.born_ns = ns(info.st_birthtimespec);
#else
  result.modified_ns = ns(info.st_mtim);
  result.changed_ns = ns(info.st_ctim);
#endif
  return result;
}

FileStat stat_at(int directory, const char* name, int flags) {
  struct stat info {};
  return from_stat(::fstatat(directory, name, &info, flags), info);
}

FileStat stat_fd(int fd) {
  struct stat info {};
  return from_stat(::fstat(fd, &info), info);
}

#endif

int stat_flags(Symlinks symlinks) { return symlinks == Symlinks::follow ? 0 : AT_SYMLINK_NOFOLLOW; }
int open_flags(Symlinks symlinks) { return symlinks == Symlinks::follow ? 0 : O_NOFOLLOW; }

}  // namespace

namespace {

FileStat timed_out() {
  FileStat result;
  result.error = ETIMEDOUT;
  return result;
}

/// `call(path)`, bounded if the path's file system may stop answering.
template <class Call, class Result>
Result call_for(const std::string& path, Call call, Result on_timeout) {
  const auto directory = bounded_directory_of(path);
  if (!directory) return call(path);
  return bounded(
      directory, [path, call] { return call(path); }, std::move(on_timeout));
}

Fd open_bounded(const std::string& path, int flags) {
  Fd fd = call_for(
      path, [flags](const std::string& each) { return Fd(::open(each.c_str(), flags)); }, Fd());
  if (fd)
    if (auto directory = bounded_directory_of(path)) add_bounded_descriptor(fd.get(), std::move(directory));
  return fd;
}

long read_at_once(int fd, char* buffer, std::size_t size, std::uint64_t offset, ReadMode mode) {
  for (;;) {
    ssize_t count = 0;
    if (mode == ReadMode::no_wait) {
#ifdef RWF_NOWAIT
      const iovec piece{buffer, size};
      count = ::preadv2(fd, &piece, 1, static_cast<off_t>(offset), RWF_NOWAIT);
#else
      return -EOPNOTSUPP;
#endif
    } else {
      count = ::pread(fd, buffer, size, static_cast<off_t>(offset));
    }
    if (count >= 0) return count;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

void close_fd(int fd) {
  if (const auto directory = forget_bounded_descriptor(fd))
    post_bounded(*directory, [fd] { ::close(fd); });
  else
    ::close(fd);
}

FileStat stat_file(const std::string& path, Symlinks symlinks) {
  const int flags = stat_flags(symlinks);
  return call_for(
      path, [flags](const std::string& each) { return stat_at(AT_FDCWD, each.c_str(), flags); }, timed_out());
}

FileStat stat_file(int fd) {
  const auto directory = bounded_directory_of(fd);
  return directory ? bounded(
                         directory, [fd] { return stat_fd(fd); }, timed_out())
                   : stat_fd(fd);
}

std::string real_path(const std::string& path) {
  return call_for(
      path,
      [](const std::string& each) {
        const std::unique_ptr<char, decltype(&::free)> resolved(::realpath(each.c_str(), nullptr), &::free);
        return resolved ? std::string(resolved.get()) : std::string();
      },
      std::string());
}

namespace {

std::vector<std::string> read_links(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> links;
  fs::path at = "/";           // without links
  std::vector<fs::path> rest;  // the next name is the last
  const auto add = [&](const fs::path& names) {
    const std::vector<fs::path> parts(names.begin(), names.end());
    rest.insert(rest.end(), parts.rbegin(), parts.rend());
  };
  add(fs::path(path).relative_path());
  while (!rest.empty() && links.size() < links_max) {
    const fs::path name = (at / rest.back()).lexically_normal();
    rest.pop_back();
    std::error_code error;
    const fs::file_type type = fs::symlink_status(name, error).type();
    if (type == fs::file_type::directory) {
      at = name;
      continue;
    }
    links.push_back(name);
    const fs::path target = type == fs::file_type::symlink ? fs::read_symlink(name, error) : fs::path();
    if (target.empty()) break;
    if (target.is_absolute()) at = "/";
    add(target.relative_path());
  }
  return links;
}

}  // namespace

std::vector<std::string> links_of(const std::string& path) {
  return call_for(path, read_links, std::vector<std::string>());
}

Fd open_for_reading(const std::string& path, Symlinks symlinks) {
  return open_bounded(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | open_flags(symlinks));
}

long read_at(int fd, char* buffer, std::size_t size, std::uint64_t offset, ReadMode mode) {
  const auto directory = bounded_directory_of(fd);
  if (!directory) return read_at_once(fd, buffer, size, offset, mode);
  // The call may outlive the caller's buffer.
  const auto own = std::make_shared<std::vector<char>>(size);
  const long count = bounded(
      directory, [=] { return read_at_once(fd, own->data(), size, offset, mode); }, long{-ETIMEDOUT});
  if (count > 0) std::memcpy(buffer, own->data(), static_cast<std::size_t>(count));
  return count;
}

Directory::Directory(const std::string& path, Symlinks symlinks)
    : path_(path), fd_(open_bounded(path, directory_flags | open_flags(symlinks))), error_(fd_ ? 0 : errno) {}

FileStat Directory::stat() const { return stat_file(fd_.get()); }

FileStat Directory::stat_entry(const char* name, Symlinks symlinks) const {
  const int fd = fd_.get(), flags = stat_flags(symlinks);
  if (!has_bounded_directories()) return stat_at(fd, name, flags);
  const std::string path = path_ + '/' + name;  // may be a mount point
  if (!bounded_directory_of(path)) return stat_at(fd, name, flags);
  return stat_file(path, symlinks);
}

namespace {

using VisitEntry = std::function<void(std::string_view name, FileType type)>;

void visit_entry(const char* entry_name, unsigned char type, const VisitEntry& visit) {
  const std::string_view name = entry_name;
  if (name != "." && name != "..") visit(name, type_of_entry(type));
}

#ifdef __linux__

/// readdir() would need a descriptor of its own, five more system calls.
int visit_entries(int fd, bool was_listed, const VisitEntry& visit) {
  constexpr std::size_t buffer_bytes = 32 << 10;
  alignas(dirent64) char buffer[buffer_bytes];
  if (was_listed && ::lseek(fd, 0, SEEK_SET) < 0) return errno;
  for (;;) {
    const ssize_t bytes = ::getdents64(fd, buffer, sizeof buffer);
    if (bytes < 0) return errno;
    if (bytes == 0) return 0;
    for (ssize_t at = 0; at < bytes;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(buffer + at);
      visit_entry(entry.d_name, entry.d_type, visit);
      at += entry.d_reclen;
    }
  }
}

#else

int visit_entries(int fd, bool, const VisitEntry& visit) {
  const int own = ::openat(fd, ".", directory_flags);  // with a position of its own
  DIR* const entries = own >= 0 ? ::fdopendir(own) : nullptr;
  if (!entries) {
    const int error = errno;
    if (own >= 0) ::close(own);
    return error;
  }
  for (errno = 0; const dirent* const entry = ::readdir(entries); errno = 0)
    visit_entry(entry->d_name, entry->d_type, visit);
  const int error = errno;
  ::closedir(entries);
  return error;
}

#endif

}  // namespace

int Directory::for_each(const std::function<void(std::string_view, FileType)>& visit) const {
  const int fd = fd_.get();
  const bool was_listed = std::exchange(is_listed_, true);
  const auto directory = bounded_directory_of(fd);
  if (!directory) return visit_entries(fd, was_listed, visit);
  const auto names = std::make_shared<std::vector<std::pair<std::string, FileType>>>();
  const int error = bounded(
      directory,
      [fd, was_listed, names] {
        return visit_entries(fd, was_listed,
                             [&](std::string_view name, FileType type) { names->emplace_back(name, type); });
      },
      ETIMEDOUT);
  if (error != ETIMEDOUT)
    for (const auto& [name, type] : *names) visit(name, type);
  return error;
}

Clock::time_point Clock::now() noexcept { return std::chrono::steady_clock::now(); }

// Never zero: Asio arms a timer that is due by an absolute time of 1 ns, which fires late where a library
// displaces the clock (libfaketime).
Clock::duration Clock::sleep(duration until_due) noexcept {
  return std::max<duration>(until_due, std::chrono::microseconds(1));
}

std::chrono::nanoseconds wall_now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace earshot
