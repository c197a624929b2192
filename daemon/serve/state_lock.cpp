#include "serve/state_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace earshot::serve {
namespace {

std::string first_number(int fd) {
  std::array<char, 32> text{};
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t i = 0;
       i < n && text[static_cast<std::size_t>(i)] >= '0' && text[static_cast<std::size_t>(i)] <= '9'; ++i)
    digits += text[static_cast<std::size_t>(i)];
  return digits;
}

}  // namespace

Locked lock_file(const std::string& path, Fd& fd, std::string& holder) {
  fd = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd && errno == EROFS) {  // what is there can be locked all the same
    fd = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) errno = EROFS;
  }
  if (!fd) return Locked::error;
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Locked::error;
    holder = first_number(fd.get());
    return Locked::held;
  }
  const std::string own = std::to_string(::getpid()) + "\n";
  // Only for the message of whoever comes second: that it cannot be written is no harm.
  if (::ftruncate(fd.get(), 0) == 0 && ::pwrite(fd.get(), own.data(), own.size(), 0) < 0) errno = 0;
  return Locked::yes;
}

std::variant<StateLock, AuthError> StateLock::take(const std::string& state_directory) {
  const std::string path = state_directory + "/lock";
  Fd fd;
  std::string holder;
  switch (lock_file(path, fd, holder)) {
    case Locked::yes:
      return StateLock(std::move(fd));
    case Locked::held:
      return AuthError{"another earshotd" + (holder.empty() ? "" : " (process " + holder + ")") +
                       " uses the state directory " + state_directory +
                       ": stop that one, or choose another directory with --state"};
    case Locked::error:
      break;
  }
  const std::string trouble = path + ": " + std::strerror(errno);
  if (errno == EROFS || errno == ENOSPC || errno == EDQUOT) return StateLock(Fd(), trouble);
  return AuthError{trouble};
}

}  // namespace earshot::serve
