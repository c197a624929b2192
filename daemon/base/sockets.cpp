#include "base/sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace earshot {
namespace {

#ifdef __linux__

constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
constexpr int keep_alive_idle = TCP_KEEPIDLE;

#else

#ifdef MSG_NOSIGNAL
constexpr int send_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
#else
constexpr int send_flags = MSG_DONTWAIT;  // the socket has SO_NOSIGPIPE
#endif
#ifdef TCP_KEEPALIVE
constexpr int keep_alive_idle = TCP_KEEPALIVE;
#else
constexpr int keep_alive_idle = TCP_KEEPIDLE;
#endif

// What Linux does while it creates the descriptor.
bool prepare(const Fd& fd, bool is_socket, Blocking blocking = Blocking::yes) {
  if (!fd || ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) != 0) return false;
  if (blocking == Blocking::no && ::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return false;
#ifdef SO_NOSIGPIPE
  const int on = 1;
  if (is_socket && ::setsockopt(fd.get(), SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) != 0) return false;
#else
  static_cast<void>(is_socket);
#endif
  return true;
}

#endif

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

Fd open_socket(int family, int type, int protocol, Blocking blocking) {
#ifdef __linux__
  const int flags = SOCK_CLOEXEC | (blocking == Blocking::no ? SOCK_NONBLOCK : 0);
  return Fd(::socket(family, type | flags, protocol));
#else
  Fd fd(::socket(family, type, protocol));
  return prepare(fd, true, blocking) ? std::move(fd) : Fd();
#endif
}

FdPair open_socket_pair() {
  int ends[2];
#ifdef __linux__
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
#else
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return {};
  FdPair pair{Fd(ends[0]), Fd(ends[1])};
  return prepare(pair.first, true) && prepare(pair.second, true) ? std::move(pair) : FdPair();
#endif
}

FdPair open_pipe() {
  int ends[2];
#ifdef __linux__
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
#else
  if (::pipe(ends) != 0) return {};
  FdPair pair{Fd(ends[0]), Fd(ends[1])};
  return prepare(pair.first, false) && prepare(pair.second, false) ? std::move(pair) : FdPair();
#endif
}

ssize_t send_no_wait(int socket, const msghdr& message) { return ::sendmsg(socket, &message, send_flags); }
ssize_t send_no_wait(int socket, const void* bytes, std::size_t size) {
  return ::send(socket, bytes, size, send_flags);
}

bool is_own_peer(int socket) {
#ifdef __linux__
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
#else
  uid_t user = 0;
  gid_t group = 0;
  return ::getpeereid(socket, &user, &group) == 0 && user == ::geteuid();
#endif
}

bool is_peer_gone(int socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void enable_keep_alive(int socket, int idle_s, int interval_s, int probes) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, keep_alive_idle, &idle_s, sizeof idle_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace earshot
