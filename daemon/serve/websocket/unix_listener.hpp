// A Unix socket that only its owner can reach: where it is, whose it is, and when it may be taken over.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <variant>

#include "base/fd.hpp"

namespace earshot::serve {

struct UnixError {
  std::string text;   // for people: what is wrong and what to do
  bool live = false;  // another daemon answers there
};

class UnixListener {
 public:
  static constexpr std::size_t path_bytes_max = 107;  // sockaddr_un; a longer path is an error

  /// Binds and listens at `path`: the socket is 0600, its directory is made 0700 when it is absent. A socket
  /// that nobody answers any more is taken over; a live one, and whatever is no socket, is left alone.
  /// `<path>.lock` keeps two daemons from taking over the same one, and stays.
  static std::variant<UnixListener, UnixError> claim(const std::string& path);

  UnixListener() = default;
  UnixListener(UnixListener&& other) noexcept { *this = std::move(other); }
  UnixListener& operator=(UnixListener&& other) noexcept;
  ~UnixListener() { remove(); }

  /// The listening descriptor: the caller's from now on.
  int release() { return socket_.release(); }
  const std::string& path() const { return path_; }
  /// Takes the socket's name away, if it is still ours.
  void remove();

 private:
  Fd socket_, lock_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Who is at the other end runs as this user (SO_PEERCRED).
bool is_own_peer(int socket);

}  // namespace earshot::serve
