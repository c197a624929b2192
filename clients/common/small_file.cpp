#include "common/small_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace earshot::common {

SmallFile read_small_file(const std::string& path) {
  SmallFile file;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    file.error = std::strerror(errno);
    return file;
  }
  struct stat status {};
  std::string bytes(SmallFile::bytes_max, '\0');
  std::size_t size = 0;
  int failed = 0;
  if (::fstat(descriptor, &status) != 0) {
    failed = errno;
  } else if (!S_ISREG(status.st_mode)) {
    failed = EINVAL;
  }
  while (failed == 0 && size < bytes.size()) {
    const ssize_t got = ::read(descriptor, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) failed = errno;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  ::close(descriptor);
  file.mode = status.st_mode & 07777;
  file.owner = status.st_uid;
  if (failed != 0) {
    file.error = std::strerror(failed);
    return file;
  }
  std::string_view text(bytes.data(), size);
  constexpr std::string_view space = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  file.text = text.substr(0, text.find_last_not_of(space) + 1);
  return file;
}

}  // namespace earshot::common
