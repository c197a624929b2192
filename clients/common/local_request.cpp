#include "common/local_request.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/sockets.hpp"
#include "common/format.hpp"

namespace earshot::common {
namespace {

constexpr std::string_view head_end = "\r\n\r\n";

}  // namespace

LocalRequest::LocalRequest(const std::string& socket, std::string_view target, std::string_view body) {
  sockaddr_un address{};
  if (socket.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  Fd fd = open_socket(AF_UNIX, SOCK_STREAM, 0, Blocking::no);
  // A daemon that does not accept connections has EAGAIN as soon as its backlog is full.
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  if (!is_own_peer(fd.get())) return;
  fd_ = std::move(fd);
  connected_ = true;
  // HTTP/1.0: a response without chunks.
  unsent_ =
      std::string(body.empty() ? "GET " : "POST ").append(target).append(" HTTP/1.0\r\nHost: localhost\r\n");
  unsent_ += "User-Agent: " + user_agent() + "\r\n";
  if (!body.empty())
    unsent_ += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  unsent_.append("\r\n").append(body);
  advance();
}

short LocalRequest::events() const { return unsent_.empty() ? POLLIN : POLLIN | POLLOUT; }

void LocalRequest::advance() {
  while (fd_ && !unsent_.empty()) {
    const ssize_t sent = send_no_wait(fd_.get(), unsent_.data(), unsent_.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) unsent_.clear();  // a refusal may still be read
    if (sent <= 0) break;
    unsent_.erase(0, static_cast<std::size_t>(sent));
  }
  char bytes[64 << 10];
  while (fd_) {
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fd_.reset();
    received_.append(bytes, static_cast<std::size_t>(got));
    if (received_.size() > response_bytes_max) return fd_.reset();
  }
}

int LocalRequest::status() const {
  int code = 0;
  const std::size_t space = received_.find(' ');
  if (received_.starts_with("HTTP/1.") && space != received_.npos)
    std::from_chars(received_.data() + space + 1, received_.data() + received_.size(), code);
  return code;
}

std::string_view LocalRequest::body() const {
  const std::size_t end = received_.find(head_end);
  return end == received_.npos ? std::string_view()
                               : std::string_view(received_).substr(end + head_end.size());
}

}  // namespace earshot::common
