// A simulated connection: the daemon's end is a Transport, the client's end accepts a limited number of
// bytes.
#pragma once
#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <string>

#include "serve/websocket/transport.hpp"

namespace earshot::sim {

/// Shared by both ends.
struct Connection {
  explicit Connection(boost::asio::io_context& io) : io(io) {}

  boost::asio::io_context& io;
  // From the client
  std::deque<std::string> incoming;  // messages the daemon has not read
  std::size_t room = 0;              // bytes the client accepts
  bool pongs = true;                 // it answers pings
  bool left = false;                 // it closed the connection
  // To the client
  std::string outgoing;
  std::uint16_t close_code = 0;
  bool ended = false;  // the daemon has closed the connection
  std::string http;    // a response other than the upgrade

  /// Notifies the daemon's end of changes by the client's end; null if it was destroyed.
  std::function<void()> moved;
  /// Destroys the handlers of the daemon's end, as the end of its event loop does; null if it was destroyed.
  std::function<void()> drop;
};

std::unique_ptr<serve::Transport> make_sim_transport(std::shared_ptr<Connection> line);

}  // namespace earshot::sim
