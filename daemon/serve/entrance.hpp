// One listening socket and its accept loop, whatever it listens on.
#pragma once
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "serve/request.hpp"
#include "watch/clock.hpp"

namespace earshot::serve {

class Entrance {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Admit = std::function<void(Socket socket, Via via)>;

  /// `descriptor` listens already; this owns it. Clients wait until begin().
  Entrance(boost::asio::io_context& io, int family, int descriptor, Via via, Admit admit);
  Entrance(const Entrance&) = delete;
  Entrance& operator=(const Entrance&) = delete;

  void begin() { accept(); }
  void close();

 private:
  void accept();

  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  watch::Timer again_;
  const Via via_;
  Admit admit_;
};

}  // namespace earshot::serve
