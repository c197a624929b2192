// Sockets and pipes with the same behaviour on Linux and macOS: closed on exec, never a SIGPIPE. On macOS a
// process that is started at the same moment may inherit them, since the flag is set after the creation.
#pragma once
#include <sys/types.h>

#include <string>

#include "base/system.hpp"

struct msghdr;

namespace earshot {

/// This machine's name; `localhost` if it has none.
std::string host_name();

enum class Blocking { no, yes };

struct FdPair {
  Fd first, second;  // of a pipe: the end to read and the end to write
  explicit operator bool() const { return first && second; }
};

/// On failure the results are empty and errno is set.
Fd open_socket(int family, int type, int protocol = 0, Blocking blocking = Blocking::yes);
FdPair open_socket_pair();  // stream sockets of this machine
FdPair open_pipe();

/// As ::sendmsg(), without waiting: -1 and EAGAIN if nothing can be sent now.
ssize_t send_no_wait(int socket, const msghdr& message);
ssize_t send_no_wait(int socket, const void* bytes, std::size_t size);

/// Whether the process at the other end of a connected Unix socket runs as this user.
bool is_own_peer(int socket);

/// Whether the peer has closed the connection, or its direction of it, and everything it sent was read.
bool is_peer_gone(int socket);

/// Detects a peer that is gone while nothing is sent: `probes` probes, after `idle_s` seconds and then every
/// `interval_s` seconds. No effect on a Unix socket.
void enable_keep_alive(int socket, int idle_s, int interval_s, int probes);

}  // namespace earshot
