#include "base/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/hex.hpp"

namespace earshot {
namespace {

// The name of a file that write_private_file() has not finished.
constexpr std::string_view temporary_suffix = ".tmp";
constexpr std::size_t temporary_random_bytes = 4;

constexpr std::size_t read_bytes = 4096;  // at first, of a file that reports no size

std::string with_reason(const std::string& path, int error) { return path + ": " + std::strerror(error); }

// Appends the file from its current end in `text` until the file ends or `text` has `bytes_max` bytes.
// Returns 0 or the error.
int read_up_to(int fd, std::string& text, std::size_t bytes_max, std::size_t expected_bytes) {
  std::size_t size = 0;
  text.resize(std::min(bytes_max, std::max(expected_bytes + 1, read_bytes)));
  for (;;) {
    if (size == text.size()) {
      if (size == bytes_max) break;
      text.resize(std::min(bytes_max, 2 * size));
    }
    const long count = read_at(fd, text.data() + size, text.size() - size, size);
    if (count < 0) {
      text.clear();
      return static_cast<int>(-count);
    }
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  text.shrink_to_fit();
  return 0;
}

}  // namespace

std::string SmallFile::error_text() const {
  if (error == EINVAL && stat.ok() && !stat.is_regular()) return "not a regular file";
  return error == EFBIG ? "too long" : std::strerror(error);
}

SmallFile read_small_file(const std::string& path, std::size_t bytes_max, Symlinks symlinks) {
  SmallFile file;
  const Fd fd = open_for_reading(path, symlinks);
  if (!fd) {
    file.error = errno;
    return file;
  }
  file.stat = stat_file(fd.get());
  file.error = file.stat.error;
  if (file.stat.ok() && !file.stat.is_regular()) file.error = EINVAL;
  if (file.stat.ok() && file.stat.is_regular() && file.stat.size > bytes_max) file.error = EFBIG;
  if (file.error) return file;
  file.error = read_up_to(fd.get(), file.text, bytes_max + 1, file.stat.size);
  if (file.text.size() > bytes_max) {
    file.text.clear();
    file.error = EFBIG;
  }
  return file;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

DirectoryListing list_directory(const std::string& path, ListingSymlinks symlinks,
                                const std::function<bool(const std::string&)>& is_wanted,
                                const std::function<void(std::string_view, const FileStat&)>& visit_all) {
  DirectoryListing listing{path, {}, {}};
  const Directory directory(path, symlinks.self ? Symlinks::follow : Symlinks::no_follow);
  if (directory.error()) {
    listing.stat.error = directory.error();
    return listing;
  }
  listing.stat = directory.stat();
  const int error = directory.for_each([&](std::string_view entry, FileType type) {
    std::string name(entry);
    const bool maybe_directory =
        type == FileType::directory || type == FileType::symlink || type == FileType::unknown;
    // Names that are certainly directories are listed whether they are wanted or not.
    const bool wanted = type != FileType::directory && is_wanted(name);
    if (!wanted && !maybe_directory && !visit_all) return;
    FileStat stat = directory.stat_entry(entry.data());
    if (visit_all) visit_all(entry, stat);
    if (stat.ok() && stat.type == FileType::symlink && symlinks.entries) {
      const FileStat target = directory.stat_entry(entry.data(), Symlinks::follow);
      if (target.ok() && target.is_directory()) stat = target;
    }
    if (stat.is_missing()) return;  // removed since it was listed
    const bool is_listed = maybe_directory && (!stat.ok() || stat.is_directory());
    if (is_listed || wanted || (type == FileType::directory && is_wanted(name)))
      listing.entries.push_back({std::move(name), stat});
  });
  if (error) listing.stat.error = error;
  return listing;
}

std::string make_private_directory(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::path(path).lexically_normal().parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failed);
  if (failed) return path + ": " + failed.message();
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return with_reason(path, errno);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return with_reason(path, errno);
  if (!S_ISDIR(info.st_mode)) return path + ": not a directory";
  if (info.st_uid != ::geteuid()) return path + ": belongs to another user";
  if (info.st_mode & 022) return path + ": others can write to it; run: chmod 700 " + path;
  return {};
}

std::string write_private_file(const std::string& path, std::string_view content, IfExists if_exists) {
  std::string temporary = path + "." + random_hex(temporary_random_bytes);
  temporary += temporary_suffix;
  {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return with_reason(temporary, errno);
    if (!write_all(fd.get(), content) || ::fsync(fd.get()) != 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return with_reason(temporary, error);
    }
  }
  const bool replace = if_exists == IfExists::replace;
  const bool done =
      (replace ? ::rename(temporary.c_str(), path.c_str()) : ::link(temporary.c_str(), path.c_str())) == 0;
  const int error = done ? 0 : errno;
  if (!done || !replace) ::unlink(temporary.c_str());
  if (error == EEXIST && !replace) return {};
  return done ? std::string() : with_reason(path, error);
}

void remove_unfinished_files(const std::string& directory) {
  const auto is_unfinished = [](std::string_view name) {
    if (!name.ends_with(temporary_suffix)) return false;
    name.remove_suffix(temporary_suffix.size());
    const std::size_t dot = name.rfind('.');
    return dot != name.npos && name.size() - dot - 1 == 2 * temporary_random_bytes &&
           is_hex(name.substr(dot + 1));
  };
  for (const DirectoryEntry& entry : list_directory(directory, {}, is_unfinished).entries)
    if (entry.stat.is_regular() && is_unfinished(entry.name))
      ::unlink((directory + "/" + entry.name).c_str());
}

PrivateFile read_private_file(const std::string& path, std::size_t bytes_max) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno == ENOENT) return {};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return {{}, with_reason(path, errno)};
  if (!S_ISREG(info.st_mode)) return {{}, path + ": not a regular file"};
  if (info.st_uid != ::geteuid()) return {{}, path + ": belongs to another user"};
  if (info.st_mode & 077)
    return {{},
            path + ": others can read it; if its content is still secret, run: chmod 600 " + path +
                "; otherwise delete it and a new one is made"};
  std::string text;
  if (const int error = read_up_to(fd.get(), text, bytes_max, 0)) return {{}, with_reason(path, error)};
  return {std::move(text), {}};
}

FileLock lock_file(const std::string& path) {
  constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  FileLock lock;
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | flags, 0600));
  if (!fd) lock.error = errno;
  if (lock.error == EROFS) fd = Fd(::open(path.c_str(), O_RDONLY | flags));  // an existing file can be locked
  if (!fd) return lock;
  lock.error = 0;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    lock.error = errno;
    char text[32];
    const long count = read_at(fd.get(), text, sizeof text, 0);
    const std::string_view written(text, static_cast<std::size_t>(std::max(count, 0L)));
    if (lock.error == EWOULDBLOCK)
      lock.holder = written.substr(0, std::min(written.find_first_not_of("0123456789"), written.size()));
    return lock;
  }
  // The number is only for the message of a second process: a failure to write it does not matter.
  if (::ftruncate(fd.get(), 0) == 0) write_all(fd.get(), std::to_string(::getpid()) + "\n");
  lock.fd = std::move(fd);
  return lock;
}

}  // namespace earshot
