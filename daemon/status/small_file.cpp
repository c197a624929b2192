#include "status/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace earshot::status {

namespace {

struct Descriptor {
  int fd;
  explicit Descriptor(int given) : fd(given) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
};

}  // namespace

std::int64_t modified_ms_of(const struct stat& about) {
#ifdef __APPLE__
  const timespec& time = about.st_mtimespec;
#else
  const timespec& time = about.st_mtim;
#endif
  return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

Identity directory_at(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) return {};
  return {about.st_dev, about.st_ino};
}

SmallFile read_small_file(const std::string& path, std::size_t bytes_max) {
  using Outcome = SmallFile::Outcome;
  SmallFile file;
  const Descriptor opened(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (opened.fd < 0) {
    file.outcome = errno == ENOENT || errno == ENOTDIR ? Outcome::gone : Outcome::unusable;
    return file;
  }
  struct stat about {};
  if (::fstat(opened.fd, &about) != 0 || !S_ISREG(about.st_mode)) return file;
  file.modified_ms = modified_ms_of(about);
  // The size may change under us: read to the end, with room for one byte too many.
  file.text.resize(bytes_max + 1);
  std::size_t filled = 0;
  while (filled < file.text.size()) {
    const ssize_t got = ::read(opened.fd, file.text.data() + filled, file.text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      file.text.clear();
      return file;
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled > bytes_max) {
    file.text.clear();
    return file;
  }
  file.text.resize(filled);
  file.text.shrink_to_fit();
  file.outcome = Outcome::read;
  return file;
}

}  // namespace earshot::status
