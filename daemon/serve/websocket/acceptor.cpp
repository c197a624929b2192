#include "serve/websocket/acceptor.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/file.hpp"
#include "base/sockets.hpp"
#include "log/log.hpp"

namespace earshot::serve {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr auto pause = std::chrono::milliseconds(100);          // when the process is out of descriptors
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";  // of TLS 1.2

AuthError wrong(const std::string& file, const std::string& what) { return {file + ": " + what}; }

UnixError failed(const std::string& path, int error) { return {path + ": " + std::strerror(error)}; }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int connect_to(const std::string& path) {
  const Fd fd = open_socket(AF_UNIX, SOCK_STREAM, 0, Blocking::no);
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

asio::ip::tcp::endpoint tcp_endpoint(const asio::generic::stream_protocol::endpoint& endpoint) {
  asio::ip::tcp::endpoint tcp;
  if (endpoint.size() > tcp.capacity()) return {};
  std::memcpy(tcp.data(), endpoint.data(), endpoint.size());
  tcp.resize(endpoint.size());
  if (const auto address = tcp.address(); address.is_v6() && address.to_v6().is_v4_mapped())
    tcp.address(asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()));
  return tcp;
}

std::string address_text(const asio::generic::stream_protocol::endpoint& endpoint) {
  std::ostringstream text;
  text << tcp_endpoint(endpoint);
  return std::move(text).str();
}

}  // namespace

Acceptor::Acceptor(asio::io_context& io, int family, int descriptor, TransportKind transport_kind,
                   Admit admit)
    : acceptor_(io, asio::generic::stream_protocol(family, 0), descriptor),
      again_(io),
      transport_kind_(transport_kind),
      admit_(std::move(admit)) {}

void Acceptor::close() {
  error_code ignored;
  acceptor_.close(ignored);
  again_.cancel();
}

void Acceptor::accept() {
  acceptor_.async_accept([this](error_code ec, Transport::Socket socket) {
    if (ec == asio::error::operation_aborted || !acceptor_.is_open()) return;
    const bool exhausted = ec == boost::system::errc::too_many_files_open ||
                           ec == boost::system::errc::too_many_files_open_in_system ||
                           ec == boost::system::errc::no_buffer_space ||
                           ec == boost::system::errc::not_enough_memory;
    if (exhausted) {
      log_warn("a client cannot be accepted: {}", ec.message());
      again_.expires_after(pause);
      again_.async_wait([this](error_code cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    if (!ec) admit_(std::move(socket), transport_kind_);
    accept();
  });
}

std::string peer_network(const Transport::Socket& socket) {
  error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  if (ec) return {};
  const auto address = tcp_endpoint(peer).address();
  if (!address.is_v6()) return address.to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + bytes.size() / 2, bytes.end(), std::uint8_t{0});
  return asio::ip::make_address_v6(bytes).to_string();
}

std::string peer_address(const Transport::Socket& socket, TransportKind transport_kind) {
  if (transport_kind == TransportKind::unix_socket) return "the Unix socket";
  error_code ec;
  const auto peer = socket.remote_endpoint(ec);
  return ec ? "an unknown address" : address_text(peer);  // disconnected
}

std::string local_address(const Transport::Socket& socket, TransportKind transport_kind) {
  error_code ec;
  const auto own = socket.local_endpoint(ec);
  return ec || transport_kind == TransportKind::unix_socket ? std::string() : address_text(own);
}

// --- The Unix socket ---

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

  listener.socket_ = open_socket(AF_UNIX, SOCK_STREAM, 0, Blocking::no);
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

// --- TLS ---

std::variant<std::unique_ptr<asio::ssl::context>, AuthError> load_tls(const std::string& certificate_file,
                                                                      const std::string& key_file) {
  struct stat info {};
  if (::stat(key_file.c_str(), &info) != 0) return wrong(key_file, std::strerror(errno));
  if (info.st_mode & 077)
    return wrong(key_file,
                 "others can read this key; if nobody else has seen it, run: chmod 600 " + key_file);

  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET |
                                  SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // an idle client keeps no buffers
  boost::system::error_code ec;
  if (SSL_CTX_set_cipher_list(native, ciphers) != 1)
    return wrong("TLS", "OpenSSL supports none of the required ciphers");
  context->use_certificate_chain_file(certificate_file, ec);
  if (ec) return wrong(certificate_file, "not a PEM certificate: " + ec.message());
  context->use_private_key_file(key_file, asio::ssl::context::pem, ec);
  if (ec) return wrong(key_file, "not a PEM private key for " + certificate_file + ": " + ec.message());
  return context;
}

}  // namespace earshot::serve
