// One listening socket and its accept loop, whatever it listens on.
#pragma once
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>

#include "base/clock.hpp"
#include "serve/http/request.hpp"

namespace earshot::serve {

class Acceptor {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Admit = std::function<void(Socket socket, TransportKind transport_kind)>;

  /// `descriptor` listens already; this owns it. Clients wait until begin().
  Acceptor(boost::asio::io_context& io, int family, int descriptor, TransportKind transport_kind,
           Admit admit);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void begin() { accept(); }
  void close();

 private:
  void accept();

  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  watch::Timer again_;
  const TransportKind transport_kind_;
  Admit admit_;
};

}  // namespace earshot::serve
