// Listening sockets: the accept loop, the Unix socket, and the TLS context of a listener.
#pragma once
#include <sys/stat.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "base/clock.hpp"
#include "base/system.hpp"
#include "serve/auth/secrets.hpp"
#include "serve/websocket/transport.hpp"

namespace earshot::serve {

class Acceptor {
 public:
  using Admit = std::function<void(Transport::Socket socket, TransportKind transport_kind)>;

  /// Owns `descriptor`, which already listens. Connections are accepted from begin() on.
  Acceptor(boost::asio::io_context& io, int family, int descriptor, TransportKind transport_kind,
           Admit admit);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void begin() { accept(); }
  void close();

 private:
  void accept();

  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  Timer again_;
  const TransportKind transport_kind_;
  Admit admit_;
};

struct UnixError {
  std::string text;   // for users: what is wrong and what to do
  bool live = false;  // another daemon is using the path
};

/// The Unix socket, which only its owner can reach.
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

/// The peer's address; of IPv6 the first 64 bits, which one machine usually has for itself.
std::string peer_network(const Transport::Socket& socket);
/// The peer's `address:port`, for the audit log.
std::string peer_address(const Transport::Socket& socket, TransportKind transport_kind);
/// `address:port` of this end; an IPv6 address is in brackets. Empty: the Unix socket, or disconnected.
std::string local_address(const Transport::Socket& socket, TransportKind transport_kind);

/// TLS 1.2 and later, forward secrecy only, no tickets. The key file must not be readable by others.
std::variant<std::unique_ptr<boost::asio::ssl::context>, AuthError> load_tls(
    const std::string& certificate_file, const std::string& key_file);

}  // namespace earshot::serve
