#include "serve/websocket/transport_impl.hpp"

namespace earshot::serve {

std::unique_ptr<Transport> make_tls_transport(Transport::Socket socket, const Limits& limits,
                                              asio::ssl::context& context) {
  return std::make_unique<TransportOf<asio::ssl::stream<Transport::Socket>>>(std::move(socket), limits,
                                                                             context);
}

}  // namespace earshot::serve
