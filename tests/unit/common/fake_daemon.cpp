#include "unit/common/fake_daemon.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace earshot::common::test {
namespace {

constexpr int patience_seconds = 60;  // a test that waits longer has failed

void limit_waits(int descriptor) {
  const timeval limit{patience_seconds, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// RFC 6455, 4.2.2.
std::string accept_key(const std::string& key) {
  const std::string text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  unsigned char encoded[64];
  const int size = EVP_EncodeBlock(encoded, digest, sizeof digest);
  return std::string(reinterpret_cast<char*>(encoded), static_cast<std::size_t>(size));
}

std::string header(const std::string& request, std::string_view name) {
  const std::size_t at = request.find(std::string(name) + ": ");
  if (at == std::string::npos) return {};
  const std::size_t begin = at + name.size() + 2;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

}  // namespace

Peer::~Peer() { ::close(descriptor_); }

bool Peer::read(char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::recv(descriptor_, bytes, size, 0);
    if (got < 0 && errno == EAGAIN) throw std::runtime_error("the client did not send what was expected");
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void Peer::raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the client may close the connection at any time
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string Peer::head() {
  std::string text;
  for (char byte = 0; !text.ends_with("\r\n\r\n") && read(&byte, 1);) text += byte;
  return text;
}

std::string Peer::request() {
  std::string text = head();
  const std::string nonce = nonce_of(text);
  if (nonce.empty()) return text;
  answer_proof("200 OK", proof(nonce, authority()));
  return head();
}

std::string Peer::nonce_of(std::string_view request) {
  constexpr std::string_view prefix = "GET /v1/proof?nonce=";
  return request.starts_with(prefix) ? std::string(request.substr(prefix.size(), 32)) : std::string();
}

std::string Peer::proof(const std::string& nonce, const std::string& address) {
  const std::string message = nonce + address;
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), fake_token.data(), static_cast<int>(fake_token.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac, &size);
  std::string digits;
  char digit[3];
  for (unsigned i = 0; i < size; ++i) {
    std::snprintf(digit, sizeof digit, "%02x", mac[i]);
    digits += digit;
  }
  return digits;
}

std::string Peer::authority() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
  return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

void Peer::answer_proof(std::string_view status_line, const std::string& body) {
  raw("HTTP/1.1 " + std::string(status_line) +
      "\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

std::string Peer::rest() {
  std::string text;
  for (char byte = 0; read(&byte, 1);) text += byte;
  return text;
}

std::string Peer::upgrade() {
  const std::string text = request();
  raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
      "Upgrade\r\nSec-WebSocket-Protocol: earshot.v1\r\n"
      "Sec-WebSocket-Accept: " +
      accept_key(header(text, "Sec-WebSocket-Key")) + "\r\n\r\n");
  return text;
}

std::string Peer::refuse(std::string_view status_line) {
  const std::string text = request();
  raw("HTTP/1.1 " + std::string(status_line) + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  return text;
}

std::string Peer::answer(std::string_view status_line, std::string_view json) {
  std::string text = request();
  const std::string length = header(text, "Content-Length");
  std::string body(length.empty() ? 0 : std::stoul(length), '\0');
  if (!read(body.data(), body.size())) throw std::runtime_error("the body is not whole");
  raw("HTTP/1.1 " + std::string(status_line) + "\r\nContent-Type: application/json\r\nContent-Length: " +
      std::to_string(json.size()) + "\r\n\r\n" + std::string(json));
  return text + body;
}

void Peer::frame(int opcode, std::string_view payload) {
  std::string head(1, static_cast<char>(0x80 | opcode));
  if (payload.size() < 126) {
    head += static_cast<char>(payload.size());
  } else if (payload.size() < 65536) {
    head +=
        {static_cast<char>(126), static_cast<char>(payload.size() >> 8), static_cast<char>(payload.size())};
  } else {
    head += static_cast<char>(127);
    for (int shift = 56; shift >= 0; shift -= 8) head += static_cast<char>(payload.size() >> shift);
  }
  raw(head + std::string(payload));
}

void Peer::close(int code, std::string_view reason) {
  frame(8, std::string{static_cast<char>(code >> 8), static_cast<char>(code)} + std::string(reason));
}

Peer::Frame Peer::receive() {
  unsigned char head[2], mask[4], length[8];
  if (!read(reinterpret_cast<char*>(head), 2)) return {};
  std::size_t size = head[1] & 0x7f;
  const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
  if (!read(reinterpret_cast<char*>(length), more)) return {};
  if (more > 0) size = 0;
  for (std::size_t i = 0; i < more; ++i) size = size << 8 | length[i];
  if (!read(reinterpret_cast<char*>(mask), 4)) return {};
  Frame frame{head[0] & 0x0f, std::string(size, '\0')};
  if (!read(frame.payload.data(), size)) return {};
  for (std::size_t i = 0; i < size; ++i) frame.payload[i] = static_cast<char>(frame.payload[i] ^ mask[i % 4]);
  return frame;
}

Peer::Frame Peer::receive(int opcode) {
  while (true) {
    Frame frame = receive();
    if (frame.opcode == opcode || frame.opcode == 0) return frame;
  }
}

void FakeDaemon::bind_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw_address = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_, raw_address, size) != 0 || ::getsockname(listener_, raw_address, &size) != 0)
    throw std::runtime_error("no port on loopback");
  port_ = ntohs(address.sin_port);
}

void FakeDaemon::bind_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::runtime_error("too long for a socket: " + path);
  path.copy(address.sun_path, path.size());
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("no socket at " + path);
}

FakeDaemon::FakeDaemon(std::vector<std::function<void(Peer&)>> scripts, const std::string& socket)
    : listener_(::socket(socket.empty() ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (socket.empty()) {
    bind_port();
  } else {
    bind_socket(socket);
  }
  if (::listen(listener_, 8) != 0) throw std::runtime_error("cannot listen");
  limit_waits(listener_);
  thread_ = std::thread([this, scripts = std::move(scripts)] {
    try {
      for (const auto& script : scripts) {
        const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (descriptor < 0) throw std::runtime_error("the client did not connect");
        limit_waits(descriptor);
        Peer peer(descriptor);
        script(peer);
      }
    } catch (const std::exception& error) {
      trouble_ = error.what();
    }
    ::shutdown(listener_, SHUT_RDWR);  // further connections are refused
  });
}

FakeDaemon::~FakeDaemon() {
  join();
  ::close(listener_);
}

const std::string& FakeDaemon::join() {
  if (thread_.joinable()) thread_.join();
  return trouble_;
}

std::string FakeDaemon::url() const { return "ws://127.0.0.1:" + std::to_string(port_) + "/v1/ws"; }

}  // namespace earshot::common::test
