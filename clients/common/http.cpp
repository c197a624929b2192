#include "common/http.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "common/diagnostics.hpp"
#include "common/text.hpp"

namespace earshot::common {
namespace {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

// Until when, and why not.
struct Attempt {
  Clock::time_point deadline = Clock::now() + std::chrono::seconds(http_seconds_max);
  std::string trouble;

  bool wait(const Socket& socket, short events) {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd ready{socket.get(), events, 0};
      const int count = left <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left));
      if (count < 0 && errno == EINTR) continue;
      if (count > 0) return true;
      trouble = count < 0 ? std::strerror(errno) : "no answer";
      return false;
    }
  }
};

std::optional<Socket> connect_to(const sockaddr* address, socklen_t size, Attempt& attempt) {
  Socket socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int failed = socket.get() < 0 || ::connect(socket.get(), address, size) != 0 ? errno : 0;
  if (failed == EINPROGRESS) {
    if (!attempt.wait(socket, POLLOUT)) return std::nullopt;
    socklen_t length = sizeof failed;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failed, &length);
  }
  if (failed == 0) return socket;
  attempt.trouble = std::strerror(failed);
  return std::nullopt;
}

std::optional<Socket> connect_to(const Endpoint& endpoint, Attempt& attempt) {
  if (endpoint.is_unix()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (endpoint.socket.size() >= sizeof address.sun_path) {
      attempt.trouble = "the path is too long for a socket";
      return std::nullopt;
    }
    endpoint.socket.copy(address.sun_path, sizeof address.sun_path - 1);
    return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, attempt);
  }
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = ::getaddrinfo(endpoint.host.c_str(), endpoint.port.c_str(), &hints, &found)) {
    attempt.trouble = ::gai_strerror(error);
    return std::nullopt;
  }
  std::optional<Socket> socket;
  for (const addrinfo* each = found; each != nullptr && !socket; each = each->ai_next)
    socket = connect_to(each->ai_addr, each->ai_addrlen, attempt);
  ::freeaddrinfo(found);
  return socket;
}

bool send_all(const Socket& socket, std::string_view bytes, Attempt& attempt) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!attempt.wait(socket, POLLOUT)) return false;
    } else if (errno != EINTR) {
      return true;  // it answered before it had read all: the answer says why
    }
  }
  return true;
}

// The length of a whole answer, once its head is there and says so.
std::optional<std::size_t> whole_size(std::string_view bytes);

bool receive_all(const Socket& socket, std::string& bytes, Attempt& attempt) {
  char piece[16 << 10];
  while (bytes.size() <= http_answer_bytes_max) {
    if (const auto size = whole_size(bytes); size && bytes.size() >= *size) return true;
    const ssize_t got = ::recv(socket.get(), piece, sizeof piece, 0);
    if (got > 0) {
      bytes.append(piece, static_cast<std::size_t>(got));
    } else if (got == 0) {
      return true;
    } else if (errno == EAGAIN) {
      if (!attempt.wait(socket, POLLIN)) return false;
    } else if (errno != EINTR) {
      attempt.trouble = std::strerror(errno);
      return false;
    }
  }
  attempt.trouble = "the answer is longer than " + std::to_string(http_answer_bytes_max) + " bytes";
  return false;
}

struct Head {
  int status = 0;
  std::size_t size = 0;  // with the empty line
  std::optional<std::size_t> content_length;
  bool chunked = false;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::optional<Head> parse_head(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  constexpr std::size_t status_line_bytes_min = 12;  // HTTP/1.1 200
  if (end == bytes.npos || end < status_line_bytes_min || !bytes.starts_with("HTTP/1.")) return std::nullopt;
  Head head;
  head.size = end + 4;
  const char* const status_end = bytes.data() + status_line_bytes_min;
  const auto status = std::from_chars(status_end - 3, status_end, head.status);
  if (status.ec != std::errc() || status.ptr != status_end || head.status < 100) return std::nullopt;
  std::string_view rest = bytes.substr(0, end);
  while (true) {
    const std::size_t line_end = rest.find("\r\n");
    if (line_end == rest.npos) break;
    rest.remove_prefix(line_end + 2);
    const std::string line = lower(rest.substr(0, rest.find("\r\n")));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string value = printable(std::string_view(line).substr(colon + 1), Charset::ascii);
    std::size_t length = 0;
    if (line.starts_with("content-length:") &&
        std::from_chars(value.data(), value.data() + value.size(), length).ec == std::errc())
      head.content_length = length;
    if (line.starts_with("transfer-encoding:")) head.chunked = value == "chunked";
  }
  return head;
}

std::optional<std::size_t> whole_size(std::string_view bytes) {
  const auto head = parse_head(bytes);
  if (!head || head->chunked || !head->content_length) return std::nullopt;
  return head->size + std::min(*head->content_length, http_answer_bytes_max);
}

std::optional<std::string> unchunked(std::string_view bytes) {
  std::string body;
  while (true) {
    std::size_t size = 0;
    const std::size_t line_end = bytes.find("\r\n");
    const auto read = std::from_chars(bytes.data(), bytes.data() + bytes.size(), size, 16);
    if (line_end == bytes.npos || read.ec != std::errc()) return std::nullopt;
    bytes.remove_prefix(line_end + 2);
    if (size == 0) return body;
    if (size > bytes.size()) return std::nullopt;
    body += bytes.substr(0, size);
    bytes.remove_prefix(std::min(bytes.size(), size + 2));
  }
}

}  // namespace

HttpAnswer parse_answer(std::string_view bytes) {
  HttpAnswer answer;
  answer.trouble = "what answers there speaks no HTTP";
  const auto head = parse_head(bytes);
  if (!head) return answer;
  answer.trouble = "the answer was cut off";
  const std::string_view body = bytes.substr(head->size);
  if (head->chunked) {
    auto joined = unchunked(body);
    if (!joined) return answer;
    answer.body = std::move(*joined);
  } else {
    const std::size_t size = head->content_length.value_or(body.size());
    if (size > body.size()) return answer;
    answer.body = body.substr(0, size);
  }
  answer.status = head->status;
  answer.trouble.clear();
  return answer;
}

HttpAnswer ask(const DaemonAddress& door, const HttpRequest& request) {
  HttpAnswer answer;
  Attempt attempt;
  auto socket = connect_to(door.endpoint, attempt);
  if (!socket) {
    answer.trouble = attempt.trouble;
    answer.unreachable = true;
    return answer;
  }
  std::string text(request.method);
  text += " " + std::string(request.target) + " HTTP/1.1\r\nHost: " + door.endpoint.authority() +
          "\r\nUser-Agent: " + user_agent() + "\r\nConnection: close\r\n";
  if (!door.token.empty()) text += "Authorization: Bearer " + door.token + "\r\n";
  if (request.method == "POST")
    text +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
  text += "\r\n" + std::string(request.body);
  std::string bytes;
  if (!send_all(*socket, text, attempt) || !receive_all(*socket, bytes, attempt)) {
    answer.trouble = attempt.trouble;
    answer.unreachable = bytes.empty();
    return answer;
  }
  return parse_answer(bytes);
}

HttpVisit ask(const Doors& doors, const HttpRequest& request) {
  HttpVisit result;
  for (const DaemonAddress& door : doors) {
    result.answer = ask(door, request);
    const HttpAnswer& answer = result.answer;
    Outcome outcome{answer.unreachable ? Ending::unreachable : Ending::refused, answer.status, 0,
                    answer.trouble};
    if (answer.status != 0) outcome.text = "HTTP " + std::to_string(answer.status);
    result.visit.outcomes.push_back(std::move(outcome));
    if (!answer.unreachable) break;
  }
  return result;
}

}  // namespace earshot::common
