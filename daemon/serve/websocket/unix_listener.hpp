// The Unix socket, which only its owner can reach.
#pragma once
#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <variant>

#include "base/system.hpp"

namespace earshot::serve {

struct UnixError {
  std::string text;   // for users: what is wrong and what to do
  bool live = false;  // another daemon is using the path
};

class UnixListener {
 public:
  static constexpr std::size_t path_bytes_max = 107;  // sockaddr_un; a longer path is an error

  /// Binds and listens at `path`: the socket has mode 0600, a missing directory is created with 0700. A stale
  /// socket is replaced; a live one, or another kind of file, is an error. `<path>.lock` excludes other
  /// daemons and is not deleted.
  static std::variant<UnixListener, UnixError> open(const std::string& path);

  UnixListener() = default;
  UnixListener(UnixListener&& other) noexcept { *this = std::move(other); }
  UnixListener& operator=(UnixListener&& other) noexcept;
  ~UnixListener() { remove(); }

  /// Transfers the listening descriptor to the caller.
  int release() { return socket_.release(); }
  const std::string& path() const { return path_; }
  /// Unlinks the socket if it is still this one.
  void remove();

 private:
  Fd socket_, lock_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Whether the peer runs as this user (SO_PEERCRED).
bool is_own_peer(int socket);

}  // namespace earshot::serve
