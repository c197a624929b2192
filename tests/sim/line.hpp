// A connection without a socket: the daemon's end is a Wire, the client's end takes bytes when it likes.
#pragma once
#include <boost/asio/io_context.hpp>
#include <deque>
#include <memory>
#include <string>

#include "serve/websocket/transport.hpp"

namespace earshot::sim {

/// What both ends hold.
struct Line {
  explicit Line(boost::asio::io_context& io) : io(io) {}

  boost::asio::io_context& io;
  // From the client
  std::deque<std::string> said;  // messages that the daemon has not read
  std::size_t room = 0;          // bytes that the client will still take
  bool pongs = true;             // it answers pings
  bool left = false;             // it is gone, and the daemon can see it
  // To the client
  std::string heard;
  std::uint16_t close_code = 0;
  bool ended = false;  // the daemon has closed the connection
  std::string http;    // an answer other than the upgrade

  /// Lets the daemon's end see what the client's end did; null when that is gone.
  std::function<void()> moved;
};

std::unique_ptr<serve::Transport> make_sim_transport(std::shared_ptr<Line> line);

}  // namespace earshot::sim
