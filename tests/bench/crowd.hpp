// Many subscribers in one process, on plain sockets: they count frames and bytes, answer pings and look at
// nothing else, so that what is measured is the server.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

class Crowd {
 public:
  /// Connects `count` clients to a port of this machine. `token` empty: none is shown. `subscribe` is sent as
  /// a message once connected; empty: nothing is, and who was upgraded is ready.
  Crowd(int port, const std::string& token, std::size_t count, const std::string& subscribe);
  ~Crowd();
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void until_ready();  // all of them
  /// Each has seen `more` more events (frames whose type has a dot in it) than it had at the last such call.
  void until_events(std::size_t more);
  /// Reads until nothing has come for `quiet_ms`; gives what the first client got meanwhile.
  std::vector<std::string> until_quiet(int quiet_ms);

  std::uint64_t bytes() const { return bytes_; }  // that came in, of all

 private:
  struct Client {
    int fd = -1;
    bool upgraded = false, ready = false;
    std::uint64_t left = 0;    // of the frame's payload
    std::uint64_t events = 0;  // since the last until_events()
    std::string head;          // bytes of a frame's header, or of the HTTP answer, that are no whole yet
    std::string start;         // the payload's first bytes
    std::uint8_t opcode = 0;
  };

  bool read(int wait_ms);  // once; false: nothing came
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
