// The system calls that the simulator replaces with its own machine: files that the daemon watches, and the
// clocks of base/clock.hpp. Errors are values of errno; ETIMEDOUT: base/bounded_calls.hpp. Nothing is opened
// for writing.
#pragma once
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace earshot {

/// Closes a descriptor of open_for_reading() or of the system.
void close_fd(int fd);

/// Owns a file descriptor and closes it. A negative value means none.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Gives up ownership.
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    const int old = std::exchange(fd_, fd);
    if (old >= 0) close_fd(old);
  }

 private:
  int fd_ = -1;
};

enum class FileType : std::uint8_t { regular, directory, symlink, other, unknown };

/// Whether the last component of a path may be a symbolic link that is followed.
enum class Symlinks : std::uint8_t { no_follow, follow };

/// The attributes of a file at one moment.
struct FileStat {
  int error = 0;  // of errno; if not 0, nothing else is set
  FileType type = FileType::unknown;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t owner = 0;
  std::uint32_t links = 0;
  std::uint64_t device = 0, inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  std::int64_t born_ns = 0;  // 0: the file system does not report it

  bool ok() const { return error == 0; }
  bool is_regular() const { return type == FileType::regular; }
  bool is_directory() const { return type == FileType::directory; }
  bool is_missing() const { return error == ENOENT || error == ENOTDIR; }
  std::int64_t modified_ms() const { return modified_ns / 1'000'000; }
  /// A copy is younger than its original, also where only the times of writing were copied.
  std::int64_t origin_ns() const { return born_ns == 0 ? modified_ns : std::min(born_ns, modified_ns); }
  /// Same device, inode and, if both are known, birth time. Inodes are reused: true proves nothing.
  bool is_same_file(const FileStat& other) const {
    return device == other.device && inode == other.inode &&
           (born_ns == other.born_ns || born_ns == 0 || other.born_ns == 0);
  }
};

FileStat stat_file(const std::string& path, Symlinks symlinks = Symlinks::no_follow);
FileStat stat_file(int fd);

/// Absolute and without symbolic links; empty on failure, and errno is set.
std::string real_path(const std::string& path);

/// The names that decide where an absolute path leads: each symbolic link on the way, and the name that is
/// missing or cannot be read. At most links_max.
constexpr std::size_t links_max = 16;
std::vector<std::string> links_of(const std::string& path);

/// Never blocks on a FIFO. On failure the result is empty and errno is set.
Fd open_for_reading(const std::string& path, Symlinks symlinks = Symlinks::no_follow);

enum class ReadMode : std::uint8_t {
  wait,     // for the disk
  no_wait,  // only from the page cache: -EAGAIN otherwise, -EOPNOTSUPP where that is not available
};

/// Returns the number of bytes read (0: end of file) or -errno. A result may be short.
long read_at(int fd, char* buffer, std::size_t size, std::uint64_t offset, ReadMode mode = ReadMode::wait);

/// An open directory. It can be listed and its entries examined even after it was renamed.
class Directory {
 public:
  explicit Directory(const std::string& path, Symlinks symlinks = Symlinks::no_follow);
  /// Why the directory could not be opened; 0: it is open.
  int error() const { return error_; }
  FileStat stat() const;
  /// `name` must be terminated by NUL.
  FileStat stat_entry(const char* name, Symlinks symlinks = Symlinks::no_follow) const;
  /// Calls `visit` for each entry except `.` and `..`, in no order. `name` is followed by a NUL; `type` may
  /// be unknown. Returns 0 or, if the listing is incomplete, the error.
  int for_each(const std::function<void(std::string_view name, FileType type)>& visit) const;

 private:
  std::string path_;
  Fd fd_;
  int error_ = 0;
  mutable bool is_listed_ = false;  // its position is no longer at the first entry
};

}  // namespace earshot
