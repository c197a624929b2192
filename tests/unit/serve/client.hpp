// A WebSocket client for the tests, on the same loop as the daemon's server. Beast stays in client.cpp.
#pragma once
#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace earshot::test {

struct ClientOptions {
  std::string token;       // empty: no Authorization header
  std::string protocol;    // empty: none offered
  std::string host;        // empty: the daemon's
  std::string origin;      // empty: no Origin header
  int receive_buffer = 0;  // SO_RCVBUF; 0: the system's
  bool reading = true;     // false: reads nothing until read()
};

class Client {
 public:
  Client(boost::asio::io_context& io, std::uint16_t port, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string text);
  void send_binary(std::string bytes);
  void send_raw(std::string bytes);  // below the WebSocket
  void read();                       // starts reading
  void ping();
  void vanish();  // closes the socket without a close frame

  std::vector<std::string> frames;  // payloads, in order
  bool open = false;
  std::string protocol;                     // chosen by the daemon
  std::optional<unsigned> refused;          // the HTTP status instead of an upgrade
  bool ended = false;                       // the connection is over
  std::optional<std::uint16_t> close_code;  // sent by the daemon
  std::size_t pongs = 0, pings_seen = 0;

  bool has(std::string_view type) const;  // a frame of this type was received
  std::vector<std::string> types() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Sends these bytes to the daemon and returns everything received until it closes.
std::string exchange(boost::asio::io_context& io, std::uint16_t port, std::string_view bytes);

}  // namespace earshot::test
