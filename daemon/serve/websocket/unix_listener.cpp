#include "serve/websocket/unix_listener.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file.hpp"

namespace earshot::serve {
namespace {

UnixError failed(const std::string& path, int error) { return {path + ": " + std::strerror(error)}; }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int connect_to(const std::string& path) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return errno;
  const sockaddr_un address = address_of(path);
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

/// Removes a stale socket. An empty text: the path is free.
UnixError remove_stale(const std::string& path, const UnixError& live) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno == ENOENT ? UnixError{} : failed(path, errno);
  if (!S_ISSOCK(info.st_mode))
    return {path + ": exists and is not a socket: choose another path with --socket"};
  const int error = connect_to(path);
  if (error == 0 || error == EAGAIN) return live;  // EAGAIN: its backlog is full
  if (error != ECONNREFUSED && error != ENOENT) return failed(path, error);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed(path, errno);
  return {};
}

}  // namespace

std::variant<UnixListener, UnixError> UnixListener::open(const std::string& given) {
  if (given.empty()) return UnixError{"socket: a path is needed"};
  const std::string path = std::filesystem::absolute(given).lexically_normal().string();
  if (path.size() > path_bytes_max) {
    return UnixError{path + ": a Unix socket's path has at most " + std::to_string(path_bytes_max) +
                     " bytes, this one has " + std::to_string(path.size()) +
                     ": choose a shorter one with --socket"};
  }
  const std::string directory = std::filesystem::path(path).parent_path().string();
  if (std::string error = make_private_directory(directory); !error.empty())
    return UnixError{std::move(error)};

  UnixListener listener;
  FileLock lock = lock_file(path + ".lock");
  const bool is_held = !lock.fd && lock.error == EWOULDBLOCK;
  if (!lock.fd && !is_held) return failed(path + ".lock", lock.error);
  const UnixError live{path + ": another earshotd" +
                           (lock.holder.empty() ? "" : " (process " + lock.holder + ")") +
                           " is using it: stop that one, or choose another path with --socket",
                       true};
  if (is_held) return live;
  listener.lock_ = std::move(lock.fd);
  if (UnixError error = remove_stale(path, live); !error.text.empty()) return error;

  listener.socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket_) return failed(path, errno);
  const int fd = listener.socket_.get();
  const sockaddr_un address = address_of(path);
  // On Linux bind() gives the file the mode of the descriptor, so others can never connect.
  ::fchmod(fd, 0600);
  struct stat info {};
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed(path, errno);
  if (::chmod(path.c_str(), 0600) != 0 || ::listen(fd, SOMAXCONN) != 0 || ::lstat(path.c_str(), &info) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return failed(path, error);
  }
  listener.path_ = path;
  listener.device_ = info.st_dev;
  listener.inode_ = info.st_ino;
  return listener;
}

UnixListener& UnixListener::operator=(UnixListener&& other) noexcept {
  socket_ = std::move(other.socket_);
  lock_ = std::move(other.lock_);
  path_.swap(other.path_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

void UnixListener::remove() {
  if (path_.empty()) return;
  struct stat info {};
  const std::string path = std::exchange(path_, {});
  if (::lstat(path.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_)
    ::unlink(path.c_str());
}

bool is_own_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace earshot::serve
