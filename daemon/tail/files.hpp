// Plain calls on the file system, for either thread; errors are values. Nothing here is ever opened for
// writing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/cursor.hpp"

namespace earshot::tail {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// What the system says of a file at one moment.
struct Facts {
  enum class Kind : std::uint8_t { regular, directory, link, other };
  int error = 0;  // of errno; the rest is meaningless then
  Kind kind = Kind::other;
  std::uint32_t links = 0;
  std::uint64_t device = 0, inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0, changed_ns = 0;
  std::int64_t born_ns = 0;  // 0: the file system does not say

  bool gone() const;  // ENOENT, ENOTDIR
  std::int64_t modified_ms() const { return modified_ns / 1'000'000; }
  /// The same file as far as can be told; a hint, never a proof.
  bool same_file(const Facts& other) const {
    return device == other.device && inode == other.inode &&
           (born_ns == other.born_ns || born_ns == 0 || other.born_ns == 0);
  }
};

Facts facts_of(const std::string& path, bool follow = false);
Facts facts_of(int fd);

/// A transcript for reading: never through a link at its end, never waiting for a FIFO's writer. An invalid
/// one: see errno.
Descriptor open_transcript(const std::string& path);

/// Bytes read, or -errno. `at_once`: -EAGAIN instead of waiting for a disk, -EOPNOTSUPP where that cannot be
/// asked for.
long read_at(int fd, char* into, std::size_t bytes, std::uint64_t offset, bool at_once);

/// A whole small regular file; nothing when it cannot be read or is larger.
std::optional<std::string> read_small(const std::string& path, std::size_t bytes_max);

struct Entry {
  std::string name;
  Facts facts;  // of a link that is followed: of its target; an error: it is there, and cannot be looked at
};
struct Listing {
  std::string path;
  Facts self;  // its error is why there are no entries
  std::vector<Entry> entries;
};
/// Which links to directories a listing goes through.
struct Links {
  bool itself = false;  // the listed path may be one
  bool inside = false;  // its entries may be
};
/// Directories, and what `wanted` accepts by name; nothing else is looked at.
Listing list(const std::string& directory, Links follow,
             const std::function<bool(const std::string& name)>& wanted);

}  // namespace earshot::tail
