#include "crowd.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "net.hpp"

namespace bench {
namespace {

constexpr std::size_t start_bytes = 40;  // of a payload: enough for its type
constexpr int patience_ms = 60'000;      // without a byte for any subscriber: failure
constexpr std::size_t read_bytes = 256 << 10;
constexpr std::size_t head_bytes_max = 4096;  // of an HTTP answer

/// The type that a message begins with: {"type":"NAME"
std::string_view type_of(std::string_view start) {
  constexpr std::string_view before = R"({"type":")";
  if (!start.starts_with(before)) return {};
  start.remove_prefix(before.size());
  return start.substr(0, start.find('"'));
}

}  // namespace

Crowd::Crowd(int port, const std::string& token, std::size_t count, const std::string& subscribe)
    : clients_(count),
      buffer_(read_bytes),
      epoll_(check(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      subscribe_(subscribe.empty() ? "" : text_frame(subscribe)) {
  const std::string request = upgrade_request(port, token);
  for (std::size_t i = 0; i < count; ++i) {
    clients_[i].fd = connect_to(port);
    send_all(clients_[i].fd, request);
    epoll_event interest{.events = EPOLLIN, .data = {.u64 = i}};
    check(epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_[i].fd, &interest), "epoll_ctl");
    while (i % 64 == 63 && read(0)) {
    }
  }
}

Crowd::~Crowd() {
  for (const Client& client : clients_) close(client.fd);
  close(epoll_);
}

void Crowd::until_ready() {
  const auto arrived = [&](const Client& client) {
    return subscribe_.empty() ? client.upgraded : client.ready;
  };
  while (!std::all_of(clients_.begin(), clients_.end(), arrived))
    if (!read(patience_ms)) give_up("waited in vain for subscribers to be ready");
}

void Crowd::until_events(std::size_t more) {
  goal_ = more;
  done_ = static_cast<std::size_t>(
      std::count_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.events >= more; }));
  while (done_ < clients_.size())
    if (!read(patience_ms)) give_up("waited in vain for " + std::to_string(more) + " events each");
  for (Client& client : clients_) client.events -= more;
}

std::vector<std::string> Crowd::until_quiet(int quiet_ms) {
  keeping_ = true;
  while (read(quiet_ms)) {
  }
  keeping_ = false;
  goal_ = 0;
  for (Client& client : clients_) client.events = 0;
  return std::exchange(kept_, {});
}

bool Crowd::read(int wait_ms) {
  std::array<epoll_event, 256> notes;
  const int count = check(epoll_wait(epoll_, notes.data(), notes.size(), wait_ms), "epoll_wait");
  for (int n = 0; n < count; ++n) {
    Client& client = clients_[notes[n].data.u64];
    const ssize_t got = recv(client.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got == 0) give_up("a subscriber was sent away: its last message began with " + client.start);
    if (got < 0) die("recv");
    bytes_ += static_cast<std::size_t>(got);
    take(client, {buffer_.data(), static_cast<std::size_t>(got)});
  }
  return count > 0;
}

void Crowd::take(Client& client, std::string_view bytes) {
  if (!client.upgraded) {
    client.head += bytes.substr(0, head_bytes_max);
    const auto end = client.head.find("\r\n\r\n");
    if (end == std::string::npos) return;
    if (!client.head.starts_with("HTTP/1.1 101")) give_up("refused: " + client.head.substr(0, end));
    bytes.remove_prefix(bytes.size() - (client.head.size() - end - 4));
    client.head.clear();
    client.upgraded = true;
    send_all(client.fd, subscribe_);  // after the upgrade: no bytes may follow the request
  }
  while (!bytes.empty()) {
    if (client.left == 0) {
      client.head += bytes.front();
      bytes.remove_prefix(1);
      const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(client.head[at]); };
      if (client.head.size() < 2) continue;
      const std::size_t extra = byte(1) == 126 ? 2 : byte(1) == 127 ? 8 : 0;
      if (client.head.size() < 2 + extra) continue;
      client.opcode = byte(0) & 15;
      client.left = extra ? 0 : byte(1);
      for (std::size_t i = 0; i < extra; ++i) client.left = client.left << 8 | byte(2 + i);
      client.head.clear();
      client.start.clear();
      if (client.left == 0) end_frame(client);
      continue;
    }
    const std::string_view part = bytes.substr(0, client.left);
    if (client.start.size() < start_bytes) client.start += part.substr(0, start_bytes - client.start.size());
    if (keeping_ && &client == clients_.data()) keep_ += part;
    client.left -= part.size();
    bytes.remove_prefix(part.size());
    if (client.left == 0) end_frame(client);
  }
}

void Crowd::end_frame(Client& client) {
  if (client.opcode == 9) send_all(client.fd, {"\x8a\x80\0\0\0\0", 6});
  if (client.opcode == 8) give_up("a subscriber was told goodbye: " + client.start);
  const std::string_view type = type_of(client.start);
  if (type == "lagged") give_up("a subscriber lagged: what was counted is not all");
  if (type == "error") give_up("a subscriber was refused: " + client.start);
  if (type == "ready") client.ready = true;
  if (type.find('.') != type.npos) {
    if (keeping_ && &client == clients_.data()) kept_.push_back(keep_);
    if (++client.events == goal_) ++done_;
  }
  keep_.clear();
}

}  // namespace bench
