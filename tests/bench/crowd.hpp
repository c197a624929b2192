// Many subscribers in one process on plain sockets. They count frames and bytes and answer pings, no more, so
// that the benchmark measures the server.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class Crowd {
 public:
  /// Connects `count` clients to a local port. An empty `token` is not sent. `subscribe` is the first
  /// message; if it is empty, clients are ready after the upgrade.
  Crowd(int port, const std::string& token, std::size_t count, const std::string& subscribe);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void until_ready();  // all of them
  /// Waits until each client has received `more` events (frames with a dot in their type) since the last
  /// call.
  void until_events(std::size_t more);
  /// Reads until no bytes arrive for `quiet_ms`; returns the frames of the first client.
  std::vector<std::string> until_quiet(int quiet_ms);

  std::uint64_t bytes() const { return bytes_; }  // received, of all clients

 private:
  struct Client {
    int fd = -1;
    bool upgraded = false, ready = false;
    std::uint64_t left = 0;    // of the frame's payload
    std::uint64_t events = 0;  // since the last until_events()
    std::string head;          // bytes of a frame's header, or of the HTTP answer, that are incomplete
    std::string start;         // the payload's first bytes
    std::uint8_t opcode = 0;
  };

  bool read(int wait_ms);  // false: timeout
  void take(Client& client, std::string_view bytes);
  void end_frame(Client& client);

  std::vector<Client> clients_;
  std::vector<char> buffer_;
  int epoll_ = -1;
  std::string subscribe_;            // the frame; empty: who was upgraded is ready
  std::size_t done_ = 0, goal_ = 0;  // clients that have as many events
  std::uint64_t bytes_ = 0;
  bool keeping_ = false;  // the first client's payloads
  std::vector<std::string> kept_;
  std::string keep_;
};

}  // namespace bench
