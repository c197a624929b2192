#include "net.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace bench {

void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

int check(int result, const char* what) {
  if (result < 0) die(what);
  return result;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty())
    bytes.remove_prefix(check(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), "send"));
}

namespace {
sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
}  // namespace

int connect_to(int port) {
  int fd = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = loopback(port);
  check(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "connect");
  return fd;
}

int listen_anywhere(int& port) {
  int fd = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = loopback(0);
  check(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
  check(listen(fd, SOMAXCONN), "listen");
  socklen_t size = sizeof address;
  check(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  port = ntohs(address.sin_port);
  return fd;
}

void raise_descriptor_limit() {
  rlimit limit{};
  check(getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
}

double cpu_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0)
    give_up("process " + std::to_string(process) + " has no clock: is it gone?");
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string upgrade_request(int port, const std::string& token) {
  return "GET /v1/ws HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
         "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: earshot.v1\r\n" +
         (token.empty() ? "" : "Authorization: Bearer " + token + "\r\n") + "\r\n";
}

std::string text_frame(std::string_view payload) {
  std::string frame = {'\x81'};
  if (payload.size() < 126) {
    frame += static_cast<char>(0x80 | payload.size());
  } else {
    frame += '\xfe';
    frame += static_cast<char>(payload.size() >> 8);
    frame += static_cast<char>(payload.size() & 255);
  }
  return frame.append(4, '\0').append(payload);
}

std::string subscription(const std::string& filter, bool snapshot) {
  return R"({"type":"subscribe","id":"bench","filter":)" + filter + R"(,"snapshot":)" +
         (snapshot ? "true" : "false") + "}";
}

std::string line_of(const std::string& marker, int number, std::size_t text_bytes) {
  char head[512];
  std::snprintf(
      head, sizeof head,
      R"({"parentUuid":null,"isSidechain":false,"type":"assistant","uuid":"%08x-0000-4000-8000-%012d",)"
      R"("timestamp":"2026-01-01T00:00:00.000Z","sessionId":"bench","version":"2.1.330","cwd":"/home/ada/bench",)",
      static_cast<unsigned>(std::hash<std::string>{}(marker)), number);
  return std::string(head) + R"("message":{"id":"msg_)" + marker +
         R"(","type":"message","role":"assistant","model":"m","content":)" + R"([{"type":"text","text":")" +
         std::string(text_bytes, 'x') + " " + marker +
         R"(."}],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}})" + "\n";
}

Clock::time_point append(const std::string& path, std::string_view bytes) {
  int fd = check(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), "open");
  auto before = Clock::now();
  while (!bytes.empty()) bytes.remove_prefix(check(write(fd, bytes.data(), bytes.size()), "write"));
  close(fd);
  return before;
}

}  // namespace bench
