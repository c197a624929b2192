// A listening socket and its accept loop.
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

  /// Owns `descriptor`, which already listens. Connections are accepted from begin() on.
  Acceptor(boost::asio::io_context& io, int family, int descriptor, TransportKind transport_kind,
           Admit admit);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void begin() { accept(); }
  void close();

 private:
  void accept();

  boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol> acceptor_;
  Timer again_;
  const TransportKind transport_kind_;
  Admit admit_;
};

}  // namespace earshot::serve
