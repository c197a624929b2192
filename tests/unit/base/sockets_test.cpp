// Sockets and pipes: flags, and no SIGPIPE.
#include "base/sockets.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace earshot {
namespace {

bool is_closed_on_exec(const Fd& fd) { return (::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0; }
bool waits(const Fd& fd) { return (::fcntl(fd.get(), F_GETFL) & O_NONBLOCK) == 0; }

TEST_CASE("descriptors are closed on exec, and wait only where requested") {
  const Fd waiting = open_socket(AF_UNIX, SOCK_STREAM),
           other = open_socket(AF_UNIX, SOCK_STREAM, 0, Blocking::no);
  REQUIRE(waiting);
  REQUIRE(other);
  CHECK(waits(waiting));
  CHECK_FALSE(waits(other));
  const FdPair pair = open_socket_pair(), pipe = open_pipe();
  REQUIRE(pair);
  REQUIRE(pipe);
  for (const Fd* fd : {&waiting, &other, &pair.first, &pair.second, &pipe.first, &pipe.second})
    CHECK(is_closed_on_exec(*fd));
}

TEST_CASE("a socket that cannot be opened is empty, with errno") {
  errno = 0;
  CHECK_FALSE(open_socket(-1, SOCK_STREAM));
  CHECK(errno != 0);
}

TEST_CASE("a pipe transports bytes from its second end to its first") {
  const FdPair pipe = open_pipe();
  REQUIRE(::write(pipe.second.get(), "x", 1) == 1);
  char byte = 0;
  REQUIRE(::read(pipe.first.get(), &byte, 1) == 1);
  CHECK(byte == 'x');
}

TEST_CASE("sending neither waits nor raises SIGPIPE") {
  FdPair pair = open_socket_pair();
  const std::string bytes(1 << 16, 'x');
  while (send_no_wait(pair.first.get(), bytes.data(), bytes.size()) > 0) {
  }
  CHECK((errno == EAGAIN || errno == EWOULDBLOCK));
  pair.second.reset();
  CHECK(send_no_wait(pair.first.get(), "x", 1) == -1);
  CHECK(errno == EPIPE);
}

}  // namespace
}  // namespace earshot
